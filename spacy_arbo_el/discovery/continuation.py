"""From one discovery to the next: what people have decided holds, and ids stay."""

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Dict, FrozenSet, List, Optional, Sequence, Tuple

import numpy as np

from ..calibration.calibration import Calibration
from ..errors import Errors
from ..mentions.records import MentionKey, MentionRecord
from ..retrieval.similarity import Similarity
from .clustering import Discovery
from .clusters import Clusters
from .history import History
from .unlinked import Unlinked

if TYPE_CHECKING:
    from .new_entities import NewEntities


@dataclass(frozen=True)
class Decided:
    """What has been decided on new entities, by the keys of their mentions.

    mentions: The mentions of the entities that were merged, split or rejected.
    numbers: (d,) int64, the number of each of these mentions' cluster.
    accepted: The mentions that have become entities of the knowledge base.
    others: The cluster of each of the other mentions.
    """

    mentions: Unlinked
    numbers: np.ndarray
    accepted: FrozenSet[MentionKey]
    others: Dict[MentionKey, int]


def decided(new: "NewEntities") -> Decided:
    """What has been decided on new entities."""
    clusters = new.clusters
    names = [
        name
        for entry in new.history.decisions()
        if entry["action"] != "accept"
        for name in (entry["id"], entry.get("into"), entry.get("off"))
        if name is not None
    ]
    chosen = np.zeros(len(clusters.merged_into), dtype=bool)
    chosen[[clusters.current(clusters.number_of(name)) for name in names]] = True
    chosen[list(clusters.accepted)] = False
    numbers = clusters.numbers
    rows = np.flatnonzero(chosen[numbers])
    keys = [record.key for record in new.rows.records]
    accepted = frozenset(k for k, n in zip(keys, numbers.tolist()) if n in clusters.accepted)
    others = {
        key: number
        for key, number in zip(keys, numbers.tolist())
        if not chosen[number] and key not in accepted
    }
    return Decided(new.rows.take(rows), numbers[rows], accepted, others)


def group_mentions(
    records: Sequence[MentionRecord],
    vectors: np.ndarray,
    decided: Decided,
    discovery: Optional[Discovery],
    similarity: Similarity,
    calibration: Calibration,
    match_types: bool,
) -> Tuple[np.ndarray, Dict[int, int]]:
    """Group mentions that no entity fits. The result does not depend on their order.

    Decided mentions are grouped with them: what is similar to a rejected entity belongs to it.

    records: The m mentions, each once.
    vectors: (m, width) float32, prepared.
    decided: What must hold.
    discovery: How mentions are grouped; None to leave each by itself.
    similarity: How vectors are compared.
    match_types: Whether mentions with different labels stay apart.
    RETURNS: The group of each mention, (m,) int64, -1 for those that were accepted; and which
        groups are clusters already, by their numbers.
    """
    place = {record.key: i for i, record in enumerate(records)}
    both = [(record, i) for i, record in enumerate(records) if record.key not in decided.accepted]
    both += [
        (record, len(records) + i)
        for i, record in enumerate(decided.mentions.records)
        if record.key not in place
    ]
    both.sort(key=lambda pair: pair[0].key)
    groups = np.full(len(records), -1, dtype=np.int64)
    if not both:
        return groups, {}
    ordered, rows = [record for record, _ in both], np.array([row for _, row in both])
    stacked = _stacked(vectors, decided.mentions.vectors, rows)
    number_of = dict(zip(decided.mentions.keys, decided.numbers.tolist()))
    numbers = np.array([number_of.get(record.key, -1) for record in ordered], dtype=np.int64)
    found = (discovery or Discovery(n_neighbors=0)).group(
        (discovery or Discovery()).features(stacked, [record.normalized for record in ordered]),
        similarity,
        calibration,
        labels=np.array([record.label for record in ordered]) if match_types else None,
        decided=numbers,
    )
    present = rows < len(records)
    groups[rows[present]] = found[present]
    known = dict(zip(found[numbers >= 0].tolist(), numbers[numbers >= 0].tolist()))
    kept = [decided.others.get(record.key, -1) for record in ordered]
    return groups, {**_inherited(found.tolist(), kept, known), **known}


def _stacked(first: np.ndarray, second: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Rows of two arrays one after the other. Either may be empty, of any width."""
    if not len(second):
        return first[rows]
    return np.concatenate([part for part in (first, second) if len(part)])[rows]


def _inherited(groups: List[int], kept: List[int], known: Dict[int, int]) -> Dict[int, int]:
    """The cluster that each group goes on with: the one that most of its mentions are from.

    groups: The group of each mention.
    kept: The number of its cluster so far, -1 for none.
    known: Groups whose cluster has been decided on.
    """
    shared = Counter((g, n) for g, n in zip(groups, kept) if n >= 0 and g not in known)
    chosen: Dict[int, int] = {}
    taken = set()
    for (group, number), _ in sorted(shared.items(), key=lambda item: (-item[1], item[0][::-1])):
        if group not in chosen and number not in taken:
            chosen[group] = number
            taken.add(number)
    return chosen


def update(new: "NewEntities", taken: "NewEntities") -> None:
    """Take over a later discovery, see ``NewEntities.update``.

    taken: The later discovery, which this call may change.
    """
    if not new.history.is_continued_by(taken.history):
        raise ValueError(Errors.E718)
    if len(new.rows) and len(taken.rows) and new.fingerprint != taken.fingerprint:
        raise ValueError(Errors.E719)
    clusters, before = taken.clusters, new.clusters.numbers
    there = _numbers_there(new.clusters, clusters)
    _take_acceptances(new, taken)
    left = [i for i, record in enumerate(new.rows.records) if taken.rows.row(record.key) < 0]
    if left:
        rows = np.array(left, dtype=np.int64)
        moved = [clusters.current(int(there[number])) for number in before[rows].tolist()]
        taken.rows.extend(new.rows.take(rows))
        clusters.of_mention = np.append(clusters.of_mention, np.array(moved, dtype=np.int64))
    joins = new.history.joins_not_in(taken.history)
    new.rows, new.clusters = taken.rows, clusters
    new.history = History([*taken.log, *joins])
    new.threshold, new.fingerprint = taken.threshold, taken.fingerprint
    new.documents += taken.documents


def _numbers_there(here: Clusters, there: Clusters) -> np.ndarray:
    """The number that each cluster has among others; those that are missing there are added."""
    count = len(there.ids)
    for name in here.ids:
        if name not in there:
            there.add_id(name)
    there.merged_into = np.append(there.merged_into, np.arange(count, len(there.ids)))
    numbers = np.array([there.number_of(name) for name in here.ids], dtype=np.int64)
    for number, own in enumerate(numbers.tolist()):
        # What the others knew is as they say. Ids that came later lead where they led here.
        if own >= count:
            there.merged_into[own] = there.current(int(numbers[here.current(number)]))
    return numbers


def _take_acceptances(new: "NewEntities", taken: "NewEntities") -> None:
    """Leave out mentions that have been accepted here after the later discovery."""
    numbers, accepted = new.clusters.numbers, new.clusters.accepted
    rows: Dict[str, List[MentionKey]] = {}
    for record, number in zip(new.rows.records, numbers.tolist()):
        if number in accepted:
            rows.setdefault(accepted[number], []).append(record.key)
    for kb_id, keys in rows.items():
        taken.leave_out(keys, kb_id)
    for number, kb_id in accepted.items():
        there = taken.clusters.number_of(new.clusters.ids[number])
        taken.clusters.accepted.setdefault(taken.clusters.current(there), kb_id)
