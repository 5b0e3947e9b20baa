"""The ranker: what speaks for each candidate -> log-odds that it is right.

A small network over the features of ``retrieval/candidates.py``, trained by softmax among the
candidates of each mention; then a logistic curve, fitted on mentions the network was not trained
on, from its scores to log-odds.
"""

from dataclasses import asdict, dataclass, fields, replace
from typing import List, Optional

import numpy as np
import torch

from ..io import pack_arrays, unpack_arrays
from ..retrieval.candidates import FEATURES, Candidates
from .curves import fit_plane

HIDDEN = 16
# Keeps weights small that little data was seen for; counts as so many mentions.
PRIOR = 8.0
FOLDS = 5
# Fewer mentions than these teach nothing.
FEWEST = 20
STEPS = 300


@dataclass(frozen=True)
class Ranker:
    """Scores = x linear + tanh(x hidden + bias) out, with x the standardised features.

    The features are those of the candidate (f), and how far each is below the largest among the
    mention's candidates (f more).

    mean, spread: (2 f,). linear: (2 f,). hidden: (2 f, h). bias, out: (h,). All float32.
    curve: (3,), what the log-odds among the candidates and the similarity of the nearest of them
        count for the log-odds of being right, and an offset: being the best of a bad lot is not
        enough.
    accuracy: The share of mentions whose best candidate was right, when they were held out.
    """

    mean: np.ndarray
    spread: np.ndarray
    linear: np.ndarray
    hidden: np.ndarray
    bias: np.ndarray
    out: np.ndarray
    curve: np.ndarray
    accuracy: float = 0.0

    def logits(self, candidates: Candidates) -> np.ndarray:
        """Log-odds that each candidate is right, (m, c) float32, -inf for none."""
        odds = log_odds_among(self._scores(candidates), candidates.entities >= 0)
        slope, by_nearest, offset = self.curve
        nearest = nearest_of(candidates)[:, None]
        return (slope * odds + by_nearest * nearest + offset).astype(np.float32)

    def _scores(self, candidates: Candidates) -> np.ndarray:
        # In double precision, so that scores don't depend on how many mentions are scored at once.
        x = (_inputs(candidates).astype(np.float64) - self.mean) / self.spread
        return x @ self.linear + np.tanh(x @ self.hidden + self.bias) @ self.out

    def to_bytes(self) -> bytes:
        return pack_arrays({name: np.asarray(value) for name, value in asdict(self).items()})

    @classmethod
    def from_bytes(cls, data: bytes) -> Optional["Ranker"]:
        """A ranker that was saved; None where it is another version's, of other features."""
        arrays = unpack_arrays(data)
        known = {field.name for field in fields(cls)}
        if set(arrays) != known or arrays["mean"].shape != (2 * len(FEATURES),):
            return None
        accuracy = float(arrays.pop("accuracy"))
        return cls(accuracy=accuracy, **arrays)


def fit_ranker(candidates: Candidates, right: np.ndarray, group: np.ndarray) -> Optional[Ranker]:
    """Train a ranker on candidates that are known to be right or wrong.

    right: (m, c) bool. Mentions none of whose candidates is right count for the curve only.
    group: (m,) int64, such as documents: mentions of one group are held out together.
    RETURNS: None where there is too little to learn from.
    """
    there = candidates.entities >= 0
    right = right & there
    if (right.any(axis=1) & (there.sum(axis=1) > 1)).sum() < FEWEST:
        return None
    held_out = np.full(there.shape, -np.inf)
    # Groups as they come, every fifth together; mentions, where all are of one group.
    numbers = np.unique(group, return_inverse=True)[1]
    fold = (numbers if numbers.any() else np.arange(len(group))) % FOLDS
    for i in range(FOLDS):
        rest, part = fold != i, fold == i
        if part.any() and rest.any():
            held_out[part] = _train(_rows(candidates, rest), right[rest])._scores(
                _rows(candidates, part)
            )
    odds = log_odds_among(held_out, there)
    best = odds.argmax(axis=1)[:, None]
    hit = np.take_along_axis(right, best, axis=1)[:, 0]
    curve = fit_plane(np.take_along_axis(odds, best, axis=1)[:, 0], nearest_of(candidates), hit)
    if curve is None:
        return None
    whole = _train(candidates, right)
    return replace(whole, curve=np.array(curve, dtype=np.float32), accuracy=float(hit.mean()))


def _rows(candidates: Candidates, rows: np.ndarray) -> Candidates:
    return Candidates(*(array[rows] for array in candidates[:3]))


def _inputs(candidates: Candidates) -> np.ndarray:
    """(m, c, 2 f) float32, not standardised; 0 for no candidate."""
    features, there = candidates.features, (candidates.entities >= 0)[:, :, None]
    largest = np.where(there, features, -np.inf).max(axis=1, keepdims=True, initial=-np.inf)
    below = np.where(there, features - largest, 0.0)
    return np.concatenate([features, below], axis=2).astype(np.float32)


def _train(candidates: Candidates, right: np.ndarray) -> Ranker:
    """Fit all but the curve, by L-BFGS from one fixed start."""
    there = candidates.entities >= 0
    useful = right.any(axis=1) & (there.sum(axis=1) > 1)
    candidates, right, there = _rows(candidates, useful), right[useful], there[useful]
    x = _inputs(candidates)
    if not len(x):
        mean, spread = np.zeros(x.shape[2]), np.ones(x.shape[2])
    else:
        mean, spread = x[there].mean(axis=0), x[there].std(axis=0)
        spread = np.where(spread > 1e-6, spread, 1.0)
    inputs = torch.from_numpy(((x - mean) / spread).astype(np.float32))
    weights = _start(x.shape[2])
    known, gold = torch.from_numpy(there), torch.from_numpy(right)
    penalty = PRIOR / max(len(x), 1)
    optimizer = torch.optim.LBFGS(
        weights, max_iter=STEPS, history_size=20, line_search_fn="strong_wolfe"
    )

    def closure():
        optimizer.zero_grad()
        linear, hidden, bias, out = weights
        scores = inputs @ linear + torch.tanh(inputs @ hidden + bias) @ out
        among = torch.logsumexp(scores.masked_fill(~known, -torch.inf), 1)
        good = torch.logsumexp(scores.masked_fill(~gold, -torch.inf), 1)
        size = sum((part**2).sum() for part in (linear, hidden, out))
        loss = (among - good).mean() + penalty * size
        loss.backward()
        return loss

    if len(x):
        optimizer.step(closure)
    linear, hidden, bias, out = (part.detach().numpy() for part in weights)
    curve = np.array([1.0, 0.0, 0.0], dtype=np.float32)
    standards = mean.astype(np.float32), spread.astype(np.float32)
    return Ranker(*standards, linear, hidden, bias, out, curve)


def _start(width: int) -> List[torch.Tensor]:
    # Its own generator: fitting in the middle of training must not disturb training.
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn((width, HIDDEN), generator=generator) * 0.3
    out = torch.randn(HIDDEN, generator=generator) * 0.1
    parts = [torch.zeros(width), hidden, torch.zeros(HIDDEN), out]
    return [part.requires_grad_() for part in parts]


def log_odds_among(scores: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Log-odds of each candidate against the others of its row, by softmax over scores."""
    scores = np.where(there, scores.astype(np.float64), -np.inf)
    top = scores.max(axis=1, keepdims=True, initial=-np.inf)
    p = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
    p /= np.maximum(p.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    # A lone candidate is not certain.
    p = np.clip(p, 1e-6, 1 - 1e-6)
    return np.where(there, np.log(p / (1 - p)), -np.inf)


def nearest_of(candidates: Candidates) -> np.ndarray:
    """The similarity of the nearest candidate of each mention, (m,)."""
    nearest = candidates.features[:, :, FEATURES.index("nearest")]
    nearest = np.where(candidates.entities >= 0, nearest, -np.inf).max(axis=1, initial=-np.inf)
    return np.where(np.isfinite(nearest), nearest, 0.0)
