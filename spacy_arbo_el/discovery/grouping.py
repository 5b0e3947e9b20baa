"""Which of the mentions that no entity fits are one new entity."""

from dataclasses import dataclass
from typing import Optional, Tuple

import numpy as np
from spacy.util import registry

from .. import graph
from ..errors import Errors
from ..graph.averages import average_joins
from ..graph.levels import labels_at
from ..inference.calibration import Calibration, log_odds
from ..retrieval.neighbours import nearest_in_corpus, nearest_in_document
from ..retrieval.similarity import Similarity

METHODS = ("weak", "strong", "arborescence", "average")

Found = Tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Discovery:
    """Groups mentions by edges from their nearest ones, those of λ and above.

    threshold: λ for new entities: the chance of being the same that two mentions must have, 0 to 1,
        by the curve "new" of the ``Calibration``.
    neighbours: How many of the nearest mentions each has edges from.
    method: "weak" or "strong" components, mention-only "arborescence"s (§3.5), or "average":
        clusters join while their members are this near on average.
    spans_key: The group of ``doc.spans`` that new entities are written to; "" for none.
    """

    threshold: float = 0.5
    neighbours: int = 4
    method: str = "weak"
    spans_key: str = "new_entities"

    def __post_init__(self) -> None:
        if not 0.0 <= self.threshold <= 1.0:
            raise ValueError(Errors.E402.format(value=self.threshold))
        if self.method not in METHODS:
            choices = ", ".join(METHODS)
            raise ValueError(Errors.E702.format(value=self.method, choices=choices))

    def least_similarity(self, calibration: Calibration) -> float:
        """λ as a similarity."""
        slope, offset = calibration.new
        return (log_odds(self.threshold) - offset) / slope

    def group(
        self,
        vectors: np.ndarray,
        similarity: Similarity,
        calibration: Calibration,
        document: Optional[np.ndarray] = None,
    ) -> np.ndarray:
        """The group of each mention: (m,) int64, numbered from 0 in order of first mention.

        vectors: (m, width) float32, prepared.
        document: (m,) ascending, to group the mentions of each document by themselves; None to
            group all together.
        """
        if len(vectors) < 2:
            return np.arange(len(vectors))
        found = (
            nearest_in_corpus(vectors, self.neighbours, similarity)
            if document is None
            else nearest_in_document(vectors, document, self.neighbours, similarity)
        )
        least = np.array([self.least_similarity(calibration)])
        return self.sweep(vectors, similarity, least, found)[0].astype(np.int64)

    def sweep(
        self,
        vectors: np.ndarray,
        similarity: Similarity,
        least: np.ndarray,
        found: Optional[Found] = None,
    ) -> np.ndarray:
        """Groups at many thresholds at once: (T, m) int32, numbered as in ``group``.

        least: (T,) similarities that edges must have. found: Neighbours and similarities, (m, k)
            each, where they are known.
        """
        near, values = found or nearest_in_corpus(vectors, self.neighbours, similarity)
        there = near >= 0
        target, column = np.nonzero(there)
        source, weight = near[there], -values[target, column]
        if self.method != "average":
            arrays = (0, len(vectors), source, target, weight)
            return graph.sweep(*arrays, thresholds=-least, leftover=self.method).cluster
        limit = float((-least).max())
        joins = average_joins(vectors, source, target, limit, euclidean=similarity.metric != "ip")
        order = np.argsort(-least, kind="stable")
        labels = labels_at(len(vectors), joins, (-least)[order].astype(np.float32))
        groups = np.empty_like(labels)
        for row, at in enumerate(order.tolist()):
            groups[at] = np.unique(labels[row], return_inverse=True)[1]
        return groups


@registry.misc("spacy-arbo-el.Discovery.v1")
def discovery(
    threshold: float = 0.5,
    neighbours: int = 4,
    method: str = "weak",
    spans_key: str = "new_entities",
) -> Discovery:
    """Group mentions that no entity fits into new entities; see ``Discovery``."""
    return Discovery(threshold, neighbours, method, spans_key)
