"""Training in rounds: hard negatives of all mentions, mined again and again (DEER, §4.3)."""

from dataclasses import dataclass
from typing import Tuple

import numpy as np
from spacy.util import registry

from ..arrays import first_of_each, has_vector
from ..retrieval.index.flat import FlatIndex
from ..settings import check_count
from .cache import EmbeddingCache
from .negatives import TEXTS_PER_ENTITY
from .positives import gold_texts, mentions_of, nearest_gold_texts
from .table import GoldTable


# paper: DEER
@registry.misc("spacy-arbo-el.NegativesOfRounds.v1")
@dataclass(frozen=True)
class NegativesOfRounds:
    """The wrong entities that were once nearer to the mention than its gold entity (DEER, §4.3).

    They are sought for all mentions in each round but the first, and kept for good. A round ends
    when all texts and mentions are encoded again, see ``CacheRefresh.v1``. Use it with a
    ``Logistic.v1`` loss and ``PositivesInRounds.v1``, beside an objective with negatives of the
    batch::

        [components.arbo_linker.objective.negatives]
        @misc = "spacy-arbo-el.NegativesOfRounds.v1"
        k = 10

    Vectors must stay as they are during a round: set ``on_the_fly = false`` in the refresh.

    k: The number of nearest entities that are looked at for each mention.
    """

    k: int = 10

    def __post_init__(self) -> None:
        check_count("negatives.k", self.k, least=1)

    def __call__(self, queries: np.ndarray, table: GoldTable, cache: EmbeddingCache) -> np.ndarray:
        rounds = cache.rounds
        if rounds.mined < rounds.number:
            cache.rounds = rounds = rounds.with_pairs(*nearer_than_gold(self.k, table, cache))
        return rounds.texts_of(mentions_of(queries, table))


# paper: DEER
@registry.misc("spacy-arbo-el.PositivesInRounds.v1")
@dataclass(frozen=True)
class PositivesInRounds:
    """The most similar text of the mention's gold entity, from the second round on (DEER, §4.3).

    In the first round there are no hard negatives yet, and so no classification to learn::

        [components.arbo_linker.objective.positives]
        @misc = "spacy-arbo-el.PositivesInRounds.v1"
    """

    def __call__(self, queries: np.ndarray, table: GoldTable, cache: EmbeddingCache) -> np.ndarray:
        if not cache.rounds.number:
            return np.full((len(queries), 1), -1, dtype=np.int64)
        return gold_texts(mentions_of(queries, table), table, cache)[:, None]


def nearer_than_gold(
    k: int, table: GoldTable, cache: EmbeddingCache
) -> Tuple[np.ndarray, np.ndarray]:
    """All pairs of a mention and a text of a wrong entity that is nearer than its gold entity.

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
