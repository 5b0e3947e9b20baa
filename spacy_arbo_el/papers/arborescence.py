"""Arborescence linking (Agarwal et al. 2022): dual encoders trained on directed spanning trees.

It is the package's default, so its main parts are in the core: ``ArborescencePositives.v1`` (§2.3),
``HardNegatives.v1``, the loss, and inference by ``Clustering.v1`` (A.2). Here are the two
restrictions that the paper compares it with (§3.2); configs of its baselines are in ``configs/`` of
the repository.

Other than in the paper, the default also searches exemplars, and its linker does not join mentions
of different documents unless a corpus is linked in one graph.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from spacy.util import registry

from .. import graph
from ..training.cache import EmbeddingCache
from ..training.positives import parents
from ..training.sampling import random_generator
from ..training.table import GoldTable


@registry.misc("spacy-arbo-el.Arborescence1NNPositives.v1")
@dataclass(frozen=True)
class Arborescence1NNPositives:
    """Parents over entity, mention, nearest gold mention (§3.2). As ``ArborescencePositives``.

    Use it to compare with the paper, or for entities that have few exemplars: the gold entity
    takes part in every step::

        [components.arbo_linker.objective.positives]
        @misc = "spacy-arbo-el.Arborescence1NNPositives.v1"

    with_entity: As in ``ArborescencePositives``.
    """

    with_entity: bool = False

    def __call__(self, queries: np.ndarray, table: GoldTable, cache: EmbeddingCache) -> np.ndarray:
        return parents(graph.gold_parents_1nn, self.with_entity, queries, table, cache)


@registry.misc("spacy-arbo-el.Arborescence1RandPositives.v1")
@dataclass(frozen=True)
class Arborescence1RandPositives:
    """Parents over entity, mention, random gold mention (§3.2). As ``ArborescencePositives``.

    Use it as ``Arborescence1NNPositives``, which it is about as good as::

        [components.arbo_linker.objective.positives]
        @misc = "spacy-arbo-el.Arborescence1RandPositives.v1"

    The mention is drawn from NumPy's global random state, which ``[training.seed]`` sets and a
    checkpoint saves.

    with_entity: As in ``ArborescencePositives``.
    """

    with_entity: bool = False

    def __call__(self, queries: np.ndarray, table: GoldTable, cache: EmbeddingCache) -> np.ndarray:
        return parents(_random_parents, self.with_entity, queries, table, cache)


def _random_parents(*args: Any, **kwargs: Any) -> np.ndarray:
    """``graph.gold_parents_1rand`` with a generator that NumPy's global state seeds."""
    return graph.gold_parents_1rand(*args, rng=random_generator(), **kwargs)
