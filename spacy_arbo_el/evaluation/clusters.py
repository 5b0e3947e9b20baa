"""How well mentions are grouped: scores of one clustering against another.

MUC is left out: it gives the best score to a single cluster of everything.
"""

from typing import Dict, Hashable, Sequence, Tuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from ..errors import Errors


def cluster_scores(gold: Sequence[Hashable], predicted: Sequence[Hashable]) -> Dict[str, float]:
    """Scores of predicted clusters of n mentions, each 1.0 where they are the gold ones.

    gold, predicted: For each mention a label; mentions with one label are one cluster.
    RETURNS: "ari" and "nmi" (adjusted Rand index, normalised mutual information), "b3_p", "b3_r",
        "b3_f" (B³: precision and recall of the mentions' clusters), "ceafe_p", "ceafe_r", "ceafe_f"
        (CEAF-e: clusters aligned one to one), "pairs_p", "pairs_r", "pairs_f" (pairs of mentions of
        one cluster) and "purity". Without mentions all are 0.0.
    """
    if len(gold) != len(predicted):
        raise ValueError(Errors.E701.format(gold=len(gold), predicted=len(predicted)))
    left, right = _numbers(gold), _numbers(predicted)
    if not len(left):
        names = ("b3", "ceafe", "pairs")
        zeros = {f"{name}_{kind}": 0.0 for name in names for kind in "prf"}
        return {"ari": 0.0, "nmi": 0.0, **zeros, "purity": 0.0}
    overlap = _overlap(left, right)
    in_gold, in_predicted = np.bincount(left), np.bincount(right)
    common = overlap.tocoo()
    n = len(left)
    together = _pairs(common.data)
    aligned = _best_alignment(overlap, in_gold, in_predicted)
    return {
        "ari": float(adjusted_rand_score(left, right)),
        "nmi": float(normalized_mutual_info_score(left, right)),
        **dict(zip(("b3_p", "b3_r", "b3_f"), b_cubed(left, right))),
        **rates("ceafe", aligned / len(in_predicted), aligned / len(in_gold)),
        **rates("pairs", _share(together, _pairs(in_predicted)), _share(together, _pairs(in_gold))),
        "purity": float(overlap.max(axis=0).sum() / n),
    }


def b_cubed(gold: np.ndarray, predicted: np.ndarray) -> Tuple[float, float, float]:
    """B³ precision, recall and F1 of clusters of n mentions, n > 0; (n,) numbers from 0."""
    common = _overlap(gold, predicted).tocoo()
    squares = common.data**2 / len(gold)
    precision = float((squares / np.bincount(predicted)[common.col]).sum())
    recall = float((squares / np.bincount(gold)[common.row]).sum())
    return precision, recall, _f1(precision, recall)


def _overlap(gold: np.ndarray, predicted: np.ndarray) -> csr_matrix:
    """How many mentions each two clusters have in common."""
    overlap = csr_matrix((np.ones(len(gold)), (gold, predicted)))  # doubles are summed
    overlap.sum_duplicates()
    return overlap


def _numbers(labels: Sequence[Hashable]) -> np.ndarray:
    known: Dict[Hashable, int] = {}
    return np.array([known.setdefault(label, len(known)) for label in labels], dtype=np.int64)


def _pairs(sizes: np.ndarray) -> float:
    return float((sizes * (sizes - 1)).sum() / 2)


def _share(part: float, whole: float) -> float:
    """Of no pairs at all, all are right."""
    return part / whole if whole else 1.0


def rates(name: str, precision: float, recall: float) -> Dict[str, float]:
    """Precision, recall and F1 under the names "…_p", "…_r" and "…_f"."""
    f = _f1(precision, recall)
    return {f"{name}_p": float(precision), f"{name}_r": float(recall), f"{name}_f": float(f)}


def _f1(precision: float, recall: float) -> float:
    total = precision + recall
    return 2 * precision * recall / total if total else 0.0


def _best_alignment(overlap: csr_matrix, in_gold: np.ndarray, in_predicted: np.ndarray) -> float:
    """The sum of Dice coefficients of the best one to one alignment of clusters.

    Only clusters that have a mention in common need to be aligned with each other, so that each
    component of these is solved for itself.
    """
    rows, columns = overlap.shape
    common = overlap.tocoo()
    dice = 2 * common.data / (in_gold[common.row] + in_predicted[common.col])
    graph = csr_matrix((dice, (common.row, common.col + rows)), shape=(rows + columns,) * 2)
    _, component = connected_components(graph, directed=False)
    order = np.argsort(component[common.row], kind="stable")
    bounds = np.flatnonzero(np.diff(component[common.row][order], prepend=-1, append=-1))
    total = 0.0
    for start, end in zip(bounds[:-1], bounds[1:]):
        part = order[start:end]
        if len(part) == 1:
            total += dice[part[0]]
            continue
        left, at_left = np.unique(common.row[part], return_inverse=True)
        right, at_right = np.unique(common.col[part], return_inverse=True)
        table = np.zeros((len(left), len(right)))
        table[at_left, at_right] = dice[part]
        total += table[linear_sum_assignment(table, maximize=True)].sum()
    return float(total)
