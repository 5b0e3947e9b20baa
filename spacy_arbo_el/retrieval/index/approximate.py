"""Approximate search with FAISS and exact rescoring.

FAISS searches codes of the vectors that are small enough for memory, and gives more candidates
than are asked for. Their exact similarities come from the knowledge base's rows, which may lie in
a mapped file. Rows that are added after the index was built are searched exactly beside it, until
there are so many that they are added to it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from ...base.arrays import TopK
from ...base.devices import on_gpu
from ...base.errors import Errors, Warnings
from ...base.threads import map_in_threads
from ...kb.attached_index import AttachedIndex
from ...kb.vectors import VectorRows
from ..similarity import Similarity
from .exact import (
    COSINE,
    DISTANCE,
    INNER,
    FlatIndex,
    best_rows,
    check_width,
    score_pairs,
)

# Rows that are searched exactly beside the index, before they are added to it.
MAX_TAIL = 8192
# Rows that are added to an index at a time.
ROWS_PER_BLOCK = 65536
# Candidates that FAISS gives at least, times the rescore factor.
MIN_CANDIDATES = 16
SUFFIX = ".faiss"
# The float32 of every float16: converting by table is faster than by arithmetic.
_FLOAT16_VALUES = (
    np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
)
# Candidates whose vectors are read at a time.
READ = 4096


@dataclass(frozen=True)
class FaissWriter:
    """Writes a FAISS index to a file. The format is that for CPUs."""

    index: Any

    def __call__(self, path: Path) -> None:
        faiss.write_index(self.index, str(path))


class ApproximateIndex:
    """A FAISS index over codes, and the raw rows.

    index: A trained FAISS index that holds the first ``index.ntotal`` rows, prepared.
    rows: All rows, raw.
    about: What the index is: its kind, its metric, its width.
    rescore: How many candidates FAISS gives for each result that is asked for.
    """

    def __init__(
        self,
        index: Any,
        rows: VectorRows,
        similarity: Similarity,
        details: dict[str, Any],
        rescore: float,
    ):
        self.index = index
        self.rows = rows
        self.similarity = similarity
        self.about = details
        self.rescore = rescore
        self._on_gpu: Any = None
        if len(rows) - index.ntotal > MAX_TAIL:
            add_rows(index, rows, similarity)
        late = np.arange(index.ntotal, len(rows))
        self._tail = FlatIndex(similarity.prepare(rows.take(late)), similarity)
        self.attached: AttachedIndex | None = AttachedIndex(
            {**details, "rows": index.ntotal, "suffix": SUFFIX}, FaissWriter(index)
        )

    def __len__(self) -> int:
        return len(self.rows)

    def search(
        self, queries: np.ndarray, k: int, allowed: np.ndarray | None = None
    ) -> TopK:
        """Nearest rows of queries among FAISS's candidates. See ``Index``."""
        check_width(queries, self.rows.width)
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        k = min(k, len(self))
        n_searched = min(int(max(k, MIN_CANDIDATES) * self.rescore), len(self))
        candidates = self._candidates(queries, n_searched, allowed)
        scores = similarities(self.rows, queries, candidates, self.similarity)
        return best_rows(candidates, scores, k).resized(k)

    def _candidates(
        self, queries: np.ndarray, k: int, allowed: np.ndarray | None
    ) -> np.ndarray:
        """(m, c) int64 rows, each once, -1 for none."""
        late = self.index.ntotal
        tail = self._tail.search(
            queries, k, None if allowed is None else allowed[late:]
        ).ids
        tail = np.where(tail >= 0, tail + late, -1)
        if on_gpu() and self._is_on_gpu():
            rows = self._candidates_on_gpu(queries, k, allowed)
        else:
            parameters = None
            if allowed is not None:
                bits = np.packbits(allowed[:late], bitorder="little")
                parameters = restricted(self.index, faiss.IDSelectorBitmap(bits))
            _, rows = self.index.search(queries, k, params=parameters)
        if rows.max(initial=-1) >= late:
            problem = f"it has the row {rows.max()}, and there are {late}"
            raise Errors.E303(path="of the knowledge base", problem=problem)
        return np.concatenate([rows, tail], axis=1)

    def _is_on_gpu(self) -> bool:
        """Copy the index to the GPU once, if supported."""
        if self._on_gpu is None:
            try:
                self._on_gpu = _to_gpus(self.index)
            except (RuntimeError, AttributeError):
                Warnings.W303.warn(kind=self.about["kind"])
                self._on_gpu = False
        return self._on_gpu is not False

    def _candidates_on_gpu(  # pragma: no cover - needs a GPU
        self, queries: np.ndarray, k: int, allowed: np.ndarray | None
    ) -> np.ndarray:
        # FAISS on a GPU returns at most 2048 rows and can't leave any out.
        wide = min(k if allowed is None else 4 * k, 2048, self.index.ntotal)
        _, rows = self._on_gpu.search(queries, wide)
        if allowed is not None:
            rows[(rows >= 0) & ~allowed[rows]] = -1
        return rows


def parts(index: Any) -> Iterator[Any]:
    """A FAISS index and its parts, outermost first."""
    index = faiss.downcast_index(index)
    yield index
    for name in ("index", "quantizer", "storage"):
        if getattr(index, name, None) is not None:
            yield from parts(getattr(index, name))


def n_lists(index: Any) -> int:
    """Number of inverted lists; 0 for other indexes."""
    return getattr(faiss.try_extract_index_ivf(index), "nlist", 0)


def restricted(index: Any, selector: Any) -> Any:
    """FAISS's search parameters, for a subset or all rows.

    selector: A FAISS ``IDSelector``. RuntimeError where FAISS can't search such an index with it.
    """
    index = faiss.downcast_index(index)
    if isinstance(index, faiss.IndexPreTransform):
        inner = restricted(index.index, selector)
        return faiss.SearchParametersPreTransform(index_params=inner)
    if isinstance(index, faiss.IndexIVF):
        return faiss.SearchParametersIVF(
            nprobe=index.nprobe, max_codes=index.max_codes, sel=selector
        )
    if isinstance(index, faiss.IndexHNSW):
        return faiss.SearchParametersHNSW(efSearch=index.hnsw.efSearch, sel=selector)
    if isinstance(index, (faiss.IndexFlat, faiss.IndexScalarQuantizer)):
        return faiss.SearchParameters(sel=selector)
    raise RuntimeError("FAISS can't search such an index for entities of one type")


def add_rows(index: Any, rows: VectorRows, similarity: Similarity) -> None:
    """Add rows that a trained index lacks."""
    for start in range(index.ntotal, len(rows), ROWS_PER_BLOCK):
        block = rows.take(np.arange(start, min(start + ROWS_PER_BLOCK, len(rows))))
        index.add(np.ascontiguousarray(similarity.prepare(block)))


def read_attached(attached: AttachedIndex | None, details: dict[str, Any]) -> Any:
    """The FAISS index that is saved beside the rows. None if there is no such index."""
    if attached is None or any(
        attached.about.get(key) != value for key, value in details.items()
    ):
        return None
    if isinstance(attached.source, FaissWriter):
        return attached.source.index
    assert isinstance(attached.source, Path)
    # Another program may have replaced the file since.
    if not attached.source.is_file():
        return None
    index = read_index(attached.source)
    expected = details["width"], attached.about.get("rows", index.ntotal)
    if (index.d, index.ntotal) != expected:
        problem = f"it has {index.ntotal} rows of {index.d} numbers, expected {expected[1]} of "
        problem += str(expected[0])
        raise Errors.E303(path=attached.source, problem=problem)
    return index


def read_index(path: Path, flags: int = 0) -> Any:
    """A FAISS index from its file, read with FAISS's flags. ValueError where it can't be read."""
    try:
        return faiss.read_index(str(path), flags)
    except (RuntimeError, MemoryError) as error:
        problem = (str(error) or "out of memory").splitlines()[0]
        raise Errors.E303(path=path, problem=problem) from error


def sample(rows: VectorRows, count: int, similarity: Similarity) -> np.ndarray:
    """Sample prepared vectors at equal distances, the same in every call: (count, width)."""
    chosen = np.unique(
        np.linspace(0, len(rows) - 1, min(count, len(rows))).astype(np.int64)
    )
    return similarity.prepare(rows.take(chosen))


def _to_gpus(index: Any) -> Any:
    """Copy an index to all GPUs. RuntimeError or AttributeError for kinds that can't be."""
    options = faiss.GpuMultipleClonerOptions()
    options.useFloat16 = True
    options.shard = True
    return faiss.index_cpu_to_all_gpus(index, co=options)


def similarities(
    rows: VectorRows,
    queries: np.ndarray,
    candidates: np.ndarray,
    similarity: Similarity,
) -> np.ndarray:
    """Similarities of queries to candidate rows, each computed from its two vectors alone.

    queries: (m, width) float32, prepared.
    candidates: (m, c) int64 rows, -1 for none, whose similarity is -inf.
    """
    scores = np.full(candidates.shape, -np.inf, dtype=np.float32)
    if not scores.size:
        return scores
    step = max(READ // candidates.shape[1], 1)
    is_float16 = rows.vectors.dtype == np.float16
    table = _FLOAT16_VALUES if is_float16 else None
    kind = (
        COSINE
        if similarity.normalize
        else INNER
        if similarity.metric == "ip"
        else DISTANCE
    )

    def score(start: int) -> None:
        block = slice(start, start + step)
        valid = candidates[block] >= 0
        vectors = rows.stored(candidates[block][valid])
        vectors = vectors.view(np.uint16) if is_float16 else vectors
        places = np.where(valid, np.cumsum(valid).reshape(valid.shape) - 1, -1)
        score_pairs(vectors, table, queries[block], places, kind, scores[block])

    map_in_threads(score, range(0, len(queries), step))
    return scores
