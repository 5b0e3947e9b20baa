"""Decisions on new entities, and how each is taken back."""

from typing import TYPE_CHECKING, Any, Dict, List, Set

import numpy as np

from ..mentions.records import MentionKey
from .entities import new_entity_id
from .history import Entry

if TYPE_CHECKING:
    from .new_entities import NewEntities


def merge(new: "NewEntities", into: int, others: List[int]) -> None:
    """Merge clusters into one."""
    clusters, step = new.clusters, new.history.next_step()
    numbers = clusters.numbers
    mentions = [_keys(new, np.flatnonzero(numbers == number)) for number in others]
    apart = [[clusters.ids[n] for n in pair] for pair in clusters.merge(into, others)]
    for number, keys in zip(others, mentions):
        more = {"into": clusters.ids[into], "mentions": keys, "apart": apart, "step": step}
        new.history.note("merge", clusters.ids[number], **more)
        apart = []


def split(new: "NewEntities", number: int, rows: np.ndarray, chosen: np.ndarray) -> int:
    """Split some mentions off from a cluster.

    An id stays with the mention that it is named by. So of a cluster that was merged from two, and
    is split into these again, each gets its id back.

    rows: The mentions of the cluster.
    chosen: Those to split off.
    RETURNS: The number of the cluster of the chosen mentions.
    """
    clusters = new.clusters
    rest = np.setdiff1d(rows, chosen)
    stays, moves = number, chosen
    former = _former(new, number, chosen)
    if not former and clusters.ids[number] in _founded(new, chosen):
        # The chosen ones are what the cluster was before others were merged into it.
        former = _former(new, number, rest)
        moves = rest if former else chosen
    off = former[0] if former else clusters.add(min(_record_keys(new, moves)))
    clusters.move(number, moves, off, _founded(new, moves))
    clusters.kept_apart.append((stays, off))
    ids, step = clusters.ids, new.history.next_step()
    keys = _keys(new, moves)
    new.history.note("split", ids[stays], off=ids[off], mentions=keys, step=step)
    return off if moves is chosen else number


def reject(new: "NewEntities", number: int) -> None:
    """Mark a cluster as no entity."""
    new.clusters.rejected[number] = None
    new.history.note("reject", new.clusters.ids[number], step=new.history.next_step())


def accept(new: "NewEntities", number: int, kb_id: str, more: Dict[str, Any]) -> None:
    """Mark a cluster as an entity of the knowledge base."""
    clusters, step = new.clusters, new.history.next_step()
    clusters.accepted[number] = kb_id
    keys = _keys(new, np.flatnonzero(clusters.numbers == number))
    settings = {"kb_id": kb_id, "mentions": keys, "step": step, **more}
    new.history.note("accept", clusters.ids[number], **settings)


def leave_out(new: "NewEntities", rows: Set[int], kb_id: str) -> None:
    """Mark mentions as those of an entity of the knowledge base."""
    clusters, step = new.clusters, new.history.next_step()
    for number, members in list(clusters.by_size().items()):
        taken = np.array([row for row in members.tolist() if row in rows], dtype=np.int64)
        if not len(taken):
            continue
        keys, more = _keys(new, taken), {}
        if len(taken) < len(members):
            off = clusters.add(min(_record_keys(new, taken)))
            clusters.move(number, taken, off, set())
            number, more = off, {"of": clusters.ids[number]}
        clusters.accepted[number] = kb_id
        settings = {"kb_id": kb_id, "mentions": keys, "step": step, **more}
        new.history.note("accept", clusters.ids[number], **settings)


def undo(new: "NewEntities", entries: List[Entry]) -> None:
    """Take a decision back, given what the log says of it."""
    take_back = {"merge": _undo_merge, "split": _undo_split, "accept": _undo_accept}
    for entry in reversed(entries):
        take_back.get(entry["action"], _undo_reject)(new, entry)
    new.history.note("undo", entries[0]["id"], of=entries[0]["action"], step=entries[0]["step"])


def last_acceptance(new: "NewEntities", keys: Set[Any], kb_id: str) -> List[Entry]:
    """What the log says of the last acceptance of some of these mentions; nothing for none."""
    entries = [
        entry
        for entry in new.history.decisions()
        if entry["action"] == "accept"
        and entry["kb_id"] == kb_id
        and any(tuple(key) in keys for key in entry["mentions"])
    ]
    return [entry for entry in entries if entry["step"] == entries[-1]["step"]]


def _undo_merge(new: "NewEntities", entry: Entry) -> None:
    clusters = new.clusters
    gone = clusters.number_of(entry["id"])
    number = clusters.current(gone)
    if number != gone:
        rows = _rows_in(new, entry["mentions"], number)
        clusters.move(number, rows, gone, _founded(new, rows))
    clusters.kept_apart += [
        (clusters.number_of(a), clusters.number_of(b)) for a, b in entry["apart"]
    ]


def _undo_split(new: "NewEntities", entry: Entry) -> None:
    clusters = new.clusters
    number, off = clusters.number_of(entry["id"]), clusters.number_of(entry["off"])
    clusters.kept_apart = [pair for pair in clusters.kept_apart if {*pair} != {number, off}]
    number, now = clusters.current(number), clusters.current(off)
    if now == off and off != number:
        clusters.merge(number, [off])
    elif now != number:
        # New mentions have merged the part with others, which stay.
        rows = _rows_in(new, entry["mentions"], now)
        clusters.move(now, rows, number, _founded(new, rows))


def _undo_reject(new: "NewEntities", entry: Entry) -> None:
    new.clusters.restore(new.clusters.number_of(entry["id"]))


def _undo_accept(new: "NewEntities", entry: Entry) -> None:
    clusters = new.clusters
    number = clusters.number_of(entry["id"])
    clusters.restore(number)
    if "of" in entry:
        clusters.merge(clusters.current(clusters.number_of(entry["of"])), [number])


def _former(new: "NewEntities", number: int, rows: np.ndarray) -> List[int]:
    """Clusters that were merged into this one and are named by one of the mentions, in order."""
    clusters, founded = new.clusters, _founded(new, rows)
    numbers = (clusters.number_of(name) for name in founded if name in clusters)
    return sorted(n for n in numbers if n != number and clusters.current(n) == number)


def _founded(new: "NewEntities", rows: np.ndarray) -> Set[str]:
    """The ids that are made of the keys of mentions."""
    return {new_entity_id(key) for key in _record_keys(new, rows)}


def _rows_in(new: "NewEntities", keys: List[List[Any]], number: int) -> np.ndarray:
    """The rows of mentions that are in a cluster."""
    rows = [new.rows.row((str(document), start, end)) for document, start, end in keys]
    numbers = new.clusters.numbers
    inside = [row for row in rows if row >= 0 and numbers[row] == number]
    return np.array(inside, dtype=np.int64)


def _record_keys(new: "NewEntities", rows: np.ndarray) -> List[MentionKey]:
    return [new.rows.records[row].key for row in rows.tolist()]


def _keys(new: "NewEntities", rows: np.ndarray) -> List[List[Any]]:
    return [list(key) for key in _record_keys(new, rows)]
