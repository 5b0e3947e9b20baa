"""Approximate search with FAISS, its candidates ranked again by the vectors themselves.

FAISS gives more candidates than are asked for from codes that are small enough for memory; their
exact similarities come from the knowledge base's rows, which may lie in a mapped file. Rows that
were added after the index was built are searched exactly beside it until they are many.
"""

import warnings
from pathlib import Path
from typing import Any, Callable, Dict, Optional, Tuple

import numpy as np
from thinc.api import get_torch_default_device

from ..errors import Errors, Warnings
from ..kb.saving import AttachedIndex
from ..kb.vectors import VectorRows
from . import rerank
from .index import DECISIVE, FlatIndex, check_width, faiss
from .similarity import Similarity

# Rows searched exactly beside the index before they are put into it.
TAIL = 8192
# Rows put into an index at a time.
ADDED = 65536
SUFFIX = ".faiss"


class ApproximateIndex:
    """A FAISS index over codes of the rows, and the rows.

    index: A trained FAISS index that holds the first ``index.ntotal`` rows, prepared.
    rows: All rows, raw.
    about: What the index is: its kind, its settings, its metric.
    parameters: Function from an ``IDSelector`` or None to FAISS's search parameters.
    refine: How many candidates FAISS is asked for, for each one that is wanted.
    """

    def __init__(
        self,
        index: Any,
        rows: VectorRows,
        similarity: Similarity,
        about: Dict[str, Any],
        parameters: Callable[[Any], Any],
        refine: float,
    ):
        self.index, self.rows, self.similarity = index, rows, similarity
        self.about, self.parameters, self.refine = about, parameters, refine
        self._on_gpu: Any = None
        if len(rows) - index.ntotal > TAIL:
            add_rows(index, rows, similarity)
        late = np.arange(index.ntotal, len(rows))
        self._tail = FlatIndex(similarity.prepare(rows.take(late)), similarity)
        self.attached: Optional[AttachedIndex] = AttachedIndex(
            {**about, "rows": index.ntotal, "suffix": SUFFIX}, self.write
        )

    def __len__(self) -> int:
        return len(self.rows)

    def size(self) -> int:
        """Bytes of the index, as it is saved."""
        return len(faiss.serialize_index(self.index))

    def write(self, path: Path) -> None:
        """Write the FAISS index, in the form for CPUs."""
        faiss.write_index(self.index, str(path))

    def search(
        self, queries: np.ndarray, k: int, allowed: Optional[np.ndarray] = None
    ) -> Tuple[np.ndarray, np.ndarray]:
        """The k nearest rows of each query among the candidates that FAISS gives, see ``Index``."""
        check_width(queries, self.rows.width)
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        k = min(k, len(self))
        wanted = min(int(max(k, DECISIVE) * self.refine), len(self))
        candidates = self._candidates(queries, wanted, allowed)
        similarities = np.full((len(queries), k), -np.inf, dtype=np.float32)
        found = np.full((len(queries), k), -1, dtype=np.int64)
        near, rows = self._ranked(queries, candidates, k)
        similarities[:, : near.shape[1]], found[:, : near.shape[1]] = near, rows
        return similarities, found

    def _candidates(self, queries: np.ndarray, k: int, allowed: Optional[np.ndarray]) -> np.ndarray:
        """(m, c) int64 rows, each once, -1 for none."""
        late = self.index.ntotal
        rest = None if allowed is None else allowed[late:]
        _, tail = self._tail.search(queries, k, rest)
        tail = np.where(tail >= 0, tail + late, -1)
        if get_torch_default_device().type == "cuda" and self._is_on_gpu():
            found = self._candidates_on_gpu(queries, k, allowed)
        else:
            selector = None
            if allowed is not None:
                bits = np.packbits(allowed[:late], bitorder="little")
                selector = faiss.IDSelectorBitmap(bits)
            _, found = self.index.search(queries, k, params=self.parameters(selector))
        return np.concatenate([found, tail], axis=1)

    def _is_on_gpu(self) -> bool:
        """Have a copy on the GPU, where FAISS has a form for it there; once."""
        if self._on_gpu is None:
            try:
                self._on_gpu = _to_gpus(self.index)
            except (RuntimeError, AttributeError):
                warnings.warn(Warnings.W303.format(kind=self.about["kind"]))
                self._on_gpu = False
        return self._on_gpu is not False

    def _candidates_on_gpu(self, queries, k, allowed):  # pragma: no cover - needs a GPU
        # FAISS on a GPU gives at most 2048, and can't leave any out.
        wide = min(k if allowed is None else 4 * k, 2048, self.index.ntotal)
        _, found = self._on_gpu.search(queries, wide)
        if allowed is not None:
            found[(found >= 0) & ~allowed[found]] = -1
        return found

    def _ranked(self, queries: np.ndarray, candidates: np.ndarray, k: int):
        scores = rerank.similarities(self.rows, queries, candidates, self.similarity)
        if scores.shape[1] > k:
            best = np.argpartition(-scores, k - 1, axis=1)[:, :k]
            scores = np.take_along_axis(scores, best, axis=1)
            candidates = np.take_along_axis(candidates, best, axis=1)
        order = np.lexsort((candidates, -scores), axis=1)
        scores, rows = (np.take_along_axis(a, order, axis=1) for a in (scores, candidates))
        return scores, np.where(np.isfinite(scores), rows, -1)


def add_rows(index: Any, rows: VectorRows, similarity: Similarity) -> None:
    """Put the rows that a trained index lacks into it."""
    for start in range(index.ntotal, len(rows), ADDED):
        new = rows.take(np.arange(start, min(start + ADDED, len(rows))))
        index.add(np.ascontiguousarray(similarity.prepare(new)))


def read_attached(attached: Optional[AttachedIndex], about: Dict[str, Any]) -> Any:
    """The FAISS index kept beside the rows, None where there is none of that kind."""
    if attached is None or any(attached.about.get(key) != value for key, value in about.items()):
        return None
    if isinstance(attached.source, Path):
        # A writer may have put another in its place since.
        return read_index(attached.source) if attached.source.is_file() else None
    return attached.source.__self__.index  # type: ignore[attr-defined]


def read_index(path: Path) -> Any:
    """A FAISS index from its file; ValueError where it can't be read."""
    try:
        return faiss.read_index(str(path))
    except RuntimeError as error:
        problem = str(error).splitlines()[0]
        raise ValueError(Errors.E303.format(path=path, problem=problem)) from error


def sample(rows: VectorRows, count: int, similarity: Similarity) -> np.ndarray:
    """Some rows, evenly spread and always the same ones, prepared: (count, width) float32."""
    chosen = np.unique(np.linspace(0, len(rows) - 1, min(count, len(rows))).astype(np.int64))
    return similarity.prepare(rows.take(chosen))


def _to_gpus(index: Any) -> Any:
    """A copy of the index on the GPU, or in parts on all of them.

    RuntimeError or AttributeError where FAISS has no form of it for GPUs.
    """
    options = faiss.GpuMultipleClonerOptions()
    options.useFloat16 = True
    options.shard = True
    return faiss.index_cpu_to_all_gpus(index, co=options)
