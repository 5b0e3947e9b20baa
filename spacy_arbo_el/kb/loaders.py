"""Functions that make a knowledge base, for ``[initialize.components.arbo_linker.kb_loader]``."""

from pathlib import Path
from typing import Callable

from spacy.util import ensure_path, registry
from spacy.vocab import Vocab

from ..errors import Errors
from .importers import read_entities_jsonl
from .knowledge_base import ArboKB


@registry.misc("spacy-arbo-el.KBFromPath.v1")
def kb_from_path(path: Path) -> Callable[[Vocab], ArboKB]:
    """A knowledge base from a folder that ``ArboKB.to_disk`` wrote, or from a JSONL of entities."""

    def load(vocab: Vocab) -> ArboKB:
        place = ensure_path(path)
        if not place.exists():
            hint = "Give the folder of a saved knowledge base, or a JSONL file of entities."
            raise ValueError(Errors.E101.format(path=place, hint=hint))
        if place.is_dir():
            return ArboKB(vocab).from_disk(place)
        return ArboKB(vocab, read_entities_jsonl(place))

    return load


@registry.misc("spacy-arbo-el.EmptyKB.v1")
def empty_kb() -> Callable[[Vocab], ArboKB]:
    """A knowledge base without entities: every mention is new."""
    return ArboKB
