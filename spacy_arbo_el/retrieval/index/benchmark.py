"""Benchmark of indexes: speed, size and recall. Measured over the vectors that they are to
search.
"""

import time
from dataclasses import dataclass
from typing import Dict, Iterator, Optional, Sequence, Tuple

import numpy as np

from ...arrays import TopK
from ...kb.vectors import VectorRows
from ..similarity import Similarity
from .approximate import ApproximateIndex
from .exact import FlatIndex
from .faiss_index import FaissIndex
from .protocol import Index


@dataclass(frozen=True)
class Measurement:
    """Costs and recall of an index.

    builder: What built it.
    recall: The share of the true k nearest rows that it returns, for several k.
    milliseconds: The time of a query, in a batch of all.
    speedup: How many times faster than exact search it is.
    build_seconds: How long it took to build; 0 where it is the same index as the one before it.
    index: The index itself.
    """

    builder: FaissIndex
    recall: Dict[int, float]
    milliseconds: float
    speedup: float
    build_seconds: float
    index: ApproximateIndex


def measure(
    rows: VectorRows,
    similarity: Similarity,
    queries: np.ndarray,
    builders: Sequence[FaissIndex],
    counts: Sequence[int] = (1, 64),
    usable: Optional[np.ndarray] = None,
) -> Iterator[Measurement]:
    """Build and search indexes one after the other. Those that would be exact are left out.

    queries: (m, width) float32, prepared.
    builders: Those that search the same index come one after the other.
    counts: The numbers of nearest rows that recall is measured for.
    usable: (rows,) bool, those that may be returned; None for all.
    """
    flat = FlatIndex(similarity.prepare(rows.array()), similarity)
    k = min(max(counts), len(rows))
    exact_seconds, exact = _timed(flat, queries, k, usable)
    attached = None
    for builder in builders:
        start = time.perf_counter()
        index = builder(rows, similarity, attached)
        build_seconds = time.perf_counter() - start
        if not isinstance(index, ApproximateIndex):
            continue
        is_same = attached is not None and attached.about == getattr(index.attached, "about", None)
        attached = index.attached
        seconds, nearest = _timed(index, queries, k, usable)
        yield Measurement(
            builder,
            {count: _recall(nearest.first(count), exact.first(count)) for count in counts},
            1000 * seconds / len(queries),
            exact_seconds / seconds,
            0.0 if is_same else build_seconds,
            index,
        )


def _timed(
    index: Index, queries: np.ndarray, k: int, usable: Optional[np.ndarray]
) -> Tuple[float, TopK]:
    index.search(queries[:8], k, usable)
    start = time.perf_counter()
    nearest = index.search(queries, k, usable)
    return time.perf_counter() - start, nearest


def _recall(nearest: TopK, exact: TopK) -> float:
    return float((nearest.columns_of(exact.ids) >= 0).sum() / max(exact.valid.sum(), 1))
