"""Queries of a training step: the batch's mentions, or names of entities."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from spacy.util import registry

from ..base.errors import Errors
from ..base.settings import check_count
from .table import GoldTable


def random_generator() -> np.random.Generator:
    """A generator seeded by NumPy's global state. A checkpoint saves that state."""
    return np.random.default_rng(np.random.randint(2**31 - 1))


@runtime_checkable
class Queries(Protocol):
    """Chooses the queries of a step."""

    @property
    def needs_mentions(self) -> bool:
        """Return whether a batch without mentions gives no queries."""
        ...

    def __call__(self, mentions: np.ndarray, table: GoldTable) -> np.ndarray:
        """The queries of a step.

        mentions: (b,) int64, the labelled mentions of the batch.
        table: The gold labels.
        RETURNS: (q,) int64 nodes, each once.
        """
        ...


@registry.misc("spacy-arbo-el.MentionQueries.v1")
@dataclass(frozen=True)
class MentionQueries:
    """The mentions of the batch.

    The default, and what a linker must learn in any case::

        [components.arbo_linker.objective.queries]
        @misc = "spacy-arbo-el.MentionQueries.v1"
    """

    needs_mentions = True

    def __call__(self, mentions: np.ndarray, table: GoldTable) -> np.ndarray:
        return table.n_texts + mentions


@registry.misc("spacy-arbo-el.NameQueries.v1")
@dataclass(frozen=True)
class NameQueries:
    """Names of entities, drawn at random in each step. They do not depend on the batch (SapBERT,
    BioSyn).

    Use it with ``SynonymPositives``, so that entities without mentions in the training corpus are
    trained as well. It needs a verbalization with several texts per entity, such as ``Names``::

        [components.arbo_linker.objective.queries]
        @misc = "spacy-arbo-el.NameQueries.v1"
        n = 64

    Only texts of entities that have another text are drawn, from NumPy's global random state,
    which ``[training.seed]`` sets and a checkpoint saves. Names that differ only in upper and
    lower case count as one.

    n: The number of names in each step.
    """

    n: int = 64

    needs_mentions = False

    def __post_init__(self) -> None:
        check_count("queries.n", self.n)

    def __call__(self, mentions: np.ndarray, table: GoldTable) -> np.ndarray:
        texts = table.texts_with_synonyms
        if not len(texts):
            raise Errors.E608()
        return random_generator().choice(texts, min(self.n, len(texts)), replace=False)
