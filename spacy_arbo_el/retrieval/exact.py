"""Exact nearest neighbours by matrix products in torch: on the GPU, and of what is allowed."""

from typing import Callable, List, Optional, Tuple

import numpy as np
import torch

# Similarities held at a time: 64 MB on a CPU, 1 GB on a GPU.
BLOCK = {"cpu": 1 << 24, "cuda": 1 << 28}

# (similarities (b, n) of some queries, number of the first of them): puts -inf in place
Forbid = Callable[[torch.Tensor, int], None]


def nearest(
    queries: np.ndarray,
    vectors: torch.Tensor,
    k: int,
    metric: str,
    forbid: Optional[Forbid] = None,
) -> Tuple[np.ndarray, np.ndarray]:
    """The k nearest rows of each query, among those that are not forbidden.

    queries: (m, width) float32, prepared. vectors: (n, width) float32, on any device.
    metric: "ip" or "l2", as ``Similarity`` has it.
    RETURNS: similarities (m, k') float32, largest first, and rows (m, k') int64, k' = min(k, n);
        -inf and -1 where nothing is left. Equal similarities come in row order.
    """
    k = min(k, len(vectors))
    if k <= 0 or not len(queries):
        shape = (len(queries), max(k, 0))
        return np.full(shape, -np.inf, dtype=np.float32), np.full(shape, -1, dtype=np.int64)
    step = max(BLOCK.get(vectors.device.type, BLOCK["cpu"]) // len(vectors), 1)
    squares = None if metric == "ip" else (vectors * vectors).sum(1)
    values: List[torch.Tensor] = []
    rows: List[torch.Tensor] = []
    for start in range(0, len(queries), step):
        block = torch.from_numpy(np.ascontiguousarray(queries[start : start + step]))
        scores = _similarities(block.to(vectors.device), vectors, squares)
        if forbid is not None:
            forbid(scores, start)
        best = torch.topk(scores, k, dim=1)
        values.append(best.values)
        rows.append(best.indices)
    return _in_row_order(torch.cat(values).cpu().numpy(), torch.cat(rows).cpu().numpy())


def _similarities(
    queries: torch.Tensor, vectors: torch.Tensor, squares: Optional[torch.Tensor]
) -> torch.Tensor:
    product = queries @ vectors.T
    if squares is None:
        return product
    return product.mul_(2).sub_(squares).sub_((queries * queries).sum(1)[:, None])


def _in_row_order(values: np.ndarray, rows: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    order = np.lexsort((rows, -values), axis=1)
    values, rows = (np.take_along_axis(array, order, axis=1) for array in (values, rows))
    return values, np.where(np.isfinite(values), rows, -1)


def forbid_pairs(query: np.ndarray, row: np.ndarray) -> Forbid:
    """Forbid single pairs: ``row[i]`` for ``query[i]``, both (p,) int64."""
    order = np.argsort(query, kind="stable")
    query, row = query[order], row[order]

    def forbid(scores: torch.Tensor, start: int) -> None:
        first, last = np.searchsorted(query, (start, start + len(scores)))
        where = (torch.from_numpy(array[first:last]) for array in (query - start, row))
        scores[tuple(index.to(scores.device) for index in where)] = -np.inf

    return forbid


def forbid_mask(mask: np.ndarray) -> Forbid:
    """Forbid what is True in a mask: (n,) bool for all queries, or (m, n) bool."""

    def forbid(scores: torch.Tensor, start: int) -> None:
        part = mask if mask.ndim == 1 else mask[start : start + len(scores)]
        on_device = torch.from_numpy(np.ascontiguousarray(part)).to(scores.device)
        scores.masked_fill_(on_device, -np.inf)

    return forbid
