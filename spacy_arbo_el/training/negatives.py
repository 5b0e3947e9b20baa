"""Which nodes each mention of a batch should move away from."""

from typing import Callable, Optional, Tuple

import numpy as np
from spacy.util import registry

from ..kb.vectors import TextVectors
from ..retrieval.neighbours import fill, first_of_each
from .cache import EmbeddingCache
from .positives import gold_texts
from .table import GoldTable

Negatives = Callable[[np.ndarray, GoldTable, EmbeddingCache], np.ndarray]
# Similarities computed at a time, to bound memory over large knowledge bases.
BLOCK = 1 << 24


@registry.misc("spacy-arbo-el.HardNegatives.v1")
def hard_negatives(k: int = 10, mention_share: float = 0.5, same_type: bool = False) -> Negatives:
    """The nearest wrong entities and the nearest wrong mentions, by cached vectors (paper, §2.3).

    k: Negatives of a mention in all.
    mention_share: The share of mentions among them, the rest are entities; 0.5 in the paper,
        0.0 gives its k-NN negatives baseline.
    same_type: Only entities of the mention's type (its label), and mentions with the same label.

    RETURNS: Function (mentions (b,), table, cache) -> (b, k) int64 nodes, -1 for none.
    """
    from_mentions = int(round(k * mention_share))
    from_entities = k - from_mentions

    def choose(mentions: np.ndarray, table: GoldTable, cache: EmbeddingCache) -> np.ndarray:
        queries = cache.mentions[mentions]
        same = table.own_texts(mentions)
        # Names of one entity are near each other: look further, then keep the best of each.
        wanted = from_entities * 4
        other_types = ~table.text_types.T[table.label[mentions]] if same_type else None
        texts = _nearest(queries, cache.texts, same, wanted, cache, other_types)
        entities = _one_text_each(cache.kb.rows, texts, from_entities)
        same = table.same_mentions(mentions)
        # Mentions without a gold id could be of any entity.
        unknown = np.broadcast_to(table.cluster < 0, (len(mentions), len(table.cluster)))
        if same_type:
            unknown = unknown | (table.label != table.label[mentions][:, None])
        others = _nearest(queries, cache.mentions, same, from_mentions, cache, unknown)
        others = np.where(others >= 0, others + table.texts, -1)
        return np.concatenate([entities, others], axis=1)

    return choose


def _nearest(
    queries: np.ndarray,
    vectors: np.ndarray,
    banned: Tuple[np.ndarray, np.ndarray],
    k: int,
    cache: EmbeddingCache,
    banned_too: Optional[np.ndarray] = None,
) -> np.ndarray:
    """The k nearest rows that are not banned, nearest first, (b, k) with -1 for none.

    banned: Pairs (query, row). banned_too: (b, n) bool.
    """
    found = np.full((len(queries), k), -1, dtype=np.int64)
    kept = min(k, len(vectors))
    if kept <= 0:
        return found
    step = max(BLOCK // len(vectors), 1)
    for start in range(0, len(queries), step):
        scores = cache.similarity.blocks(queries[start : start + step], vectors)
        inside = (banned[0] >= start) & (banned[0] < start + step)
        scores[banned[0][inside] - start, banned[1][inside]] = -np.inf
        if banned_too is not None:
            scores[banned_too[start : start + step]] = -np.inf
        rows = np.argpartition(-scores, kept - 1, axis=1)[:, :kept]
        values = np.take_along_axis(scores, rows, axis=1)
        order = np.lexsort((rows, -values), axis=1)
        rows = np.where(np.isfinite(values), rows, -1)
        found[start : start + step, :kept] = np.take_along_axis(rows, order, axis=1)
    return found


def _one_text_each(rows: TextVectors, texts: np.ndarray, k: int) -> np.ndarray:
    """The nearest text of each of the k nearest entities, (b, k)."""
    there = texts >= 0
    mention = np.nonzero(there)[0]
    text = texts[there]
    owner = rows.row_entities[rows.row_offsets[:-1][text]]
    return fill(text, first_of_each(mention, owner, len(texts), k), -1)


@registry.misc("spacy-arbo-el.InBatchNegatives.v1")
def in_batch_negatives() -> Negatives:
    """The gold entities of the batch's other mentions (the baseline of the paper's §3.2).

    Entities that are gold for a mention as well are left out for it, and none comes twice.

    RETURNS: Function (mentions (b,), table, cache) -> (b, k) int64 nodes, -1 for none; k is the
        number of different gold texts in the batch.
    """

    def choose(mentions: np.ndarray, table: GoldTable, cache: EmbeddingCache) -> np.ndarray:
        texts = gold_texts(mentions, table, cache)
        texts = np.unique(texts[texts >= 0])
        nodes = np.tile(texts, (len(mentions), 1))
        mention, own = table.own_texts(mentions)
        at = np.searchsorted(texts, own)
        there = at < len(texts)
        there[there] = texts[at[there]] == own[there]
        nodes[mention[there], at[there]] = -1
        return nodes

    return choose
