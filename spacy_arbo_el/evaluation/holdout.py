"""Holdout entities: removed, so that their mentions become NIL."""

from collections.abc import Iterable

import numpy as np
from spacy.tokens import Doc, Span

from ..base.settings import check_share
from ..corpora.docs import copied
from ..kb.entity import NIL
from ..kb.knowledge_base import ArboKB
from ..linker import ArboLinker
from ..mentions.record import ID_SEPARATOR, gold_ids


def remove_entities(
    linker: ArboLinker, docs: Iterable[Doc], share: float, seed: int = 0
) -> set[str]:
    """Remove some entities of annotated documents from the KB.

    Their exemplars are not searched any more. (The arborescence paper's code removes 10 %.)

    share: The share of the entities in the documents to remove, 0 to 1.
    RETURNS: The ids of the removed entities.
    """
    check_share("drop", share)
    spans = (span for doc in docs for span in linker.mentions.getter(doc))
    mentioned = sorted(
        {kb_id for span in spans for kb_id in _existing_ids(linker.kb, span)}
    )
    count = round(share * len(mentioned))
    chosen = np.random.default_rng(seed).choice(
        len(mentioned), size=count, replace=False
    )
    removed = {mentioned[i] for i in chosen.tolist()}
    linker.kb.remove(sorted(removed))
    return removed


def with_removed_as_nil(docs: Iterable[Doc], kb: ArboKB) -> list[Doc]:
    """Copies of annotated documents. Mentions of entities that the KB doesn't contain become NIL.

    The ``span.id_`` of such a mention is the id of its entity.
    """

    def copy_span(copy: Doc, span: Span) -> Span:
        ids = gold_ids(span)
        existing = _existing_ids(kb, span)
        if not ids or existing:
            kb_id = ID_SEPARATOR.join(existing) or span.kb_id_
            span_id = span.id_
        else:
            kb_id = NIL
            span_id = ID_SEPARATOR.join(sorted(ids))
        return Span(
            copy, span.start, span.end, span.label, kb_id=kb_id, span_id=span_id
        )

    return [copied(doc, copy_span) for doc in docs]


def _existing_ids(kb: ArboKB, span: Span) -> list[str]:
    """Gold ids that exist, as ids of their entities."""
    return [kb.get(kb_id).id for kb_id in gold_ids(span) if kb_id in kb]
