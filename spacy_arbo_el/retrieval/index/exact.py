"""Exact nearest-neighbour search by matrix products in torch."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from spacy.util import registry
from thinc.api import get_torch_default_device

from ...base.arrays import AppendOnly, TopK
from ...base.compiling import numba_jit
from ...base.errors import Errors
from ...kb.attached_index import AttachedIndex
from ...kb.vectors import VectorRows
from ..similarity import Similarity
from .protocol import Index

# How many more rows than wanted are compared exactly at first.
MARGIN = 16
# How many at most, where more and more are nearly as similar as the last of the wanted ones.
MAX_WIDE = 8192

# For so few queries, vectors are multiplied by queries and not queries by vectors, which took half
# the time with two to six of them, and as much with one and seven.
FEW_QUERIES = 7

# Similarities computed at a time: 16 MB on a CPU, 1 GB on a GPU.
BLOCK = {"cpu": 1 << 22, "cuda": 1 << 28}

# Columns of a group, of which only the largest similarity is compared at first.
GROUP = 32

# Puts -inf in place of forbidden similarities: (similarities (b, n) of a block of queries, number
# of the first of these queries).
Forbid = Callable[[Any, int], None]


class FlatIndex:
    """Exact search over raw vectors, without training or rebuilding.

    It multiplies matrices in torch, on the GPU where thinc has one. On a CPU, FAISS would give the
    same rows, and took 2 to 3 times as long (``benchmarks/search.py``).

    vectors: (n, width) float32, prepared, finite. On a GPU, a copy of them is searched.
    previous: An index whose vectors come before these, without copying them.
    """

    def __init__(
        self,
        vectors: np.ndarray,
        similarity: Similarity,
        previous: "FlatIndex | None" = None,
    ):
        vectors = np.ascontiguousarray(vectors, dtype=np.float32)
        self.similarity = similarity
        self.attached: AttachedIndex | None = None
        self._on_device: Any = None
        self._rows = AppendOnly.of(vectors)
        self._largest_norm = similarity.largest_norm(vectors)
        if previous:
            self._rows = previous._rows.with_rows(vectors)
            self._largest_norm = max(self._largest_norm, previous._largest_norm)

    @property
    def vectors(self) -> np.ndarray:
        """(n, width) float32, prepared."""
        return self._rows.rows

    def __len__(self) -> int:
        return self._rows.length

    def search(
        self, queries: np.ndarray, k: int, allowed: np.ndarray | None = None
    ) -> TopK:
        """The k nearest rows of each query, see ``Index``; of equally near rows the first.

        Similarities are computed pair by pair: no result depends on the other queries.
        """
        k = min(k, len(self))
        if k <= 0 or not len(queries):
            return TopK.empty(len(queries), max(k, 0))
        check_width(queries, self.vectors.shape[1])
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        if self._on_device is None:
            self._on_device = torch.from_numpy(self.vectors).to(
                get_torch_default_device()
            )
        metric = self.similarity.metric
        forbid = None if allowed is None else forbid_mask(~allowed)
        nearest_rows = TopK.empty(len(queries), k)
        rounding = self.similarity.rounding(queries, self._largest_norm)
        open_queries = np.arange(len(queries))
        wide = min(k + MARGIN, len(self))
        while len(open_queries):
            searched = queries[open_queries]
            # Those of matrix products, whose rounding depends on the other queries.
            candidates = nearest(searched, self._on_device, wide, metric, forbid)
            last = np.where(candidates.valid[:, -1], candidates.scores[:, -1], -np.inf)
            best = rescore(candidates, searched, self.vectors, metric == "ip", k)
            nearest_rows.put(open_queries, best)
            # Any other row is less similar than the last candidate, but for rounding.
            unsure = last >= best.scores[:, -1] - rounding[open_queries]
            open_queries = open_queries[unsure & (wide < min(len(self), MAX_WIDE))]
            wide = min(4 * wide, len(self), MAX_WIDE)
        return nearest_rows


@registry.misc("spacy-arbo-el.FlatIndex.v1")
@dataclass(frozen=True)
class Flat:
    """Exact search, the default and the right choice up to some hundred thousand vectors.

    Above that, use ``FaissIndex.v1``::

        [components.arbo_linker.retriever.index]
        @misc = "spacy-arbo-el.FlatIndex.v1"
    """

    def __call__(
        self,
        rows: VectorRows,
        similarity: Similarity,
        attached: AttachedIndex | None = None,
        previous: Index | None = None,
    ) -> FlatIndex:
        if not isinstance(previous, FlatIndex):
            return FlatIndex(rows.array(similarity.prepare), similarity)
        new = rows.take(np.arange(len(previous), len(rows)))
        return FlatIndex(similarity.prepare(new), similarity, previous)


def nearest(
    queries: np.ndarray,
    vectors: Any,
    k: int,
    metric: str,
    forbid: Forbid | None = None,
) -> TopK:
    """The k nearest rows of queries, without forbidden ones.

    queries: (m, width) float32, prepared.
    vectors: (n, width) float32, prepared, on any device.
    metric: "ip" or "l2", see ``Similarity``.
    forbid: Which pairs of query and row are left out; None for no pair.
    RETURNS: (m, k') with k' = min(k, n).
    """
    k = min(k, len(vectors))
    if k <= 0 or not len(queries):
        return TopK.empty(len(queries), max(k, 0))
    step = max(BLOCK.get(vectors.device.type, BLOCK["cpu"]) // len(vectors), 1)
    squares = None if metric == "ip" else (vectors * vectors).sum(1)
    scores: list[Any] = []
    rows: list[Any] = []
    for start in range(0, len(queries), step):
        block = torch.from_numpy(np.ascontiguousarray(queries[start : start + step]))
        similarities = _similarities(block.to(vectors.device), vectors, squares)
        if forbid is not None:
            forbid(similarities, start)
        block_scores, block_rows = largest(similarities, k)
        scores.append(block_scores)
        rows.append(block_rows)
    return best_rows(torch.cat(rows).cpu().numpy(), torch.cat(scores).cpu().numpy(), k)


def _similarities(queries: Any, vectors: Any, squares: Any | None) -> Any:
    few = len(queries) <= FEW_QUERIES
    product = (vectors @ queries.T).T if few else queries @ vectors.T
    if squares is None:
        return product
    return product.mul_(2).sub_(squares).sub_((queries * queries).sum(1)[:, None])


def largest(similarities: Any, k: int) -> tuple[Any, Any]:
    """The k largest of each row of a matrix, and their columns.

    They are in the k groups of neighbouring columns with the largest maxima: sorting these took a
    third of the time.
    """
    n_groups = similarities.shape[1] // GROUP
    if n_groups <= k:
        return torch.topk(similarities, k, dim=1)
    bound = n_groups * GROUP
    maxima = similarities[:, :bound].unflatten(1, (-1, GROUP)).amax(2)
    groups = torch.topk(maxima, k, dim=1, sorted=False).indices
    every = torch.arange(similarities.shape[1], device=groups.device)
    columns = (groups[:, :, None] * GROUP + every[:GROUP]).flatten(1)
    columns = torch.cat([columns, every[bound:].expand(len(columns), -1)], 1)
    best = torch.topk(similarities.gather(1, columns), k, dim=1)
    return best.values, columns.gather(1, best.indices)


def forbid_pairs(query: np.ndarray, row: np.ndarray) -> Forbid:
    """Forbid single pairs: ``row[i]`` for ``query[i]``, both (p,) int64."""
    order = np.argsort(query, kind="stable")
    query = query[order]
    row = row[order]

    def forbid(scores: Any, start: int) -> None:
        first, last = np.searchsorted(query, (start, start + len(scores)))
        where = (torch.from_numpy(array[first:last]) for array in (query - start, row))
        scores[tuple(index.to(scores.device) for index in where)] = -np.inf

    return forbid


def forbid_mask(mask: np.ndarray) -> Forbid:
    """Forbid the True entries of a mask. (n,) bool for all queries, or (m, n) bool."""

    def forbid(scores: Any, start: int) -> None:
        rows = mask if mask.ndim == 1 else mask[start : start + len(scores)]
        on_device = torch.from_numpy(np.ascontiguousarray(rows)).to(scores.device)
        scores.masked_fill_(on_device, -np.inf)

    return forbid


def check_width(queries: np.ndarray, width: int) -> None:
    """Raise an error if queries and vectors differ in width."""
    if queries.shape[1] != width:
        raise Errors.E301(got=queries.shape[1], expected=width)


def rescore(
    candidates: TopK, queries: np.ndarray, vectors: np.ndarray, inner: bool, k: int
) -> TopK:
    """The k best candidates with similarities that are computed pair by pair.

    candidates: (m, c) rows of ``vectors``, which are (n, width) float32, prepared, contiguous.
    inner: Whether similarities are inner products, not negative squared distances.
    """
    rows = candidates.ids
    scores = np.full(rows.shape, -np.inf, dtype=np.float32)
    score_pairs(vectors, None, queries, rows, INNER if inner else DISTANCE, scores)
    return best_rows(rows, scores, k)


def best_rows(rows: np.ndarray, scores: np.ndarray, k: int) -> TopK:
    """The k best rows of each query, (m, k). Of equals the first row comes first.

    rows, scores: (m, c) int64, each at most once, and float32; -1 and -inf for none.
    """
    order = np.lexsort((rows, -scores), axis=1)[:, :k]
    rows, scores = (
        np.take_along_axis(array, order, axis=1) for array in (rows, scores)
    )
    return TopK(np.where(np.isfinite(scores), rows, -1), scores)


# Kinds of similarities that ``score_pairs`` computes.
INNER, COSINE, DISTANCE = range(3)


@numba_jit(interpret=False, fastmath={"reassoc", "contract", "nsz"})
def score_pairs(  # pragma: no cover - compiled
    vectors: np.ndarray,
    table: np.ndarray | None,
    queries: np.ndarray,
    rows: np.ndarray,
    kind: int,
    scores: np.ndarray,
) -> None:
    """Write the similarities of queries to their rows into ``scores``.

    vectors: (n, width) float32; numbers of values in ``table`` where there is one.
    rows: (m, c) int64, -1 for none.
    kind: COSINE scales the vectors to length 1, but not the queries.
    """
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            row = rows[i, j]
            if row < 0:
                continue
            total = np.float32(0)
            square = np.float32(0)
            for k in range(vectors.shape[1]):
                if table is None:  # noqa: SIM108  decided when this is compiled
                    value = vectors[row, k]
                else:
                    value = table[vectors[row, k]]
                if kind == DISTANCE:
                    difference = value - queries[i, k]
                    total -= difference * difference
                else:
                    total += value * queries[i, k]
                if kind == COSINE:
                    square += value * value
            if kind == COSINE:
                total /= max(np.sqrt(square), np.float32(1e-12))
            scores[i, j] = total
