"""Entities taken out of the knowledge base, so that it is known what is missing from it."""

from typing import Iterable, List, Set

import numpy as np
from spacy.tokens import Doc, Span

from ..corpora.reader import copied
from ..errors import Errors
from ..kb.entity import NIL
from ..kb.knowledge_base import ArboKB
from ..linker import ArboLinker
from ..mentions import ID_SEPARATOR, gold_ids


def drop_entities(linker: ArboLinker, docs: Iterable[Doc], share: float, seed: int = 0) -> Set[str]:
    """Take some of the entities that annotated docs mention out of a linker's knowledge base.

    Their exemplars no longer count. (The arborescence paper drops 10 %, §3.5.)

    share: Of the entities mentioned, 0 to 1; chosen at random by ``seed``.
    RETURNS: The ids of those dropped.
    """
    if not 0.0 <= share <= 1.0:
        raise ValueError(Errors.E711.format(value=share))
    spans = (span for doc in docs for span in linker.span_getter(doc))
    there = sorted({known for span in spans for known in _known(linker.kb, span)})
    count = round(share * len(there))
    chosen = np.random.default_rng(seed).choice(len(there), size=count, replace=False)
    dropped = {there[i] for i in chosen.tolist()}
    linker.kb.remove(sorted(dropped))
    return dropped


def without_dropped(docs: Iterable[Doc], kb: ArboKB) -> List[Doc]:
    """Copies of annotated docs in which mentions of what the KB has not are NIL.

    Their ``span.id_`` says which of them are the same.
    """
    return [_without_dropped(doc, kb) for doc in docs]


def _known(kb: ArboKB, span: Span) -> List[str]:
    return [kb.get(kb_id).id for kb_id in gold_ids(span) if kb_id in kb]


def _without_dropped(doc: Doc, kb: ArboKB) -> Doc:
    def renamed(copy: Doc, span: Span) -> Span:
        ids, known = gold_ids(span), _known(kb, span)
        if not ids or known:
            name, same_as = ID_SEPARATOR.join(known) or span.kb_id_, span.id_
        else:
            name, same_as = NIL, ID_SEPARATOR.join(sorted(ids))
        return Span(copy, span.start, span.end, span.label, kb_id=name, span_id=same_as)

    return copied(doc, renamed)
