"""Grouping of mentions that no entity fits, as arrays. What was decided on them holds."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from spacy.util import registry

from .. import graph
from ..base.arrays import int_array, minus_ones, take_rows
from ..base.calibration import Calibration, similarity_at
from ..base.settings import check_choice, check_count, check_share
from ..graph.clusters import METHODS, number_clusters
from ..graph.constrained import constrained
from ..mentions.record import MentionKey, MentionRecord
from ..retrieval.mention_search import (
    digests_of,
    nearest_in_corpus,
    nearest_in_document,
    usable,
)
from ..retrieval.similarity import Similarity
from .mention_names import MentionNames
from .same_names import Distinct, Edges, joint_numbers, name_edges


@registry.misc("spacy-arbo-el.Discovery.v1")
@dataclass(frozen=True)
class Discovery:
    """Groups the mentions that no entity fits into new entities.

    Each mention has edges from its nearest neighbours among these mentions, and the mentions of one
    name are connected. Names that tell two entities apart, such as "type 1" and "type 2", have no
    edge, see ``MentionNames``. Edges below the threshold are dropped, and each connected component
    is one new entity. Mentions that are read alike count once. The defaults suit most corpora::

        [components.arbo_linker.discovery]
        @misc = "spacy-arbo-el.Discovery.v1"
        threshold = 0.7
        method = "weak"

    threshold: The probability that two mentions are the same entity which an edge must have, 0 to
        1, by the curve "same_new_entity" of the calibration.
    n_neighbors: From how many of its nearest neighbours a mention has edges.
    method: "weak" components, or mention-only "arborescence" (§3.5 of the arborescence paper).
    spans_key: The group of ``doc.spans`` that new entities are written to; "" for none.
    """

    threshold: float = 0.7
    n_neighbors: int = 4
    method: str = "weak"
    spans_key: str = "new_entities"

    def __post_init__(self) -> None:
        check_share("discovery.threshold", self.threshold)
        check_count("discovery.n_neighbors", self.n_neighbors)
        check_choice("discovery.method", self.method, METHODS)

    def min_similarity(self, calibration: Calibration) -> float:
        """The threshold as a similarity."""
        return similarity_at(self.threshold, calibration.same_new_entity)

    def group(
        self,
        vectors: np.ndarray,
        similarity: Similarity,
        calibration: Calibration,
        names: MentionNames,
        documents: np.ndarray | None = None,
        labels: np.ndarray | None = None,
        decided: np.ndarray | None = None,
    ) -> np.ndarray:
        """Group mentions into new entities: (m,) int64. Numbered from 0 in order of first mention.

        Mentions that are read alike count once, so groups do not depend on how often they recur.

        vectors: (m, width) float32, prepared.
        names: Mentions of one name have edges whatever their nearest neighbours are, and mentions
            whose names tell them apart have none.
        documents: (m,) ascending, to group the mentions of each document by themselves; None to
            group the mentions of all documents.
        labels: (m,) of any kind, where mentions with different labels must stay apart; else None.
        decided: (m,) int64, where mentions with the same number must be one new entity, and those
            with different ones must not, -1 for no decision; else None.
        """
        if len(vectors) < 2:
            return np.arange(len(vectors))
        least = self.min_similarity(calibration)
        keys: list[np.ndarray | None] = [np.arange(len(vectors))]
        if self.n_neighbors:
            of_names = names.numbers, names.strings, names.forms
            keys = [digests_of(vectors), *of_names, documents, labels, decided]
        distinct = Distinct.of(*keys)
        nodes = distinct.take(vectors)
        names = names.take(distinct.rows)
        apart = map(distinct.take, (documents, labels))
        edges = self._edges(nodes, similarity, names, *apart)
        edges = _where(edges, ~(edges[2] < least))
        source, target, scores = _where(edges, names.may_be_one(*edges[:2]))
        weights = -scores
        groups = graph.cluster(
            len(nodes), source, target, weights, -least, method=self.method
        )
        if decided is not None:
            groups = constrained(
                groups, distinct.take(decided), source, target, weights
            )
        spread = _spread(groups, distinct, nodes, similarity, least)
        if decided is None:
            return spread.astype(np.int64)
        # Decisions hold for mentions that are read alike too.
        none = int_array()
        return constrained(spread, decided, none, none, none.astype(np.float32))

    def _edges(
        self,
        vectors: np.ndarray,
        similarity: Similarity,
        names: MentionNames,
        documents: np.ndarray | None,
        labels: np.ndarray | None,
    ) -> Edges:
        """The edges between mentions, whatever their names say."""
        if documents is None:
            neighbours = nearest_in_corpus(vectors, self.n_neighbors, similarity)
        else:
            neighbours = nearest_in_document(
                vectors, documents, self.n_neighbors, similarity
            )
        if labels is not None:
            neighbours = neighbours.within(labels)
        valid = neighbours.valid
        edges = neighbours.ids[valid], np.nonzero(valid)[0], neighbours.scores[valid]
        if not self.n_neighbors:
            return edges
        numbers = joint_numbers(names.numbers, documents, labels)
        source, target, scores = name_edges(vectors, numbers, similarity)
        # Vectors say nothing about two forms of one name.
        are_forms = names.strings[source] != names.strings[target]
        scores = np.where(are_forms, np.finfo(np.float32).max, scores)
        # In both directions, as arborescences need them.
        return (
            np.concatenate([edges[0], source, target]),
            np.concatenate([edges[1], target, source]),
            np.concatenate([edges[2], scores, scores]),
        )


def _spread(
    groups: np.ndarray,
    distinct: Distinct,
    vectors: np.ndarray,
    similarity: Similarity,
    least: float,
) -> np.ndarray:
    """The groups of all mentions, given those of distinct ones: (m,).

    Mentions that are read alike stay apart where not even they are similar enough.
    """
    node = distinct.node
    spread = groups[node]
    copies = np.setdiff1d(np.arange(len(node)), distinct.rows)
    if not len(copies):
        return spread
    own_scores = similarity.of_equals(vectors)
    own_scores = np.where(usable(vectors), own_scores, np.finfo(np.float32).max)
    alone = np.bincount(groups)[groups] == 1
    apart = copies[((own_scores < least) & alone)[node[copies]]]
    spread[apart] = len(distinct.rows) + np.arange(len(apart))
    return number_clusters(spread)


def _where(edges: Edges, is_edge: np.ndarray) -> Edges:
    source, target, scores = edges
    return source[is_edge], target[is_edge], scores[is_edge]


@dataclass(frozen=True)
class Decided:
    """Decisions on new entities by the keys of their mentions.

    records: The mentions of the entities that were merged, split or rejected.
    vectors: (d, width) float32, prepared, of these mentions.
    numbers: (d,) int64, the number of each of these mentions' cluster.
    accepted: The mentions that have become entities of the knowledge base.
    others: The cluster of each of the other mentions.
    """

    records: Sequence[MentionRecord]
    vectors: np.ndarray
    numbers: np.ndarray
    accepted: frozenset[MentionKey]
    others: dict[MentionKey, int]


def group_mentions(
    records: Sequence[MentionRecord],
    vectors: np.ndarray,
    decided: Decided,
    discovery: Discovery | None,
    similarity: Similarity,
    calibration: Calibration,
    match_types: bool,
) -> tuple[np.ndarray, dict[int, int]]:
    """Group mentions that no entity fits. The result does not depend on their order.

    Decided mentions are grouped with them: mentions similar to a rejected entity belong to it.

    records: The m mentions, each once.
    vectors: (m, width) float32, prepared.
    discovery: How mentions are grouped; None to leave each by itself.
    match_types: Whether mentions with different labels stay apart.
    RETURNS: The group of each mention, (m,) int64, -1 for those that were accepted; and which
        groups are clusters already, by their numbers.
    """
    count = len(records)
    # Accepted ones, and decided ones that are among the mentions.
    left_out = decided.accepted, {record.key for record in records}
    stacked_records = [*records, *decided.records]
    rows_by_key = sorted(
        (record.key, row)
        for row, record in enumerate(stacked_records)
        if record.key not in left_out[row >= count]
    )
    groups = minus_ones(count)
    if not rows_by_key:
        return groups, {}
    rows = int_array([row for _, row in rows_by_key])
    ordered = take_rows(stacked_records, rows)
    stacked = _stacked(vectors, decided.vectors, rows)
    number_of = dict(
        zip([record.key for record in decided.records], decided.numbers.tolist())
    )
    numbers = int_array([number_of.get(record.key, -1) for record in ordered])
    group_of = (discovery or Discovery(n_neighbors=0)).group(
        stacked,
        similarity,
        calibration,
        MentionNames.of(ordered),
        labels=np.array([record.label for record in ordered]) if match_types else None,
        decided=numbers,
    )
    present = rows < count
    groups[rows[present]] = group_of[present]
    continued = dict(
        zip(group_of[numbers >= 0].tolist(), numbers[numbers >= 0].tolist())
    )
    former = [decided.others.get(record.key, -1) for record in ordered]
    return groups, {**_inherited(group_of.tolist(), former, continued), **continued}


def _stacked(first: np.ndarray, second: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Rows of two arrays one after the other. Either may be empty, of any width."""
    if not len(second):
        return first[rows]
    return np.concatenate([rows_of for rows_of in (first, second) if len(rows_of)])[
        rows
    ]


def _inherited(
    groups: list[int], former: list[int], continued: dict[int, int]
) -> dict[int, int]:
    """The cluster that each group continues. The one that most of its mentions are from.

    groups: The group of each mention.
    former: The number of its cluster so far, -1 for none.
    continued: Groups whose cluster has been decided on.
    """
    shared = Counter(
        (g, n) for g, n in zip(groups, former) if n >= 0 and g not in continued
    )
    chosen: dict[int, int] = {}
    taken = set()
    for (group, number), _ in sorted(
        shared.items(), key=lambda item: (-item[1], item[0][::-1])
    ):
        if group not in chosen and number not in taken:
            chosen[group] = number
            taken.add(number)
    return chosen
