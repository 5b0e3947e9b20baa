"""Grouping of mentions that no entity fits, as arrays. What was decided on them holds."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from spacy.util import registry

from .. import graph
from ..base.arrays import TopK, unit
from ..base.calibration import Calibration, similarity_at
from ..base.settings import check_choice, check_count, check_share
from ..graph.averages import average_joins
from ..graph.components import number_clusters
from ..graph.constrained import constrained
from ..graph.levels import labels_at
from ..mentions.record import MentionKey, MentionRecord
from ..retrieval.corpus_search import nearest_in_corpus
from ..retrieval.mention_search import nearest_in_document, usable
from ..retrieval.similarity import Cosine, Similarity
from .same_names import Distinct, Edges, name_edges, number_names

METHODS = ("weak", "arborescence", "average")
# Number of columns that character n-grams are hashed to.
N_HASHED = 256


@registry.misc("spacy-arbo-el.Discovery.v1")
@dataclass(frozen=True)
class Discovery:
    """Groups the mentions that no entity fits into new entities.

    Each mention has edges from its nearest neighbours among these mentions, and the mentions of one
    name are connected. Edges below the threshold are dropped, and each connected component is one
    new entity. Mentions that are read alike count once. The defaults suit most corpora;
    ``arbo fit --thresholds`` chooses the threshold and ``ngram_weight`` on annotated documents::

        [components.arbo_linker.discovery]
        @misc = "spacy-arbo-el.Discovery.v1"
        threshold = 0.7
        method = "weak"

    threshold: The probability that two mentions are the same entity which an edge must have, 0 to
        1, by the curve "same_new_entity" of the calibration.
    n_neighbors: From how many of its nearest neighbours a mention has edges.
    ngram_weight: The weight of character n-grams beside vectors, 0 to 1. Above 0, the similarity
        of two mentions is ``1 - ngram_weight`` times the cosine of their vectors plus
        ``ngram_weight`` times the cosine of the n-grams of their surface forms. Untrained, it
        improves the groups of MedMentions, and makes most others worse.
    method: "weak" components, mention-only "arborescence" (§3.5 of the arborescence paper), or
        "average" linkage: two clusters join while the mean similarity of their mentions is above
        the threshold.
    spans_key: The group of ``doc.spans`` that new entities are written to; "" for none.
    """

    threshold: float = 0.7
    n_neighbors: int = 4
    ngram_weight: float = 0.0
    method: str = "weak"
    spans_key: str = "new_entities"

    def __post_init__(self) -> None:
        check_share("discovery.threshold", self.threshold)
        check_share("discovery.ngram_weight", self.ngram_weight)
        check_count("discovery.n_neighbors", self.n_neighbors)
        check_choice("discovery.method", self.method, METHODS)

    def min_similarity(self, calibration: Calibration) -> float:
        """The threshold as a similarity."""
        return similarity_at(self.threshold, calibration.same_new_entity)

    def features(self, vectors: np.ndarray, normalized: Sequence[str]) -> np.ndarray:
        """Features that mentions are compared by: (m, width) float32.

        They are vectors and character n-grams.

        vectors: (m, width) float32, prepared.
        normalized: The normalized surface form of each mention.
        """
        if not self.ngram_weight:
            return vectors
        by_vector = np.sqrt(1 - self.ngram_weight) * unit(vectors)
        by_ngrams = np.sqrt(self.ngram_weight) * hashed_ngrams(normalized)
        return np.hstack([by_vector, by_ngrams]).astype(np.float32)

    def feature_similarity(self, similarity: Similarity) -> Similarity:
        """Similarity of features, given that of vectors."""
        return Cosine() if self.ngram_weight else similarity

    def nearest(
        self, features: np.ndarray, similarity: Similarity, documents: np.ndarray | None = None
    ) -> TopK:
        """The nearest neighbours of each mention. The parameters are those of ``group``."""
        compared_by = self.feature_similarity(similarity)
        if documents is None:
            return nearest_in_corpus(features, self.n_neighbors, compared_by)
        return nearest_in_document(features, documents, self.n_neighbors, compared_by)

    def group(
        self,
        features: np.ndarray,
        similarity: Similarity,
        calibration: Calibration,
        documents: np.ndarray | None = None,
        labels: np.ndarray | None = None,
        decided: np.ndarray | None = None,
        names: np.ndarray | None = None,
    ) -> np.ndarray:
        """Group mentions into new entities: (m,) int64. Numbered from 0 in order of first mention.

        Mentions that are read alike count once, so groups do not depend on how often they recur.

        features: (m, width) float32, as ``features`` gives them.
        similarity: How vectors are compared.
        documents: (m,) ascending, to group the mentions of each document by themselves; None to
            group the mentions of all documents.
        labels: (m,) of any kind, where mentions with different labels must stay apart; else None.
        decided: (m,) int64, where mentions with the same number must be one new entity, and those
            with different ones must not, -1 for no decision; else None.
        names: (m,) int64, equal for mentions of one name, which have edges whatever their nearest
            neighbours are; else None.
        """
        if len(features) < 2:
            return np.arange(len(features))
        least = self.min_similarity(calibration)
        distinct = self._distinct(features, names, (documents, labels, decided))
        nodes = distinct.take(features)
        of_nodes = map(distinct.take_any, (documents, labels, names))
        edges = self._edges(nodes, similarity, *of_nodes)
        groups = self._sweep(nodes, similarity, np.array([least]), edges)
        if decided is not None:
            kept = edges[2] >= least
            source, target, scores = (part[kept] for part in edges)
            groups[0] = constrained(groups[0], distinct.take(decided), source, target, -scores)
        spread = self._spread(groups, distinct, nodes, similarity, np.array([least]))[0]
        if decided is None:
            return spread.astype(np.int64)
        # Decisions hold for mentions that are read alike too.
        none = np.zeros(0, dtype=np.int64)
        return constrained(spread, decided, none, none, none.astype(np.float32))

    def sweep(
        self,
        features: np.ndarray,
        similarity: Similarity,
        min_similarities: np.ndarray,
        names: np.ndarray | None = None,
    ) -> np.ndarray:
        """Group mentions at many thresholds at once: (T, m) int32.

        Groups are numbered as in ``group``.

        features, similarity, names: As in ``group``.
        min_similarities: (T,) thresholds, as similarities.
        """
        distinct = self._distinct(features, names)
        nodes = distinct.take(features)
        edges = self._edges(nodes, similarity, None, None, distinct.take_any(names))
        groups = self._sweep(nodes, similarity, min_similarities, edges)
        return self._spread(groups, distinct, nodes, similarity, min_similarities)

    def _distinct(
        self,
        features: np.ndarray,
        names: np.ndarray | None,
        keys: Sequence[np.ndarray | None] = (),
    ) -> Distinct:
        """The mentions that are not read alike. All where mentions are left by themselves."""
        if not self.n_neighbors:
            return Distinct.all_of(len(features))
        return Distinct.of(features, names, keys)

    def _edges(
        self,
        features: np.ndarray,
        similarity: Similarity,
        documents: np.ndarray | None,
        labels: np.ndarray | None,
        names: np.ndarray | None,
    ) -> Edges:
        neighbours = self.nearest(features, similarity, documents)
        if labels is not None:
            neighbours = neighbours.where(labels[neighbours.ids] == labels[:, None])
        valid = neighbours.valid
        edges = neighbours.ids[valid], np.nonzero(valid)[0], neighbours.scores[valid]
        if names is None or not self.n_neighbors:
            return edges
        for apart in (documents, labels):
            if apart is not None:
                table = np.stack([names, np.unique(apart, return_inverse=True)[1].reshape(-1)])
                names = np.unique(table, axis=1, return_inverse=True)[1].reshape(-1)
        one, other, scores = name_edges(features, names, self.feature_similarity(similarity))
        # In both directions, as arborescences need them.
        return (
            np.concatenate([edges[0], one, other]),
            np.concatenate([edges[1], other, one]),
            np.concatenate([edges[2], scores, scores]),
        )

    def _sweep(
        self, features: np.ndarray, similarity: Similarity, least: np.ndarray, edges: Edges
    ) -> np.ndarray:
        source, target, scores = edges
        weight = -scores
        thresholds = -least
        if self.method != "average":
            swept = graph.sweep(
                0,
                len(features),
                source,
                target,
                weight,
                thresholds=thresholds,
                leftover=self.method,
            )
            return swept.cluster
        limit = float(thresholds.max())
        euclidean = self.feature_similarity(similarity).metric != "ip"
        joins = average_joins(features, source, target, limit, euclidean=euclidean)
        order = np.argsort(thresholds, kind="stable")
        labels = labels_at(len(features), joins, thresholds[order].astype(np.float32))
        groups = np.empty_like(labels)
        for row, place in enumerate(order.tolist()):
            groups[place] = number_clusters(labels[row], len(features))
        return groups

    def _spread(
        self,
        groups: np.ndarray,
        distinct: Distinct,
        features: np.ndarray,
        similarity: Similarity,
        least: np.ndarray,
    ) -> np.ndarray:
        """The groups of all mentions, given those of distinct ones: (T, m) int32.

        Mentions that are read alike stay apart where not even they are similar enough.
        """
        node = distinct.node
        count = len(distinct.rows)
        spread = groups[:, node]
        copies = np.setdiff1d(np.arange(len(node)), distinct.rows)
        if not len(copies):
            return spread
        own = self.feature_similarity(similarity).of_equals(features)
        own = np.where(usable(features), own, np.finfo(np.float32).max)[node[copies]]
        numbered = np.empty_like(spread)
        for row, threshold in enumerate(least):
            alone = np.bincount(groups[row], minlength=count)[groups[row]] == 1
            apart = copies[(own < threshold) & alone[node[copies]]]
            spread[row, apart] = count + np.arange(len(apart))
            numbered[row] = number_clusters(spread[row], count + len(apart))
        return numbered


def hashed_ngrams(strings: Sequence[str]) -> np.ndarray:
    """Hash character n-grams of strings. (m, N_HASHED) float32 of length 1.

    Equal strings have equal rows whatever the other strings are, so rows can be stored.
    """
    # Linking without n-grams need not wait for its import.
    from sklearn.feature_extraction.text import HashingVectorizer

    vectorizer = HashingVectorizer(analyzer="char_wb", ngram_range=(2, 4), n_features=N_HASHED)
    return vectorizer.transform(strings).toarray().astype(np.float32)


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
        for i, record in enumerate(decided.records)
        if record.key not in place
    ]
    both.sort(key=lambda pair: pair[0].key)
    groups = np.full(len(records), -1, dtype=np.int64)
    if not both:
        return groups, {}
    ordered = [record for record, _ in both]
    rows = np.array([row for _, row in both])
    stacked = _stacked(vectors, decided.vectors, rows)
    number_of = dict(zip([record.key for record in decided.records], decided.numbers.tolist()))
    numbers = np.array([number_of.get(record.key, -1) for record in ordered], dtype=np.int64)
    found = (discovery or Discovery(n_neighbors=0)).group(
        (discovery or Discovery()).features(stacked, [record.normalized for record in ordered]),
        similarity,
        calibration,
        labels=np.array([record.label for record in ordered]) if match_types else None,
        decided=numbers,
        names=number_names(ordered),
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


def _inherited(groups: list[int], kept: list[int], known: dict[int, int]) -> dict[int, int]:
    """The cluster that each group continues. The one that most of its mentions are from.

    groups: The group of each mention.
    kept: The number of its cluster so far, -1 for none.
    known: Groups whose cluster has been decided on.
    """
    shared = Counter((g, n) for g, n in zip(groups, kept) if n >= 0 and g not in known)
    chosen: dict[int, int] = {}
    taken = set()
    for (group, number), _ in sorted(shared.items(), key=lambda item: (-item[1], item[0][::-1])):
        if group not in chosen and number not in taken:
            chosen[group] = number
            taken.add(number)
    return chosen
