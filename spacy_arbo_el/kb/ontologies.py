"""Names and definitions from ontologies, matched by cross-references."""

from dataclasses import replace
from pathlib import Path
from typing import Dict, Iterable, Iterator, List, Sequence, Tuple, Union

from spacy.util import ensure_path, registry
from spacy.vocab import Vocab

from ..errors import Errors
from .entity import Entity
from .importers.obo import read_obo
from .knowledge_base import ArboKB
from .loaders import KBFromPath

# Prefixes of cross-references that dictionaries leave out: "MESH:D003924" is their "D003924".
BARE = ("MESH", "MSH", "UMLS_CUI", "UMLS")


# Not a dataclass, see the loaders in loaders.py.
@registry.misc("spacy-arbo-el.KBWithOntologies.v1")
class KBWithOntologies:
    """A knowledge base enriched with names and definitions of ontologies.

    Use it to pretrain an encoder on more synonyms than the knowledge base has. Terms that no entity
    corresponds to become new entities::

        [initialize.components.arbo_linker.kb_loader]
        @misc = "spacy-arbo-el.KBWithOntologies.v1"
        path = ${paths.kb}
        ontologies = ["HumanDO.obo"]

    path: The folder of the knowledge base, or a JSONL file of entities; null for the ontologies
        alone.
    ontologies: Files in OBO format.
    """

    def __init__(
        self,
        path: Union[str, Path, None] = None,
        ontologies: Sequence[Union[str, Path]] = (),
    ) -> None:
        self.path = path
        self.ontologies = list(ontologies)
        if path is None and not self.ontologies:
            raise ValueError(Errors.E613)

    def __repr__(self) -> str:
        return f"KBWithOntologies(path={self.path!r}, ontologies={self.ontologies!r})"

    def __call__(self, vocab: Vocab) -> ArboKB:
        kb = ArboKB(vocab) if self.path is None else KBFromPath(ensure_path(self.path))(vocab)
        for ontology in self.ontologies:
            kb = ArboKB(vocab, with_terms(kb, read_obo(ontology)))
        return kb


def with_terms(kb: ArboKB, terms: Iterable[Entity]) -> Iterator[Entity]:
    """Add an ontology's names and definitions to entities.

    A term belongs to the entities of which an id, or an older id, is its own or one of its
    cross-references. The other terms follow as entities.
    """
    terms = list(terms)
    ids = [list(_ids_of(term)) for term in terms]
    flat = sorted({one for some in ids for one in some})
    position = dict(zip(flat, kb.entities.positions_of(flat).tolist()))
    terms_of: Dict[int, List[Entity]] = {}
    others = []
    for term, some in zip(terms, ids):
        owners = dict.fromkeys(position[one] for one in some if position[one] >= 0)
        for owner in owners:
            terms_of.setdefault(owner, []).append(term)
        if not owners:
            others.append(term)
    for place, entity in kb.entities.items():
        yield _merged(entity, terms_of.get(place, []))
    yield from others


def _ids_of(term: Entity) -> Iterator[str]:
    """Ids of a term: its own and its cross-references."""
    for xref in (term.id, *term.meta.get("xrefs", ())):
        yield xref
        prefix, _, name = xref.partition(":")
        if prefix in BARE and name:
            yield name


def _merged(entity: Entity, terms: Sequence[Entity]) -> Entity:
    if not terms:
        return entity
    names: Tuple[str, ...] = tuple(name for term in terms for name in term.names)
    own = {name.casefold() for name in entity.names}
    new = {name.casefold(): name for name in reversed(names) if name.casefold() not in own}
    descriptions = (one.description for one in (entity, *terms) if one.description)
    return replace(
        entity,
        aliases=(*entity.aliases, *reversed(new.values())),
        description=next(descriptions, ""),
    )
