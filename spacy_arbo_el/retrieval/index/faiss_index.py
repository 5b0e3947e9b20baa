"""The approximate index of a config, in FAISS's notation."""

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import faiss
from spacy.util import registry

from ...base.devices import on_gpu
from ...base.errors import Errors, Warnings
from ...base.log import log
from ...base.settings import check_positive
from ...kb.attached_index import AttachedIndex
from ...kb.vectors import VectorRows
from ..similarity import Similarity
from .approximate import (
    ApproximateIndex,
    add_rows,
    n_lists,
    parts,
    read_attached,
    restricted,
    sample,
)
from .exact import Flat
from .protocol import Index

# Fewer rows than these are searched exactly: by an index without lists, by one with lists (per
# list, as FAISS advises), and by any, since it may have codebooks of 256 entries.
MIN_ROWS = 10_000
MIN_ROWS_PER_LIST = 39
MIN_TRAINING_ROWS = 256
# Rows that an index is trained on, per list.
TRAINING_ROWS_PER_LIST = 48
# The width of vectors that settings are tried with, or a bit less.
TRIAL_WIDTH = 512


@registry.misc("spacy-arbo-el.FaissIndex.v1")
@dataclass(frozen=True)
class FaissIndex:
    """Approximate search with FAISS, for 100,000 vectors or more.

    The page on knowledge bases has settings for several sizes. ``benchmarks/search.py`` measures
    them on your vectors::

        [components.arbo_linker.retriever.index]
        @misc = "spacy-arbo-el.FaissIndex.v1"
        factory = "IVF2048,SQ8"
        search = "nprobe=64"
        rescore = 2.0

    factory: The index, as FAISS's ``index_factory`` reads it: "HNSW32", "IVF4096,PQ48x4fs". Flat,
        SQ, IVF and HNSW indexes, also behind transforms such as OPQ. Search is exact below 39 rows
        per list, and below 10,000 rows where there are no lists.
    search: Its parameters, as FAISS's ``ParameterSpace`` reads them: "nprobe=64", "efSearch=128".
        "" for FAISS's own, which find little.
    rescore: How many candidates are rescored with their own vectors, for each result.
    """

    factory: str
    search: str
    rescore: float = 4.0

    def __post_init__(self) -> None:
        check_positive("index.rescore", self.rescore)
        with self._setting_errors():
            # A width that all product quantizers can divide.
            counts = re.findall(r"PQ(\d+)", self.factory)
            divisor = math.lcm(*(int(count) or 1 for count in counts))
        width = divisor * max(TRIAL_WIDTH // divisor, 1)
        self._new(width, faiss.METRIC_L2)

    @property
    def kind(self) -> str:
        """All settings that the saved index depends on."""
        return (
            f"{self.factory} {self.search}"
            if "Construction" in self.search
            else self.factory
        )

    def __call__(
        self,
        rows: VectorRows,
        similarity: Similarity,
        attached: AttachedIndex | None = None,
        previous: Index | None = None,
    ) -> Index:
        """An index over rows. Exact where they are few, else the attached one or a new one."""
        if len(rows) < MIN_TRAINING_ROWS or _must_be_exact():
            return Flat()(rows, similarity)
        inner = similarity.metric == "ip"
        new = self._new(
            rows.width, faiss.METRIC_INNER_PRODUCT if inner else faiss.METRIC_L2
        )
        if len(rows) < (MIN_ROWS_PER_LIST * n_lists(new) or MIN_ROWS):
            return Flat()(rows, similarity)
        details = {
            "kind": self.kind,
            "metric": similarity.metric,
            "normalize": similarity.normalize,
            "width": rows.width,
        }
        index = read_attached(attached, details)
        if index is None:
            index = self._trained(new, rows, similarity)
        with self._setting_errors():
            faiss.ParameterSpace().set_index_parameters(index, self.search)
        return ApproximateIndex(index, rows, similarity, details, self.rescore)

    def _new(self, width: int, metric: int) -> Any:
        """An empty FAISS index. ValueError where FAISS or the linker can't use the settings."""
        with self._setting_errors():
            index = faiss.index_factory(width, self.factory, metric)
            faiss.ParameterSpace().set_index_parameters(index, self.search)
            for component in parts(index):
                _check(component)
            restricted(index, None)
            return index

    def _trained(self, index: Any, rows: VectorRows, similarity: Similarity) -> Any:
        log.info(
            "Building the search index %s over %d vectors …", self.factory, len(rows)
        )
        for component in parts(index):
            _set_clustering(component)
        count = max(TRAINING_ROWS_PER_LIST * (n_lists(index) or 1024), MIN_ROWS)
        with self._setting_errors():
            index.train(sample(rows, count, similarity))
            add_rows(index, rows, similarity)
        return index

    @contextmanager
    def _setting_errors(self) -> Iterator[None]:
        try:
            yield
        except (RuntimeError, TypeError, MemoryError) as error:
            # FAISS puts the place in its C++ code before the problem.
            text = re.sub(
                r"^.*\.(cpp|h):\d+: (Error: )?", "", " ".join(str(error).split())
            )
            problem = text or "out of memory"
            raise Errors.E305(
                factory=self.factory, search=self.search, problem=problem
            ) from error


def _check(component: Any) -> None:
    """Raise RuntimeError for a part that cannot be searched."""
    if isinstance(component, faiss.IndexIVF) and not 1 <= component.nprobe < 1 << 31:
        raise RuntimeError("nprobe must be at least 1")
    if isinstance(component, faiss.IndexHNSW):
        # With fewer than 2 links there are no neighbours at level 1, which is an error here, and
        # would end the program where a row is added.
        component.hnsw.nb_neighbors(1)
        if component.hnsw.efSearch < 1 or component.hnsw.efConstruction < 1:
            raise RuntimeError("efSearch and efConstruction must be at least 1")


def _set_clustering(component: Any) -> None:
    """Limit k-means rounds, without warnings for few rows."""
    if isinstance(component, faiss.IndexIVF):
        component.cp.niter = 8
        component.cp.min_points_per_centroid = 1
    if hasattr(component, "pq"):
        component.pq.cp.min_points_per_centroid = 1


def faiss_has_gpu() -> bool:
    return hasattr(faiss, "GpuIndexFlatIP") and faiss.get_num_gpus() > 0


def _must_be_exact() -> bool:
    if on_gpu() and not faiss_has_gpu():
        Warnings.W302.warn()
        return True
    return False
