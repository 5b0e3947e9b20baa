"""Uncertainty of scores over documents, whose mentions are often right or wrong together."""

from collections.abc import Sequence

import numpy as np

from ..base.arrays import int_array
from ..kb.entity import NIL
from .outcomes import Outcome
from .scorer import is_candidate
from .seen import Seen

# Bootstrap samples of documents.
SAMPLES = 1000


def documents_of(results: Sequence[Outcome]) -> np.ndarray:
    """The number of each mention's document, in the order of mentions: (m,) int64."""
    numbers: dict[int, int] = {}
    docs = (id(result.span.doc) for result in results if result.span is not None)
    return int_array([numbers.setdefault(doc, len(numbers)) for doc in docs])


def bootstrap_counts(documents: int, samples: int = SAMPLES) -> np.ndarray:
    """Count each document in bootstrap samples of the documents: (samples, documents)."""
    share = np.full(documents, 1 / documents)
    return np.random.default_rng(0).multinomial(documents, share, size=samples)


def bootstrap_means(values: np.ndarray, documents: np.ndarray) -> np.ndarray:
    """The mean of values (m,) in bootstrap samples of their documents (m,): (SAMPLES,)."""
    sums = np.bincount(documents, values), np.bincount(documents)
    drawn = bootstrap_counts(len(sums[0])) @ np.stack(sums, axis=1)
    return drawn[:, 0] / np.maximum(drawn[:, 1], 1)


def accuracy_interval(results: Sequence[Outcome]) -> tuple[float, float] | None:
    """The 95 % bootstrap interval of accuracy over documents; None with fewer than two."""
    gold = [
        outcome
        for outcome in results
        if outcome.gold is not None and outcome.span is not None
    ]
    documents = documents_of(gold)
    if not documents.any():
        return None
    right = np.array([outcome.is_correct for outcome in gold], dtype=float)
    low, high = np.quantile(bootstrap_means(right, documents), [0.025, 0.975])
    return float(low), float(high)


def standard_errors(results: Sequence[Outcome], seen: Seen) -> dict[str, float]:
    """The standard errors of the scores that a model is chosen by, by the scores' names.

    Each is a ratio of two sums over documents. Its error is that of the first-order change which a
    document makes to it (linearization, as for ratio estimators in surveys). A score that is not
    here, or of one document alone, has no known error.

    results: Outcomes of several documents.
    seen: What training has shown.
    """
    documents = documents_of(results)
    if not documents.any():
        return {}
    gold = np.array([result.gold is not None for result in results])
    right = np.array([result.is_correct for result in results])
    has_entity = np.array([bool(result.gold) for result in results])
    is_seen = np.array([bool(seen.ids & set(result.gold or ())) for result in results])
    linked = np.array([result.predicted not in (None, NIL) for result in results])
    first = np.array([is_candidate(result, 1) for result in results])
    changes_by_kind = [
        _change(right & mask, mask, documents)
        for mask in (has_entity & is_seen, has_entity & ~is_seen)
    ]
    there = [
        changes_there for changes_there in changes_by_kind if changes_there is not None
    ]
    changes: dict[str, np.ndarray | None] = {
        "arbo_acc": _change(right & gold, gold, documents),
        "arbo_balanced_acc": np.mean(there, axis=0) if there else None,
        "arbo_acc_seen": changes_by_kind[0],
        "arbo_acc_unseen": changes_by_kind[1],
        "arbo_recall_at_1": _change(first & has_entity, has_entity, documents),
        "nel_micro_f": _change(
            2.0 * (right & has_entity), 1.0 * linked + has_entity, documents
        ),
    }
    return {
        name: float(np.sqrt((change**2).sum()))
        for name, change in changes.items()
        if change is not None
    }


def _change(
    counted: np.ndarray, weights: np.ndarray, documents: np.ndarray
) -> np.ndarray | None:
    """The change that each document makes to a ratio of sums: (documents,), or None.

    counted, weights: (m,), the terms of the sums.
    documents: (m,) int64.
    """
    total = float(weights.sum())
    if not total:
        return None
    ratio = float(counted.sum()) / total
    return np.bincount(documents, counted - ratio * weights) / total
