"""DEER (Gillick et al. 2019): two towers of averaged n-grams, trained in rounds.

The towers are ``NgramEncoder.v1``, which the student of ``arbo distill`` uses too, and the first
round is the package's in-batch softmax. Here: an entity's text in fields (§4.1), the logistic loss,
and the hard negatives that each round finds and keeps (§4.3).

Other than in the paper, Adam trains in place of SGD with momentum, types are read as words, the
title's field has all names of the entity, and a round ends after so many mentions, not when recall
stops rising.
"""

from dataclasses import dataclass
from typing import List, Tuple

import numpy as np
from spacy.util import registry

from ..arrays import first_of_each, has_vector, offsets_of, ragged_ranges
from ..calibration import probability
from ..encoders.protocol import Text
from ..kb.entity import Entity
from ..retrieval.index.flat import FlatIndex
from ..settings import check_count, check_number, check_positive
from ..training.cache import EmbeddingCache, KeptPairs
from ..training.losses import LossAndGradient
from ..training.negatives import TEXTS_PER_ENTITY
from ..training.positives import gold_texts, mentions_of, nearest_gold_texts
from ..training.table import GoldTable

# Under which the cache keeps the hard negatives.
KEPT = "deer"


@registry.misc("spacy-arbo-el.Fields.v1")
@dataclass(frozen=True)
class Fields:
    """One text per entity, with fields as lines. ``NgramEncoder.v1`` reads them (DEER, §4.1).

    The lines of its title are the names, the first one the title itself. The first line of its
    description is the description, and the others are the types::

        [components.arbo_linker.retriever.verbalization]
        @misc = "spacy-arbo-el.Fields.v1"

    aliases: Whether the other names are among the names.
    types: Whether the types are fields.
    """

    aliases: bool = True
    types: bool = True

    def __call__(self, entity: Entity) -> List[Text]:
        names = entity.names if self.aliases else entity.names[:1]
        lines = [entity.description, *(entity.types if self.types else ())]
        title, rest = ("\n".join(map(_one_line, part)) for part in (names, lines))
        return [(title, rest)] if title or entity.description else []


def _one_line(text: str) -> str:
    return " ".join(text.split())


@registry.losses("spacy-arbo-el.Logistic.v1")
@dataclass(frozen=True)
class Logistic:
    """Binary cross-entropy over targets, each independent of the others.

    Use it where a logit should say by itself how likely a target is right. Scale and offset are
    best learned::

        [components.arbo_linker.objective.loss]
        @losses = "spacy-arbo-el.Logistic.v1"
        scale = 20.0
        offset = -10.0
        learned = true

    scale: Similarities are multiplied by this number.
    offset: This is added after that.
    learned: Whether both are trained as well.
    """

    scale: float = 20.0
    offset: float = -10.0
    learned: bool = True

    def __post_init__(self) -> None:
        check_positive("loss.scale", self.scale)
        check_number("loss.offset", self.offset)

    def __call__(
        self, logits: np.ndarray, positive: np.ndarray, valid: np.ndarray
    ) -> LossAndGradient:
        losses = np.logaddexp(0.0, np.where(positive, -1.0, 1.0) * logits)
        gradient = probability(logits) - positive
        return np.where(valid, losses, 0.0).sum(axis=1), np.where(valid, gradient, 0.0)


@registry.misc("spacy-arbo-el.NegativesOfRounds.v1")
@dataclass(frozen=True)
class NegativesOfRounds:
    """Wrong entities once nearer than the gold one. DEER, §4.3.

    They are sought for all mentions in each round but the first, and kept for good. A round ends
    when all texts and mentions are encoded again, see ``CacheRefresh.v1``. Use it with a
    ``Logistic.v1`` loss and ``PositivesInRounds.v1``, beside an objective with negatives of the
    batch::

        [components.arbo_linker.objective.negatives]
        @misc = "spacy-arbo-el.NegativesOfRounds.v1"
        k = 10

    Vectors must stay unchanged during a round: set ``on_the_fly = false`` in the refresh.

    k: The number of nearest entities that are looked at for each mention.
    """

    k: int = 10

    def __post_init__(self) -> None:
        check_count("negatives.k", self.k, least=1)

    def __call__(self, queries: np.ndarray, table: GoldTable, cache: EmbeddingCache) -> np.ndarray:
        kept = cache.kept.get(KEPT, KeptPairs())
        if kept.refresh < cache.refreshes:
            found = np.stack(nearer_than_gold(self.k, table, cache))
            pairs = np.unique(np.concatenate([kept.pairs, found], axis=1), axis=1)
            kept = cache.kept[KEPT] = KeptPairs(cache.refreshes, pairs)
        return texts_of(kept.pairs, mentions_of(queries, table))


@registry.misc("spacy-arbo-el.PositivesInRounds.v1")
@dataclass(frozen=True)
class PositivesInRounds:
    """The gold entity's most similar text, from round two. DEER, §4.3.

    In the first round there are no hard negatives yet, and so no classification to learn::

        [components.arbo_linker.objective.positives]
        @misc = "spacy-arbo-el.PositivesInRounds.v1"
    """

    def __call__(self, queries: np.ndarray, table: GoldTable, cache: EmbeddingCache) -> np.ndarray:
        if not cache.refreshes:
            return np.full((len(queries), 1), -1, dtype=np.int64)
        return gold_texts(mentions_of(queries, table), table, cache)[:, None]


def texts_of(pairs: np.ndarray, mentions: np.ndarray) -> np.ndarray:
    """Texts paired with mentions: (b, k) int64, -1 for none.

    pairs: (2, p) int64, mentions and texts, by mention.
    mentions: (b,) int64.
    """
    first, last = (np.searchsorted(pairs[0], mentions, side) for side in ("left", "right"))
    counts = last - first
    table = np.full((len(mentions), int(counts.max(initial=0))), -1, dtype=np.int64)
    row = np.repeat(np.arange(len(mentions)), counts)
    column = np.arange(len(row)) - np.repeat(offsets_of(counts)[:-1], counts)
    table[row, column] = pairs[1][ragged_ranges(first, counts)]
    return table


def nearer_than_gold(
    k: int, table: GoldTable, cache: EmbeddingCache
) -> Tuple[np.ndarray, np.ndarray]:
    """Pairs of mentions and wrong texts nearer than gold. Texts of a wrong entity that is nearer
    than the gold entity.

    k: The number of nearest entities of each mention that are looked at.
    RETURNS: Mentions and texts, (p,) int64 each. Of an entity the nearest text is taken.
    """
    members, offsets = table.members(np.arange(len(table.cluster_sizes)))
    gold, similarity = nearest_gold_texts(members, offsets, table, cache)
    members, similarity = members[gold >= 0], similarity[gold >= 0]
    index = FlatIndex(cache.texts, cache.similarity)
    hits = index.search(cache.mentions[members], k * TEXTS_PER_ENTITY)
    nearer = hits.valid & (hits.scores > similarity[:, None])
    nearer &= has_vector(cache.texts)[np.maximum(hits.ids, 0)]
    row, text = np.nonzero(nearer)[0], hits.ids[nearer]
    # A gold text may seem nearer than itself by rounding.
    own_row, own_text = table.text_pairs(table.n_texts + members)
    wrong = ~np.isin(row * table.n_texts + text, own_row * table.n_texts + own_text)
    row, text = row[wrong], text[wrong]
    places = first_of_each(row, table.text_entity[text], len(members), k)
    chosen = places[places >= 0]
    return members[row[chosen]], text[chosen]
