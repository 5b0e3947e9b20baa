"""Which entities are the right ones for annotated mentions."""

from typing import Sequence

import numpy as np
from spacy.tokens import Span

from ..encoders.sequences import ragged_ranges
from ..linker import ArboLinker
from ..mentions import gold_ids


def gold_positions(linker: ArboLinker, spans: Sequence[Span]) -> np.ndarray:
    """(m, g) int64, the places in the knowledge base of gold entities, -1 for none."""
    ids = [gold_ids(span) for span in spans]
    counts = np.array([len(group) for group in ids], dtype=np.int64)
    gold = np.full((len(ids), max(counts.max(initial=0), 1)), -1, dtype=np.int64)
    column = ragged_ranges(np.zeros(len(ids), dtype=np.int64), counts)
    flat = [kb_id for group in ids for kb_id in group]
    gold[np.repeat(np.arange(len(ids)), counts), column] = linker.kb.entities.positions_of(flat)
    return gold


def is_gold(entities: np.ndarray, gold: np.ndarray) -> np.ndarray:
    """(m, c) bool, which of the entities (m, c) of each mention are among its gold ones (m, g)."""
    return (entities[:, :, None] == gold[:, None, :]).any(axis=2) & (entities >= 0)
