"""Curves that bring different similarities to one scale.

Each kind of edge has its own scale: the similarity of a mention to the text of an entity says
something else than its similarity to another mention. A logistic curve for each kind, fitted on
annotated data, turns both into log-odds. The graph's weights, the threshold and the scores that
people see are on that scale.
"""

from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional, Sequence

import numpy as np

from ..errors import Errors
from .logistic import Curve

# A (slope, offset) by kind, as configs hold them.
CurveSettings = Mapping[str, Sequence[float]]
KINDS = ("entity", "exemplar", "mention", "same_mention", "same_new_entity")


@dataclass(frozen=True)
class Calibration:
    """Logistic curves, one (slope, offset) for each kind of similarity.

    ``probability = sigmoid(slope * similarity + offset)``.

    The defaults are a guess that suits cosine similarity. ``arbo calibrate`` and the callback
    ``Calibrate.v1`` fit them on annotated documents.

    entity: That a mention is the entity with this text.
    exemplar: That a mention is the entity of this exemplar.
    mention: That a mention is the entity of another mention of the document.
    same_mention: That two mentions of any documents are the same entity, by their vectors.
    same_new_entity: The same for mentions that no entity fits, by what ``Discovery`` compares.
    """

    entity: Curve = (12.0, -6.0)
    exemplar: Curve = (12.0, -6.0)
    mention: Curve = (12.0, -8.0)
    same_mention: Curve = (12.0, -9.0)
    same_new_entity: Curve = (12.0, -9.0)

    @classmethod
    def from_config(cls, curves: Optional[CurveSettings]) -> "Calibration":
        """The calibration that a config holds; None for the defaults."""
        given = {name: tuple(float(x) for x in curve) for name, curve in (curves or {}).items()}
        for name, curve in given.items():
            fits = len(curve) == 2 and bool(np.isfinite(curve).all())
            if name not in KINDS or not fits or curve[0] <= 0:
                raise ValueError(Errors.E401.format(name=name, curve=curve, known=list(KINDS)))
        return cls(**given)  # type: ignore[arg-type]

    def to_config(self) -> Dict[str, List[float]]:
        return {kind: list(getattr(self, kind)) for kind in KINDS}

    def times(self, weight: float) -> "Calibration":
        """The calibration with all log-odds multiplied by a positive number."""
        curves = (getattr(self, kind) for kind in KINDS)
        return Calibration(*((weight * slope, weight * offset) for slope, offset in curves))

    def logits(self, kind: str, similarity: np.ndarray) -> np.ndarray:
        """Log-odds that edges of a kind are correct. Float32, in the shape of ``similarity``."""
        slope, offset = getattr(self, kind)
        return (slope * similarity + offset).astype(np.float32)
