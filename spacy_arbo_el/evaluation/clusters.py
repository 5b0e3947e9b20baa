"""Scores of predicted clusters of mentions against gold clusters.

MUC is left out: a single cluster of all mentions gets its best score.
"""

from typing import Dict, Hashable, Sequence, Tuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from ..errors import Errors


def cluster_scores(gold: Sequence[Hashable], predicted: Sequence[Hashable]) -> Dict[str, float]:
    """Scores of predicted clusters of mentions. Each is 1.0 for the gold clusters.

    gold: The gold label of each mention. Mentions with the same label are one cluster.
    predicted: The predicted label of each mention.
    RETURNS: These scores, all 0.0 if there are no mentions:
        ari: The adjusted Rand index.
        nmi: The normalised mutual information.
        b3_p, b3_r, b3_f: B³, precision and recall of each mention's cluster.
        ceafe_p, ceafe_r, ceafe_f: CEAF-e, with clusters aligned one to one.
        pairs_p, pairs_r, pairs_f: Scores of the pairs of mentions in the same cluster.
        purity: The share of mentions that are in the main gold cluster of their cluster.
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
    shared = _pairs(common.data)
    aligned = _best_alignment(overlap, in_gold, in_predicted)
    return {
        "ari": float(adjusted_rand_score(left, right)),
        "nmi": float(normalized_mutual_info_score(left, right)),
        **dict(zip(("b3_p", "b3_r", "b3_f"), b_cubed(left, right))),
        **rates("ceafe", aligned / len(in_predicted), aligned / len(in_gold)),
        **rates("pairs", _share(shared, _pairs(in_predicted)), _share(shared, _pairs(in_gold))),
        "purity": float(overlap.max(axis=0).sum() / n),
    }


def b_cubed(gold: np.ndarray, predicted: np.ndarray) -> Tuple[float, float, float]:
    """B³ precision, recall and F1 of clusters. Of n > 0 mentions.

    gold: (n,) int64, the number of each mention's gold cluster, from 0.
    predicted: (n,) int64, the number of its predicted cluster, from 0.
    """
    common = _overlap(gold, predicted).tocoo()
    squares = common.data**2 / len(gold)
    precision = float((squares / np.bincount(predicted)[common.col]).sum())
    recall = float((squares / np.bincount(gold)[common.row]).sum())
    return precision, recall, _f1(precision, recall)


def _overlap(gold: np.ndarray, predicted: np.ndarray) -> csr_matrix:
    """Count the mentions that each pair of clusters shares."""
    overlap = csr_matrix((np.ones(len(gold)), (gold, predicted)))
    # Adds up the ones of equal pairs.
    overlap.sum_duplicates()
    return overlap


def _numbers(labels: Sequence[Hashable]) -> np.ndarray:
    numbers: Dict[Hashable, int] = {}
    return np.array([numbers.setdefault(label, len(numbers)) for label in labels], dtype=np.int64)


def _pairs(sizes: np.ndarray) -> float:
    return float((sizes * (sizes - 1)).sum() / 2)


def _share(part: float, total: float) -> float:
    """Share of a part; 1.0 if the total is 0."""
    return part / total if total else 1.0


def rates(name: str, precision: float, recall: float) -> Dict[str, float]:
    """Precision, recall and F1 with suffixes "_p", "_r", "_f"."""
    f = _f1(precision, recall)
    return {f"{name}_p": float(precision), f"{name}_r": float(recall), f"{name}_f": float(f)}


def _f1(precision: float, recall: float) -> float:
    total = precision + recall
    return 2 * precision * recall / total if total else 0.0


def _best_alignment(overlap: csr_matrix, in_gold: np.ndarray, in_predicted: np.ndarray) -> float:
    """Sum of Dice coefficients under the best one-to-one alignment. Of clusters.

    Only clusters with a common mention can be aligned. So each connected component of these is
    solved separately.
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
