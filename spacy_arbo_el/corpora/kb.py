"""A knowledge base from a corpus."""

from pathlib import Path

from spacy.util import ensure_path, registry
from spacy.vocab import Vocab

from ..kb.entity import Entity
from ..kb.knowledge_base import ArboKB
from ..mentions.record import gold_ids
from .docbin import read_docs


@registry.misc("spacy-arbo-el.KBFromCorpus.v1")
class KBFromCorpus:
    """A knowledge base of a corpus's gold ids, without names. The corpus is a ``.spacy`` file.

    Use it to link by exemplars alone (MOLEMAN, §3), with the verbalization ``NoText.v1``::

        [initialize.components.arbo_linker.kb_loader]
        @misc = "spacy-arbo-el.KBFromCorpus.v1"
        path = ${paths.train}

    path: The file, or a folder of files.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"KBFromCorpus(path={self.path!r})"

    def __call__(self, vocab: Vocab) -> ArboKB:
        spans = (
            span
            for doc in read_docs(ensure_path(self.path), vocab)
            for group in (doc.ents, *doc.spans.values())
            for span in group
        )
        ids = dict.fromkeys(kb_id for span in spans for kb_id in gold_ids(span))
        return ArboKB(vocab, [Entity(kb_id, meta={"unnamed": True}) for kb_id in ids])
