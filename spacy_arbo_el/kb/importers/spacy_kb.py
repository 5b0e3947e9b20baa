"""Entities of spaCy's own ``InMemoryLookupKB``."""

from collections import defaultdict
from typing import Dict, Iterator, List, Optional, Tuple

from spacy.kb import InMemoryLookupKB
from spacy.vocab import Vocab

from ...errors import Errors
from ...io import PathLike, check_exists
from ..entity import Entity
from .report import ImportReport


def read_spacy_kb(path: PathLike, report: Optional[ImportReport] = None) -> Iterator[Entity]:
    """Yield the entities of a folder that ``InMemoryLookupKB.to_disk`` wrote."""
    path = check_exists(path)
    if not (path / "contents").is_file():
        raise ValueError(Errors.E010.format(path=path, missing="contents"))
    kb = InMemoryLookupKB(Vocab(), entity_vector_length=1)
    kb.from_disk(path)
    yield from entities_of(kb)


def entities_of(kb: InMemoryLookupKB) -> Iterator[Entity]:
    """The entities of spaCy's knowledge base, with their frequencies.

    Its vectors are left out, since they are from another encoder. spaCy's entities have no title:
    the alias with the highest prior probability becomes the title.
    """
    aliases: Dict[str, List[Tuple[float, str]]] = defaultdict(list)
    frequency: Dict[str, float] = {}
    for alias in kb.get_alias_strings():
        for candidate in kb.get_alias_candidates(alias):
            aliases[candidate.entity_].append((-candidate.prior_prob, alias))
            frequency[candidate.entity_] = candidate.entity_freq
    for entity_id in kb.get_entity_strings():
        names = [alias for _, alias in sorted(aliases[entity_id])]
        title, rest = (names[0], tuple(names[1:])) if names else ("", ())
        yield Entity(entity_id, title, aliases=rest, frequency=frequency.get(entity_id, 0.0))
