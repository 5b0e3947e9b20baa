"""Annotated mentions and their gold entities."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from spacy.tokens import Doc, Span
from spacy.util import minibatch

from ..base.arrays import int_array, minus_ones
from ..base.errors import Errors
from ..kb.knowledge_base import ArboKB
from .getters import SpanGetter
from .reader import MentionReader
from .record import gold_ids

# Mentions with a common element are of the same entity. Empty if the entity is not annotated.
Identity = set[str]
# Documents of a batch.
BATCH = 64


def annotated_batches(
    reader: MentionReader, docs: Iterable[Doc]
) -> Iterator[list[list[Span]]]:
    """Batch the annotated mentions to link. Each has at least one mention.

    docs: Annotated documents. A mention without a ``kb_id_`` is not annotated.
    RETURNS: For each batch the mentions of each document.
    """
    for batch in minibatch(docs, BATCH):
        spans = [
            [s for s in reader.mentions_to_link(doc) if s.kb_id_] for doc in batch
        ]
        if any(spans):
            yield spans


def gold_positions(kb: ArboKB, gold_ids: Sequence[Sequence[str]]) -> np.ndarray:
    """Positions of gold entities in the KB: (m, g) int64, -1 for none.

    gold_ids: The gold ids of each of m mentions.
    """
    counts = int_array([len(ids) for ids in gold_ids])
    gold = minus_ones((len(gold_ids), max(counts.max(initial=0), 1)))
    flat = [kb_id for ids in gold_ids for kb_id in ids]
    gold[np.arange(gold.shape[1]) < counts[:, None]] = kb.entities.positions_of(flat)
    return gold


def current_ids(
    kb: ArboKB, gold_ids: Sequence[Sequence[str]]
) -> list[tuple[str, ...]]:
    """The current gold ids of mentions, each once. Those of entities after a merge.

    gold_ids: The gold ids of each of m mentions. Ids that lead to no entity stay unchanged.
    """
    now = kb.entities.current_ids(kb_id for ids in gold_ids for kb_id in ids)
    return [tuple(dict.fromkeys(now[kb_id] for kb_id in ids)) for ids in gold_ids]


def is_gold(entities: np.ndarray, gold: np.ndarray) -> np.ndarray:
    """Mark candidates (m, c) that are gold (m, g): bool."""
    return (entities[:, :, None] == gold[:, None, :]).any(axis=2) & (entities >= 0)


def identities_of(kb: ArboKB, spans: Sequence[Span]) -> list[Identity]:
    """Entity of each annotated mention. A new one is NIL with an ``id_``."""
    return [
        set(ids) if ids else ({f"new:{span.id_}"} if span.id_ else set())
        for ids, span in zip(
            current_ids(kb, [gold_ids(span) for span in spans]), spans
        )
    ]


def check_some_annotated(docs: Iterable[Doc], getter: SpanGetter, path: Path) -> None:
    """Raise ValueError where no document has an annotated mention."""
    if not any(span.kb_id_ for doc in docs for span in getter(doc)):
        raise Errors.E726(path=path)
