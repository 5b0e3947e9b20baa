"""Settings of the search for entities and exemplars."""

from dataclasses import dataclass

from spacy.util import registry

from ..base.settings import check_count
from ..kb.verbalizations import Verbalization
from .index.protocol import BuildIndex
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
