"""Similarities -> the chance that a link is right.

Each kind of edge has its own scale: how near an entity's text is says something else than how
near a mention is. A logistic curve for each, fitted on annotated data, brings them to one scale,
on which the graph's weights, the threshold and the scores that people see live.
"""

from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional, Sequence

import numpy as np

from ..errors import Errors
from ..retrieval.candidates import Candidates
from .curves import Curve
from .ranker import Ranker

KINDS = ("entity", "exemplar", "mention", "near", "new")


@dataclass(frozen=True)
class Calibration:
    """``probability = sigmoid(slope * similarity + offset)``, a (slope, offset) an edge kind.

    entity: From an entity to a mention. exemplar: From a stored, labelled mention.
    mention: From another mention of the document.
    near: Between two mentions of any documents, by their vectors: the chance that they are the
        same. new: The same by what the ``discovery`` compares, for mentions that no entity fits.
    ranker: Weighs up the candidates of a mention, see ``ranker.py``; with a lexicon only. Not part
        of the config: it is saved with the pipeline.

    The default curves are a guess that suits cosine similarity; ``fit_curve`` gives real ones.
    """

    entity: Curve = (12.0, -6.0)
    exemplar: Curve = (12.0, -6.0)
    mention: Curve = (12.0, -8.0)
    near: Curve = (12.0, -9.0)
    new: Curve = (12.0, -9.0)
    ranker: Optional[Ranker] = None

    @classmethod
    def from_config(cls, curves: Optional[Mapping[str, Sequence[float]]]) -> "Calibration":
        given = {name: tuple(float(x) for x in curve) for name, curve in (curves or {}).items()}
        for name, curve in given.items():
            fits = len(curve) == 2 and bool(np.isfinite(curve).all())
            if name not in KINDS or not fits or curve[0] <= 0:
                raise ValueError(Errors.E401.format(name=name, curve=curve, known=list(KINDS)))
        return cls(**given)  # type: ignore[arg-type]

    def to_config(self) -> Dict[str, List[float]]:
        return {kind: list(getattr(self, kind)) for kind in KINDS}

    def weigh_up(self, candidates: Candidates) -> np.ndarray:
        """Log-odds that each candidate is right by the ranker, (m, c) float32; -inf for none."""
        if candidates.logits is not None:
            return np.where(candidates.entities >= 0, candidates.logits, np.float32(-np.inf))
        assert self.ranker is not None
        return self.ranker.logits(candidates)

    def logits(self, kind: str, similarity: np.ndarray) -> np.ndarray:
        """Log-odds that edges of this kind are right; float32, of the same shape."""
        slope, offset = getattr(self, kind)
        return (slope * similarity + offset).astype(np.float32)


def similarity_of(chance: float, curve: Curve) -> float:
    """The similarity at which a curve gives this chance; infinite at the ends of the scale."""
    slope, offset = curve
    return (log_odds(chance) - offset) / slope


def probability(logits):
    """Log-odds -> probabilities."""
    return 1.0 / (1.0 + np.exp(-np.clip(logits, -80, 80)))


def log_odds(p: float) -> float:
    """A probability -> log-odds, with the ends of the scale at infinity."""
    if p <= 0.0:
        return -np.inf
    return np.inf if p >= 1.0 else float(np.log(p / (1.0 - p)))
