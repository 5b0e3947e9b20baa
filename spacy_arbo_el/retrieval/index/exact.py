"""Exact nearest neighbours by matrix products. They run in torch on any device, or in NumPy."""

from typing import Any, Callable, List, Optional

import numpy as np

from ...arrays import TopK
from ...devices import torch

# Similarities computed at a time: 64 MB on a CPU, 1 GB on a GPU.
BLOCK = {"cpu": 1 << 24, "cuda": 1 << 28}

# Puts -inf in place of forbidden similarities: (similarities (b, n) of a block of queries, number
# of the first of these queries).
Forbid = Callable[[Any, int], None]


def nearest(
    queries: np.ndarray,
    vectors: Any,
    k: int,
    metric: str,
    forbid: Optional[Forbid] = None,
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
    scores: List[Any] = []
    rows: List[Any] = []
    for start in range(0, len(queries), step):
        block = torch.from_numpy(np.ascontiguousarray(queries[start : start + step]))
        similarities = _similarities(block.to(vectors.device), vectors, squares)
        if forbid is not None:
            forbid(similarities, start)
        best = torch.topk(similarities, k, dim=1)
        scores.append(best.values)
        rows.append(best.indices)
    return _in_row_order(torch.cat(rows).cpu().numpy(), torch.cat(scores).cpu().numpy())


def nearest_in_numpy(
    queries: np.ndarray,
    vectors: np.ndarray,
    k: int,
    metric: str,
    allowed: Optional[np.ndarray] = None,
) -> TopK:
    """Search without torch, in NumPy. See ``nearest``.

    allowed: (n,) bool for all queries, or (m, n) bool; None for all rows.
    """
    k = min(k, len(vectors))
    if k <= 0 or not len(queries):
        return TopK.empty(len(queries), max(k, 0))
    step = max(BLOCK["cpu"] // len(vectors), 1)
    squares = None if metric == "ip" else np.einsum("nd,nd->n", vectors, vectors)
    parts = []
    for start in range(0, len(queries), step):
        block = queries[start : start + step]
        similarities = block @ vectors.T
        if squares is not None:
            similarities = 2 * similarities - squares
            similarities -= np.einsum("nd,nd->n", block, block)[:, None]
        if allowed is not None:
            part = allowed if allowed.ndim == 1 else allowed[start : start + step]
            similarities = np.where(part, similarities, np.float32(-np.inf))
        rows = np.argpartition(similarities, len(vectors) - k, axis=1)[:, -k:]
        parts.append((rows, np.take_along_axis(similarities, rows, axis=1)))
    rows, scores = (np.concatenate(arrays) for arrays in zip(*parts))
    return _in_row_order(rows, scores)


def _similarities(queries: Any, vectors: Any, squares: Optional[Any]) -> Any:
    product = queries @ vectors.T
    if squares is None:
        return product
    return product.mul_(2).sub_(squares).sub_((queries * queries).sum(1)[:, None])


def _in_row_order(rows: np.ndarray, scores: np.ndarray) -> TopK:
    """Best first; equal scores in the order of their rows."""
    order = np.lexsort((rows, -scores), axis=1)
    rows, scores = (np.take_along_axis(array, order, axis=1) for array in (rows, scores))
    return TopK(np.where(np.isfinite(scores), rows, -1), scores)


def forbid_pairs(query: np.ndarray, row: np.ndarray) -> Forbid:
    """Forbid single pairs: ``row[i]`` for ``query[i]``, both (p,) int64."""
    order = np.argsort(query, kind="stable")
    query, row = query[order], row[order]

    def forbid(scores: Any, start: int) -> None:
        first, last = np.searchsorted(query, (start, start + len(scores)))
        where = (torch.from_numpy(array[first:last]) for array in (query - start, row))
        scores[tuple(index.to(scores.device) for index in where)] = -np.inf

    return forbid


def forbid_mask(mask: np.ndarray) -> Forbid:
    """Forbid the True entries of a mask. (n,) bool for all queries, or (m, n) bool."""

    def forbid(scores: Any, start: int) -> None:
        part = mask if mask.ndim == 1 else mask[start : start + len(scores)]
        on_device = torch.from_numpy(np.ascontiguousarray(part)).to(scores.device)
        scores.masked_fill_(on_device, -np.inf)

    return forbid
