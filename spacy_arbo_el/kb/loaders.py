"""Functions that make a knowledge base, for ``[initialize.components.arbo_linker.kb_loader]``."""

from pathlib import Path
from typing import Callable

from spacy.util import ensure_path, registry
from spacy.vocab import Vocab

from ..errors import Errors
from .entity import Entity
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


@registry.misc("spacy-arbo-el.KBFromCorpus.v1")
def kb_from_corpus(path: Path) -> Callable[[Vocab], ArboKB]:
    """A knowledge base of the ids that an annotated ``.spacy`` links to, without any names.

    For linking by exemplars alone (MOLEMAN, §3), with ``NoText.v1`` as verbalization.
    """

    def load(vocab: Vocab) -> ArboKB:
        from ..corpora.reader import read_docs
        from ..mentions import gold_ids

        spans = (
            span
            for doc in read_docs(ensure_path(path), vocab)
            for group in (doc.ents, *doc.spans.values())
            for span in group
        )
        ids = dict.fromkeys(kb_id for span in spans for kb_id in gold_ids(span))
        return ArboKB(vocab, [Entity(kb_id, meta={"unnamed": True}) for kb_id in ids])

    return load


@registry.misc("spacy-arbo-el.EmptyKB.v1")
def empty_kb() -> Callable[[Vocab], ArboKB]:
    """A knowledge base without entities: every mention is new."""
    return ArboKB
