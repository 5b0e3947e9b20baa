"""Scores of predicted clusters of mentions against gold clusters."""

from typing import Dict, Tuple

import numpy as np
from scipy.sparse import csr_matrix


def b_cubed(gold: np.ndarray, predicted: np.ndarray) -> Tuple[float, float, float]:
    """B³ precision, recall and F1 of clusters. There must be a mention.

    gold: (n,) int64, the number of each mention's gold cluster, from 0.
    predicted: (n,) int64, the number of its predicted cluster, from 0.
    """
    # The number of mentions that each pair of clusters has in common.
    overlap = csr_matrix((np.ones(len(gold)), (gold, predicted)))
    overlap.sum_duplicates()
    common = overlap.tocoo()
    squares = common.data**2 / len(gold)
    precision = float((squares / np.bincount(predicted)[common.col]).sum())
    recall = float((squares / np.bincount(gold)[common.row]).sum())
    return precision, recall, f1(precision, recall)


def rates(name: str, precision: float, recall: float) -> Dict[str, float]:
    """Precision, recall and F1 with suffixes "_p", "_r", "_f"."""
    scores = precision, recall, f1(precision, recall)
    return {f"{name}_{kind}": float(score) for kind, score in zip("prf", scores)}


def f1(precision: float, recall: float) -> float:
    """The harmonic mean; 0 for two zeros."""
    total = precision + recall
    return 2 * precision * recall / total if total else 0.0
