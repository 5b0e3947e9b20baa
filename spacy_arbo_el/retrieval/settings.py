"""Settings of the search for entities and exemplars, and its building, also by added rows alone."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass

import numpy as np
from spacy.util import registry

from ..base.settings import check_count
from ..kb.attached_index import AttachedIndex
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


class RetrieverBuilder:
    """Builds a ``Retriever``, reusing indexes between builds.

    settings: The texts, the similarity and the search.
    """

    def __init__(self, settings: RetrieverSettings):
        self.settings = settings
        # Of texts and of exemplars: the store, the rows that an index is over, and the index.
        self._built: dict[str, tuple[Hashable, np.ndarray, Index | None]] = {}

    def build(self, kb: ArboKB, exemplars: ExemplarStore) -> Retriever:
        """Build the search over entities and exemplars. All of them must have their vectors."""
        similarity = self.settings.similarity
        source = kb, kb.vectors.epoch
        everything = np.arange(len(kb.rows))
        texts = self._index(
            "texts", source, everything, lambda: kb.rows, kb.vectors.index
        )
        kb.vectors.index = texts.attached
        entities = exemplars.entities(kb)
        usable = np.flatnonzero(exemplars.readable & (entities >= 0))
        return Retriever(
            EntitySearch(kb.rows, texts, similarity),
            self._index(
                "exemplars",
                (exemplars, exemplars.epoch),
                usable,
                lambda: VectorRows(exemplars.vectors[usable], usable),
            ),
            usable,
            entities[usable],
            similarity,
            self.settings.n_exemplar_entities,
        )

    def _index(
        self,
        kind: str,
        source: Hashable,
        rows: np.ndarray,
        read: Callable[[], VectorRows],
        attached: AttachedIndex | None = None,
    ) -> Index:
        """An index over rows of a store: that which was built, extended by what was added to it.

        source: Equal for two stores if one is the other with rows added at the end.
        rows: (n,) int64, the rows of the store.
        read: Gives the vectors of the rows.
        attached: An index that is saved beside them.
        """
        earlier, before, index = self._built.get(kind, (source, rows, None))
        if earlier != source or not np.array_equal(rows[: len(before)], before):
            index = None
        if index is None or len(index) < len(rows):
            settings = self.settings
            index = settings.index(read(), settings.similarity, attached, index)
        self._built[kind] = source, rows, index
        return index
