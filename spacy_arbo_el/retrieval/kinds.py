"""The kinds of approximate indexes that a config can name."""

import math
import warnings
from typing import Any, Callable, Dict, Optional

from spacy.util import registry
from thinc.api import get_torch_default_device

from ..errors import Errors, Warnings
from ..kb.saving import AttachedIndex
from ..kb.vectors import VectorRows
from ..log import log
from .approximate import ApproximateIndex, add_rows, read_attached, sample
from .index import BuildIndex, FlatIndex, Index, faiss, faiss_has_gpu
from .similarity import Similarity

# How each row is coded: FAISS's name of it, given the width.
CODES: Dict[str, Callable[[int], str]] = {
    "float32": lambda width: "Flat",
    "float16": lambda width: "SQfp16",
    "sq8": lambda width: "SQ8",
    "sq4": lambda width: "SQ4",
    "pq8": lambda width: f"PQ{_divisor(width, 8)}x8",
    "pq4": lambda width: f"PQ{_divisor(width, 4)}x4fs",
}

# Fewer rows than these are searched exactly, whatever the kind.
FEW = 10_000
# Rows that an index learns from, for each of its lists.
TRAINED_ON = 48


def _divisor(width: int, size: int) -> int:
    """Into how many parts of about ``size`` numbers a vector can be cut, all equally long."""
    return next(n for n in range(max(width // size, 1), 0, -1) if width % n == 0)


def usual_lists(rows: int) -> int:
    """About twice the square root of the rows, as a power of two."""
    return 1 << round(math.log2(2 * math.sqrt(max(rows, 1))))


@registry.misc("spacy-arbo-el.IVF.v1")
def ivf(lists: int = 0, probes: int = 0, codes: str = "pq4", refine: float = 4.0) -> BuildIndex:
    """Inverted lists: only the lists nearest to a query are searched.

    lists: How many; 0 for about twice the square root of the rows. Search is exact below 10,000
        rows, or below 39 for each list where their number is given.
    probes: How many are searched; 0 for one in 64.
    codes: "float32" (IVF-flat), "float16", "sq8" and "sq4" (a byte and half a byte a number),
        "pq8" (product quantisation, a byte for 8 numbers), "pq4" (half a byte for 4 numbers,
        searched by SIMD).
    refine: Candidates ranked again by the vectors themselves, for each one wanted.
    """
    check_codes(codes)

    def describe(rows: VectorRows) -> str:
        count = min(lists or usual_lists(len(rows)), len(rows))
        return f"IVF{count},{CODES[codes](rows.width)}"

    def parameters(index: Any) -> Callable[[Any], Any]:
        wanted = probes or max(faiss.extract_index_ivf(index).nlist // 64, 1)
        faiss.extract_index_ivf(index).nprobe = wanted  # what a copy on a GPU searches
        return lambda selector: faiss.SearchParametersIVF(nprobe=wanted, sel=selector)

    few = max(39 * lists, 256) if lists else FEW
    return _builder(f"ivf-{lists}-{codes}", describe, parameters, refine, few)


@registry.misc("spacy-arbo-el.HNSW.v1")
def hnsw(
    links: int = 32, build: int = 40, search: int = 96, codes: str = "float32", refine: float = 2.0
) -> BuildIndex:
    """A graph of near neighbours: fast for single queries, larger in memory and slower to build.

    links: Of each row. build: How widely neighbours are sought when rows are added.
    search: How widely they are sought for a query.
    codes, refine: As in ``IVF.v1``.
    """
    check_codes(codes)

    def describe(rows: VectorRows) -> str:
        return f"HNSW{links},{CODES[codes](rows.width).replace('fs', '')}"

    def parameters(index: Any) -> Callable[[Any], Any]:
        faiss.downcast_index(index).hnsw.efConstruction = build
        return lambda selector: faiss.SearchParametersHNSW(efSearch=search, sel=selector)

    return _builder(f"hnsw-{links}-{build}-{codes}", describe, parameters, refine, FEW)


def check_codes(codes: str) -> None:
    if codes not in CODES:
        raise ValueError(Errors.E305.format(value=codes, choices=", ".join(CODES)))


def _builder(
    kind: str,
    describe: Callable[[VectorRows], str],
    parameters: Callable[[Any], Callable[[Any], Any]],
    refine: float,
    few: int,
) -> BuildIndex:
    def build(
        rows: VectorRows, similarity: Similarity, attached: Optional[AttachedIndex] = None
    ) -> Index:
        if len(rows) < max(few, 1) or _must_be_exact():
            return FlatIndex(similarity.prepare(rows.array()), similarity)
        about = {"kind": kind, "metric": similarity.metric, "normalise": similarity.normalise}
        about["width"] = rows.width
        index = read_attached(attached, about)
        if index is None:
            index = _train(describe(rows), rows, similarity, parameters)
        return ApproximateIndex(index, rows, similarity, about, parameters(index), refine)

    return build


def _must_be_exact() -> bool:
    """Without FAISS, or with a GPU that it can't use, search is exact, and the user told so."""
    if faiss is None:
        warnings.warn(Warnings.W301)
        return True
    if get_torch_default_device().type == "cuda" and not faiss_has_gpu():
        warnings.warn(Warnings.W302)
        return True
    return False


def _train(
    key: str, rows: VectorRows, similarity: Similarity, parameters: Callable[[Any], Any]
) -> Any:
    metric = faiss.METRIC_INNER_PRODUCT if similarity.metric == "ip" else faiss.METRIC_L2
    index = faiss.index_factory(rows.width, key, metric)
    parameters(index)
    lists = getattr(faiss.try_extract_index_ivf(index), "nlist", 0) or 1024
    log.info("Building the search index %s over %d vectors …", key, len(rows))
    learned = sample(rows, lists * TRAINED_ON, similarity)
    _set_clustering(index)
    index.train(learned)
    add_rows(index, rows, similarity)
    return index


def _set_clustering(index: Any) -> None:
    """Fewer rounds than FAISS would do, and no warnings for few rows."""
    index = faiss.downcast_index(index)
    if isinstance(index, faiss.IndexIVF):
        index.cp.niter, index.cp.min_points_per_centroid = 8, 1
    if hasattr(index, "pq"):
        index.pq.cp.min_points_per_centroid = 1
    if isinstance(index, faiss.IndexHNSW):
        _set_clustering(index.storage)
