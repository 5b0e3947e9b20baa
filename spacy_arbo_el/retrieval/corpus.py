"""The neighbours of a corpus: found batch by batch, put together, joined by its mentions."""

from dataclasses import replace
from typing import List, Optional, Sequence

import numpy as np

from .candidates import Candidates
from .neighbours import Neighbours

COLUMNS = (
    "entities",
    "entity_similarity",
    "exemplars",
    "exemplar_similarity",
    "exemplar_entity",
)


def narrow(neighbours: Neighbours, count: int, candidates: Optional[Candidates]) -> Neighbours:
    """Neighbours with ``count`` entities a mention at most, and other candidates."""
    kept = {name: getattr(neighbours, name)[:, :count].copy() for name in COLUMNS[:2]}
    return replace(neighbours, **kept, candidates=candidates)


def concatenate(parts: Sequence[Neighbours]) -> Neighbours:
    """The mentions of several batches one after the other, without neighbours among themselves."""
    starts = np.cumsum([0, *(part.document.max(initial=-1) + 1 for part in parts)])
    document = np.concatenate([part.document + start for part, start in zip(parts, starts)])
    arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in COLUMNS}
    arrays["mentions"] = np.zeros((len(document), 0), dtype=np.int64)
    arrays["mention_similarity"] = np.zeros((len(document), 0), dtype=np.float32)
    weighed = [part.candidates for part in parts if part.candidates is not None]
    candidates = None
    if weighed:
        columns = [column for column in zip(*weighed) if column[0] is not None]
        candidates = Candidates(*map(np.concatenate, columns))
    decided, corrected = (_marks(parts, name) for name in ("decided", "corrected"))
    known = [part.vectors for part in parts if part.vectors is not None]
    return Neighbours(
        document,
        candidates=candidates,
        decided=decided,
        corrected=corrected,
        vectors=np.concatenate(known) if len(known) == len(parts) else None,
        euclidean=parts[0].euclidean,
        **arrays,
    )


def _marks(parts: Sequence[Neighbours], name: str) -> Optional[np.ndarray]:
    marks: List[Optional[np.ndarray]] = [getattr(part, name) for part in parts]
    if all(mark is None for mark in marks):
        return None
    sizes = map(len, parts)
    filled = [np.zeros(n, dtype=bool) if m is None else m for m, n in zip(marks, sizes)]
    return np.concatenate(filled)


def with_mentions(neighbours: Neighbours, found: np.ndarray, similarity: np.ndarray) -> Neighbours:
    """Neighbours with those that mentions are to each other: (m, k) int64 and float32.

    None where a person has had the last word: no other mention carries that one.
    """
    none = np.zeros(len(neighbours), dtype=bool)
    cut = none if neighbours.corrected is None else neighbours.corrected
    return _without(
        replace(neighbours, mentions=found, mention_similarity=similarity), cut[:, None]
    )


def same_label_only(neighbours: Neighbours, labels: np.ndarray) -> Neighbours:
    """Neighbours in which mentions of other labels, (m,) of any kind, are none to each other."""
    other = labels[neighbours.mentions] != labels[:, None]
    return _without(neighbours, other)


def _without(neighbours: Neighbours, cut: np.ndarray) -> Neighbours:
    return replace(
        neighbours,
        mentions=np.where(cut, -1, neighbours.mentions),
        mention_similarity=np.where(cut, np.float32(-np.inf), neighbours.mention_similarity),
    )
