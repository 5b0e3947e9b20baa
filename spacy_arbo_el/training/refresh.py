"""Refreshes of cached vectors, which encode again what may be a candidate or a negative."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from spacy.util import registry

from ..base.settings import check_count
from ..retrieval.index.exact import nearest
from .cache import EmbeddingCache
from .table import GoldTable

NEVER = -1
# Mentions that are trained on between two refreshes.
MENTIONS = 5000
# Texts near a mention, by the vectors at hand, that may become its candidates or negatives.
NEAREST = 100
# The share of all texts that is encoded beside these, to see how much they miss.
SAMPLE = 0.05
# The nearest texts of a mention that should have new vectors.
CLOSE = 10
# The share of them that may have older vectors before all texts are encoded.
MOST_MISSED = 0.1

# (rows of texts (k,) int64) -> (k, width) float32, raw
EncodeRows = Callable[[np.ndarray], np.ndarray]


@registry.misc("spacy-arbo-el.CacheRefresh.v1")
@dataclass(frozen=True)
class CacheRefresh:
    """Times at which training encodes texts and mentions again.

    All mentions are encoded, and the texts that are near one of them or are drawn at random. All
    texts are encoded where these turn out to be others than the texts near mentions now. A smaller
    interval keeps the vectors closer to the present encoder. It costs time::

        [components.arbo_linker.objective.refresh]
        @misc = "spacy-arbo-el.CacheRefresh.v1"
        every = 20000

    every: The number of mentions to train on between two refreshes. 0 for 5,000; -1 for never.
    on_the_fly: Whether the vectors that a training step computes replace the cached ones.
    """

    every: int = 0
    on_the_fly: bool = True

    def __post_init__(self) -> None:
        check_count("refresh.every", self.every, NEVER)

    def is_due(self, seen: int) -> bool:
        """Return whether to refresh now. seen: The mentions trained on since the last refresh."""
        return self.every != NEVER and seen >= (self.every or MENTIONS)


def refresh_texts(
    cache: EmbeddingCache,
    table: GoldTable,
    mentions: np.ndarray,
    encode: EncodeRows,
    rng: np.random.Generator,
) -> int:
    """Replace the cached vectors of texts that may be candidates or negatives.

    mentions: (n, width) float32, raw, those of the present encoder.
    encode: Encodes texts with it.
    RETURNS: The number of texts encoded.
    """
    labelled = np.flatnonzero(table.cluster >= 0)
    nearest_texts = _nearest_texts(cache, labelled, NEAREST)
    gold = np.unique(table.mention_texts.indices)
    drawn = rng.choice(
        table.n_texts, int(np.ceil(SAMPLE * table.n_texts)), replace=False
    )
    # Others are as many as would be encoded in any case.
    chosen = np.union1d(np.union1d(nearest_texts, gold), drawn)
    cache.update_mentions(np.arange(len(mentions)), mentions)
    cache.update_texts(chosen, encode(chosen))
    unchosen = np.setdiff1d(np.arange(table.n_texts), chosen)
    by_chance = np.setdiff1d(drawn, np.union1d(nearest_texts, gold))
    if not len(unchosen) or not _misses_many(cache, labelled, unchosen, by_chance):
        return len(chosen)
    cache.update_texts(unchosen, encode(unchosen))
    return table.n_texts


def _nearest_texts(
    cache: EmbeddingCache, mentions: np.ndarray, count: int
) -> np.ndarray:
    """The texts that are among the nearest of any mention, ascending."""
    vectors = cache.mentions[mentions]
    neighbours = nearest(vectors, cache.device_texts, count, cache.similarity.metric)
    return np.unique(neighbours.ids[neighbours.valid])


def _misses_many(
    cache: EmbeddingCache,
    mentions: np.ndarray,
    unchosen: np.ndarray,
    by_chance: np.ndarray,
) -> bool:
    """Return whether too many of the nearest texts have older vectors, or were not looked for.

    unchosen: Texts with older vectors.
    by_chance: Texts with new ones that were drawn at random alone. For each of them near a mention
        there are as many others that would be near one with new vectors.
    """
    vectors = cache.mentions[mentions]
    neighbours = nearest(vectors, cache.device_texts, CLOSE, cache.similarity.metric)
    ids = neighbours.ids[neighbours.valid]
    older = np.isin(ids, unchosen).sum()
    drawn = np.isin(ids, by_chance).sum() * len(unchosen) / max(len(by_chance), 1)
    return bool(older + drawn > MOST_MISSED * len(ids))
