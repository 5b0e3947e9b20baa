"""Settings of the search for entities and exemplars, and its building, also by added rows alone."""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from spacy.util import registry

from ..base.settings import check_count
from ..kb.knowledge_base import ArboKB
from ..kb.vectors import VectorRows
from ..kb.verbalizations import Verbalization
from .exemplars import ExemplarStore
from .index.protocol import BuildIndex, Index
from .retriever import EntitySearch, Retriever
from .similarity import Similarity


@registry.misc("spacy-arbo-el.Retriever.v1")
@dataclass(frozen=True)
class RetrieverSettings:
    """Settings of the search for candidates.

    The defaults suit most knowledge bases. This changes how many candidates are found::

        [components.arbo_linker.retriever]
        @misc = "spacy-arbo-el.Retriever.v1"
        n_candidates = 128

    verbalization: The texts that an entity is encoded from.
    similarity: How vectors are compared.
    index: Builds the search index over them.
    n_candidates: How many entities are searched for each mention, and kept in its ranking.
    match_types: Whether a mention may only be linked to entities that have its label as a type,
        or that have no type.
    n_exemplar_entities: How many entities are searched by their exemplars, each by its nearest one
        (MOLEMAN, §3). These come after the nearest exemplars, of whatever entities, that the
        inference procedure asks for. 0 for these alone. Set it where entities have no texts: each
        mention then has up to this many candidate entities.
    """

    verbalization: Verbalization
    similarity: Similarity
    index: BuildIndex
    n_candidates: int = 64
    match_types: bool = False
    n_exemplar_entities: int = 0

    def __post_init__(self) -> None:
        check_count("retriever.n_candidates", self.n_candidates, least=1)
        check_count("retriever.n_exemplar_entities", self.n_exemplar_entities)


@dataclass(frozen=True)
class _Built:
    """An index that was built.

    source: Equal for two stores of vectors if one is the other with rows added at the end.
    rows: (n,) int64, the rows of the store that it was built over.
    """

    source: Hashable
    rows: np.ndarray
    index: Index


class RetrieverBuilder:
    """Builds a ``Retriever``, reusing indexes between builds.

    settings: The texts, the similarity and the search.
    """

    def __init__(self, settings: RetrieverSettings):
        self.settings = settings
        self._texts: _Built | None = None
        self._exemplars: _Built | None = None

    def build(self, kb: ArboKB, exemplars: ExemplarStore) -> Retriever:
        """Build the search over entities and exemplars. All of them must have their vectors."""
        similarity = self.settings.similarity
        entities = exemplars.entities(kb)
        usable = np.flatnonzero(exemplars.readable & (entities >= 0))
        return Retriever(
            EntitySearch(kb.rows, self._text_index(kb), similarity),
            self._exemplar_index(exemplars, usable),
            usable,
            entities[usable],
            similarity,
            self.settings.n_exemplar_entities,
        )

    def _text_index(self, kb: ArboKB) -> Index:
        source = (kb, kb.vectors.epoch)
        rows = np.arange(len(kb.rows))
        previous = self._previous(self._texts, source, rows)
        index = self.settings.index(
            kb.rows, self.settings.similarity, kb.vectors.index, previous
        )
        kb.vectors.index = index.attached
        self._texts = _Built(source, rows, index)
        return index

    def _exemplar_index(self, exemplars: ExemplarStore, usable: np.ndarray) -> Index:
        """usable: (k,) int64 rows of the exemplars that are searched."""
        source = (exemplars, exemplars.epoch)
        previous = self._previous(self._exemplars, source, usable)
        if previous is None or len(previous) < len(usable):
            rows = VectorRows(exemplars.vectors[usable], usable)
            previous = self.settings.index(
                rows, self.settings.similarity, None, previous
            )
        self._exemplars = _Built(source, usable, previous)
        return previous

    @staticmethod
    def _previous(
        built: _Built | None, source: Hashable, rows: np.ndarray
    ) -> Index | None:
        """The index that was built, if it covers the first of these rows."""
        if built is None or source != built.source:
            return None
        return (
            built.index
            if np.array_equal(rows[: len(built.rows)], built.rows)
            else None
        )
