"""Nodes that queries of a step should approach."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from spacy.util import registry

from .. import graph
from ..base.arrays import first_of_each, minus_ones, take_or
from ..base.errors import Errors
from ..base.settings import check_choice, check_count
from ..graph.positives import ENTITY
from .cache import EmbeddingCache
from .queries import random_generator
from .table import GoldTable

# (queries (q,), table, cache) -> (q, p) int64 nodes, -1 for none; queries are nodes
Positives = Callable[[np.ndarray, GoldTable, EmbeddingCache], np.ndarray]


@registry.misc("spacy-arbo-el.ArborescencePositives.v1")
@dataclass(frozen=True)
class ArborescencePositives:
    """Parents in arborescences of the mentions' whole gold clusters (paper, §2.3).

    The graph of a cluster is complete: all its mentions, and the gold entity, which for each
    mention is the most similar of its texts. The parent is thus a text of the entity or another
    mention.

    The default, and the best choice for linking with exemplars (``docs/results.md``). Set
    ``with_entity`` where entities without exemplars matter too::

        [components.arbo_linker.objective.positives]
        @misc = "spacy-arbo-el.ArborescencePositives.v1"
        with_entity = true

    with_entity: Whether a mention whose parent is another mention gets its entity as a second
        positive. This is not in the paper.
    mentions: Which gold mentions are in the graph of a mention: "all" of the cluster, or as the
        paper's restrictions have it (§3.2), the "nearest" one (1-NN) or a "random" one (1-RAND),
        which is drawn from NumPy's global random state.
    """

    with_entity: bool = False
    mentions: str = "all"

    def __post_init__(self) -> None:
        check_choice("positives.mentions", self.mentions, ("all", "nearest", "random"))

    def __call__(
        self, queries: np.ndarray, table: GoldTable, cache: EmbeddingCache
    ) -> np.ndarray:
        return parents(self._find_parents(), self.with_entity, queries, table, cache)

    def _find_parents(self) -> Callable[..., np.ndarray]:
        if self.mentions == "all":
            return graph.gold_parents
        if self.mentions == "nearest":
            return graph.gold_parents_1nn
        return partial(graph.gold_parents_1rand, rng=random_generator())


@registry.misc("spacy-arbo-el.EntityPositives.v1")
@dataclass(frozen=True)
class EntityPositives:
    """The most similar text of the mention's gold entity.

    The baselines of the paper (§3.2) use it. Choose it for linking without exemplars::

        [components.arbo_linker.objective.positives]
        @misc = "spacy-arbo-el.EntityPositives.v1"
    """

    def __call__(
        self, queries: np.ndarray, table: GoldTable, cache: EmbeddingCache
    ) -> np.ndarray:
        return gold_texts(mentions_of(queries, table), table, cache)[:, None]


@registry.misc("spacy-arbo-el.SynonymPositives.v1")
@dataclass(frozen=True)
class SynonymPositives:
    """Other names of the query's entity (SapBERT, BioSyn).

    Use it with ``NameQueries``. An entity without mentions in the training corpus is trained on
    by its names. With ``MentionQueries``, a mention gets names of its entity that it is not
    written with. So silver mentions, which are names, teach synonyms in context::

        [components.arbo_linker.objective.positives]
        @misc = "spacy-arbo-el.SynonymPositives.v1"
        n = 1

    Names are drawn from NumPy's global random state, which ``[training.seed]`` sets and a
    checkpoint saves.

    n: The number of names.
    """

    n: int = 1

    def __post_init__(self) -> None:
        check_count("positives.n", self.n, least=1)

    def __call__(
        self, queries: np.ndarray, table: GoldTable, cache: EmbeddingCache
    ) -> np.ndarray:
        row, text = table.synonym_pairs(queries)
        rank = random_generator().random(len(row))
        order = np.lexsort((rank, row))
        places = first_of_each(row[order], text[order], len(queries), self.n)
        return take_or(text[order], places, -1)


def parents(
    find_parents: Callable[..., np.ndarray],
    with_entity: bool,
    queries: np.ndarray,
    table: GoldTable,
    cache: EmbeddingCache,
) -> np.ndarray:
    """Parents of mentions in arborescences of gold clusters.

    find_parents: Finds them, as ``graph.gold_parents`` does.
    with_entity: Whether a mention whose parent is another mention gets its entity too.
    RETURNS: (b, 1 + with_entity) int64 nodes, -1 for none.
    """
    mentions = mentions_of(queries, table)
    clusters = np.unique(table.cluster[mentions])
    members, offsets = table.members(clusters[clusters >= 0])
    text, similarity = nearest_gold_texts(members, offsets, table, cache)
    row = minus_ones(len(table.cluster))
    row[members] = np.arange(len(members))
    labelled = np.flatnonzero(row[mentions] >= 0)
    rows = row[mentions[labelled]]
    vectors = cache.mentions[members]
    metric = cache.similarity.metric
    parent = find_parents(vectors, similarity, offsets, queries=rows, metric=metric)
    own_text = np.where(parent == ENTITY, text[rows], -1)
    positives = minus_ones((len(mentions), 1 + with_entity))
    mention = table.n_texts + members[np.maximum(parent, 0)]
    positives[labelled, 0] = np.where(parent >= 0, mention, own_text)
    if with_entity:
        positives[labelled, 1] = np.where(parent == ENTITY, -1, text[rows])
    return positives


def mentions_of(queries: np.ndarray, table: GoldTable) -> np.ndarray:
    """The mentions that queries are. Raise ValueError where some are names."""
    if table.is_text(queries).any():
        raise Errors.E611()
    return queries - table.n_texts


def gold_texts(
    mentions: np.ndarray, table: GoldTable, cache: EmbeddingCache
) -> np.ndarray:
    """The most similar text of gold entities: (b,) int64, -1 for none."""
    order = np.argsort(table.cluster[mentions], kind="stable")
    cluster = table.cluster[mentions][order]
    offsets = np.concatenate([[0], np.flatnonzero(np.diff(cluster)) + 1, [len(order)]])
    texts = minus_ones(len(mentions))
    texts[order], _ = nearest_gold_texts(mentions[order], offsets, table, cache)
    return texts


def nearest_gold_texts(
    mentions: np.ndarray, offsets: np.ndarray, table: GoldTable, cache: EmbeddingCache
) -> tuple[np.ndarray, np.ndarray]:
    """The most similar text of each mention's gold entities.

    mentions: (m,) int64, in groups that share their gold ids.
    offsets: Where each group starts, and the end of the last.
    RETURNS: Texts (m,) int64 and similarities (m,) float32; -1 and -inf where no gold id is in the
        knowledge base.
    """
    text = minus_ones(len(mentions))
    similarity = np.full(len(mentions), -np.inf, dtype=np.float32)
    # A loop over clusters, not mentions: each iteration is one matrix product.
    for start, end in zip(offsets[:-1], offsets[1:]):
        if start == end:
            continue
        rows_of_gold = table.texts_of(mentions[start])
        if not len(rows_of_gold):
            continue
        scores = cache.similarity.blocks(
            cache.mentions[mentions[start:end]], cache.texts[rows_of_gold]
        )
        best = scores.argmax(axis=1)
        text[start:end] = rows_of_gold[best]
        similarity[start:end] = np.take_along_axis(scores, best[:, None], axis=1)[:, 0]
    return text, similarity
