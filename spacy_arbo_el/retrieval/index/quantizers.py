"""The kinds of approximate indexes that a config can name."""

import math
import warnings
from dataclasses import dataclass
from typing import Any, Callable, Dict, Optional, Protocol

from spacy.util import registry

from ...devices import on_gpu
from ...errors import Errors, Warnings
from ...kb.saving import AttachedIndex
from ...kb.vectors import VectorRows
from ...log import log
from ...settings import check_count, check_positive
from ..similarity import Similarity
from .approximate import ApproximateIndex, add_rows, read_attached, sample
from .flat import FlatIndex, faiss, faiss_has_gpu
from .protocol import Index

# How a vector is compressed -> FAISS's name for that, given the width of vectors.
CODES: Dict[str, Callable[[int], str]] = {
    "float32": lambda width: "Flat",
    "float16": lambda width: "SQfp16",
    "sq8": lambda width: "SQ8",
    "sq4": lambda width: "SQ4",
    "pq8": lambda width: f"PQ{_divisor(width, 8)}x8",
    "pq4": lambda width: f"PQ{_divisor(width, 4)}x4fs",
}

# Fewer rows than these are searched exactly, by every kind.
MIN_ROWS = 10_000
# Rows that an index is trained on, per list.
TRAINING_ROWS_PER_LIST = 48


def _divisor(width: int, size: int) -> int:
    """The number of parts of about ``size`` numbers, all of one length, that a vector has."""
    return next(n for n in range(max(width // size, 1), 0, -1) if width % n == 0)


def default_lists(rows: int) -> int:
    """About twice the square root of the number of rows, as a power of two."""
    return 1 << round(math.log2(2 * math.sqrt(max(rows, 1))))


class Quantizer(Protocol):
    """What ``build_index`` needs of a kind of index."""

    @property
    def rescore_factor(self) -> float: ...

    @property
    def kind(self) -> str:
        """All settings that the saved index depends on."""
        ...

    @property
    def min_rows(self) -> int:
        """Fewer rows than these are searched exactly."""
        ...

    def faiss_key(self, rows: VectorRows) -> str:
        """The index in the notation of FAISS's ``index_factory``."""
        ...

    def parameters(self, index: Any) -> Callable[[Any], Any]:
        """Put the settings into a FAISS index.

        RETURNS: Function from an ``IDSelector`` or None to FAISS's search parameters.
        """
        ...


@registry.misc("spacy-arbo-el.IVF.v1")
@dataclass(frozen=True)
class IVF:
    """Inverted lists: only the lists nearest to a query are searched.

    Use it from some hundred thousand vectors on. The defaults suit most knowledge bases; ``spacy
    arbo index`` measures others on yours::

        [components.arbo_linker.retriever.index]
        @misc = "spacy-arbo-el.IVF.v1"
        codes = "sq8"

    n_lists: The number of lists; 0 for about twice the square root of the number of rows. Search
        is exact below 10,000 rows, or below 39 rows per list where a number is given.
    n_probes: The number of lists searched for a query; 0 for one in 64.
    codes: How vectors are compressed: "float32" (not at all), "float16" (two bytes per number),
        "sq8" (one byte per number), "sq4" (half a byte per number), "pq8" (one byte per 8
        numbers) or "pq4" (half a byte per 4 numbers, searched with SIMD instructions).
    rescore_factor: How many candidates are rescored with their own vectors, for each result.
    """

    n_lists: int = 0
    n_probes: int = 0
    codes: str = "pq4"
    rescore_factor: float = 4.0

    def __post_init__(self) -> None:
        check_codes(self.codes)
        check_count("index.n_lists", self.n_lists)
        check_count("index.n_probes", self.n_probes)
        check_positive("index.rescore_factor", self.rescore_factor)

    @property
    def kind(self) -> str:
        return f"ivf-{self.n_lists}-{self.codes}"

    @property
    def min_rows(self) -> int:
        return max(39 * self.n_lists, 256) if self.n_lists else MIN_ROWS

    def faiss_key(self, rows: VectorRows) -> str:
        n_lists = min(self.n_lists or default_lists(len(rows)), len(rows))
        return f"IVF{n_lists},{CODES[self.codes](rows.width)}"

    def parameters(self, index: Any) -> Callable[[Any], Any]:
        n_probes = self.n_probes or max(faiss.extract_index_ivf(index).nlist // 64, 1)
        faiss.extract_index_ivf(index).nprobe = n_probes  # what a copy on a GPU searches
        return lambda selector: faiss.SearchParametersIVF(nprobe=n_probes, sel=selector)

    def __call__(
        self,
        rows: VectorRows,
        similarity: Similarity,
        attached: Optional[AttachedIndex] = None,
        previous: Optional[Index] = None,
    ) -> Index:
        return build_index(self, rows, similarity, attached)


@registry.misc("spacy-arbo-el.HNSW.v1")
@dataclass(frozen=True)
class HNSW:
    """A graph of near neighbours.

    Use it where single queries must be fast. It takes more memory than ``IVF.v1`` and is slower to
    build::

        [components.arbo_linker.retriever.index]
        @misc = "spacy-arbo-el.HNSW.v1"
        codes = "sq8"

    n_links: The number of links of each row.
    ef_construction: How many neighbours are considered when a row is added.
    ef_search: How many neighbours are considered for a query; more is slower and finds more.
    codes: How vectors are compressed, as in ``IVF.v1``.
    rescore_factor: How many candidates are rescored with their own vectors, for each result.
    """

    n_links: int = 32
    ef_construction: int = 40
    ef_search: int = 96
    codes: str = "float32"
    rescore_factor: float = 2.0

    def __post_init__(self) -> None:
        check_codes(self.codes)
        check_count("index.n_links", self.n_links, 2)
        check_count("index.ef_construction", self.ef_construction, 1)
        check_count("index.ef_search", self.ef_search, 1)
        check_positive("index.rescore_factor", self.rescore_factor)

    @property
    def kind(self) -> str:
        return f"hnsw-{self.n_links}-{self.ef_construction}-{self.codes}"

    @property
    def min_rows(self) -> int:
        return MIN_ROWS

    def faiss_key(self, rows: VectorRows) -> str:
        return f"HNSW{self.n_links},{CODES[self.codes](rows.width).replace('fs', '')}"

    def parameters(self, index: Any) -> Callable[[Any], Any]:
        faiss.downcast_index(index).hnsw.efConstruction = self.ef_construction
        return lambda selector: faiss.SearchParametersHNSW(efSearch=self.ef_search, sel=selector)

    def __call__(
        self,
        rows: VectorRows,
        similarity: Similarity,
        attached: Optional[AttachedIndex] = None,
        previous: Optional[Index] = None,
    ) -> Index:
        return build_index(self, rows, similarity, attached)


def check_codes(codes: str) -> None:
    if codes not in CODES:
        raise ValueError(Errors.E305.format(value=codes, choices=", ".join(CODES)))


def build_index(
    quantizer: Quantizer,
    rows: VectorRows,
    similarity: Similarity,
    attached: Optional[AttachedIndex],
) -> Index:
    """An index over rows: exact where they are few, else the attached one or a new one."""
    if len(rows) < max(quantizer.min_rows, 1) or _must_be_exact():
        return FlatIndex(similarity.prepare(rows.array()), similarity)
    about = {
        "kind": quantizer.kind,
        "metric": similarity.metric,
        "normalize": similarity.normalize,
        "width": rows.width,
    }
    index = read_attached(attached, about)
    if index is None:
        index = _train(quantizer, rows, similarity)
    parameters = quantizer.parameters(index)
    return ApproximateIndex(index, rows, similarity, about, parameters, quantizer.rescore_factor)


def _must_be_exact() -> bool:
    """Whether FAISS is missing, or can't use the GPU that there is. Warns if so."""
    if faiss is None:
        warnings.warn(Warnings.W301)
        return True
    if on_gpu() and not faiss_has_gpu():
        warnings.warn(Warnings.W302)
        return True
    return False


def _train(quantizer: Quantizer, rows: VectorRows, similarity: Similarity) -> Any:
    key = quantizer.faiss_key(rows)
    metric = faiss.METRIC_INNER_PRODUCT if similarity.metric == "ip" else faiss.METRIC_L2
    index = faiss.index_factory(rows.width, key, metric)
    quantizer.parameters(index)
    n_lists = getattr(faiss.try_extract_index_ivf(index), "nlist", 0) or 1024
    log.info("Building the search index %s over %d vectors …", key, len(rows))
    _set_clustering(index)
    index.train(sample(rows, n_lists * TRAINING_ROWS_PER_LIST, similarity))
    add_rows(index, rows, similarity)
    return index


def _set_clustering(index: Any) -> None:
    """Fewer rounds of k-means than FAISS's default, and no warnings for few rows."""
    index = faiss.downcast_index(index)
    if isinstance(index, faiss.IndexIVF):
        index.cp.niter, index.cp.min_points_per_centroid = 8, 1
    if hasattr(index, "pq"):
        index.pq.cp.min_points_per_centroid = 1
    if isinstance(index, faiss.IndexHNSW):
        _set_clustering(index.storage)
