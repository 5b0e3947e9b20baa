"""Which of the mentions that no entity fits are one new entity."""

from dataclasses import dataclass
from typing import Optional, Sequence, Tuple

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer
from spacy.util import registry

from .. import graph
from ..errors import Errors
from ..graph.averages import average_joins
from ..graph.components import number_clusters
from ..graph.levels import labels_at
from ..inference.calibration import Calibration, similarity_of
from ..retrieval.neighbours import nearest_in_corpus, nearest_in_document
from ..retrieval.similarity import Similarity, cosine, unit

METHODS = ("weak", "strong", "arborescence", "average")
# Places that character n-grams are hashed to.
LETTERS = 256

Found = Tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Discovery:
    """Groups mentions by edges from their nearest ones, those of λ and above.

    threshold: λ for new entities: the chance of being the same that two mentions must have, 0 to 1,
        by the curve "new" of the ``Calibration``.
    neighbours: How many of the nearest mentions each has edges from.
    letters: What the letters of mentions count for beside their vectors, 0 to 1: with more than 0,
        mentions are as near as (1 - letters) times the cosine of their vectors and ``letters``
        times that of their character n-grams say.
    method: "weak" or "strong" components, mention-only "arborescence"s (§3.5), or "average":
        clusters join while their members are this near on average. (A stream joins mentions weakly,
        whatever the method: tune λ by "weak" for it.)
    spans_key: The group of ``doc.spans`` that new entities are written to; "" for none.
    """

    threshold: float = 0.5
    neighbours: int = 4
    letters: float = 0.0
    method: str = "weak"
    spans_key: str = "new_entities"

    def __post_init__(self) -> None:
        if not 0.0 <= self.threshold <= 1.0:
            raise ValueError(Errors.E402.format(value=self.threshold))
        if not 0.0 <= self.letters <= 1.0:
            raise ValueError(Errors.E714.format(value=self.letters))
        if self.method not in METHODS:
            choices = ", ".join(METHODS)
            raise ValueError(Errors.E702.format(value=self.method, choices=choices))

    def least_similarity(self, calibration: Calibration) -> float:
        """λ as a similarity."""
        return similarity_of(self.threshold, calibration.new)

    def features(self, vectors: np.ndarray, forms: Sequence[str]) -> np.ndarray:
        """What mentions are compared by: (m, width) float32, their vectors and their letters.

        vectors: (m, width) float32, prepared. forms: What is read for each.
        """
        if not self.letters:
            return vectors
        parts = np.sqrt(1 - self.letters) * unit(vectors), np.sqrt(self.letters) * letters_of(forms)
        return np.hstack(parts).astype(np.float32)

    def compared_by(self, similarity: Similarity) -> Similarity:
        """How features are compared, where vectors are by ``similarity``."""
        return cosine() if self.letters else similarity

    def group(
        self,
        features: np.ndarray,
        similarity: Similarity,
        calibration: Calibration,
        document: Optional[np.ndarray] = None,
        labels: Optional[np.ndarray] = None,
    ) -> np.ndarray:
        """The group of each mention: (m,) int64, numbered from 0 in order of first mention.

        features: As ``features`` gives them. similarity: That of vectors.
        document: (m,) ascending, to group the mentions of each document by themselves; None to
            group all together.
        labels: (m,) of any kind, where mentions of different ones can't be the same; else None.
        """
        if len(features) < 2:
            return np.arange(len(features))
        by = self.compared_by(similarity)
        near, values = (
            nearest_in_corpus(features, self.neighbours, by)
            if document is None
            else nearest_in_document(features, document, self.neighbours, by)
        )
        if labels is not None:
            near = np.where(labels[near] == labels[:, None], near, -1)
        least = np.array([self.least_similarity(calibration)])
        return self.sweep(features, similarity, least, (near, values))[0].astype(np.int64)

    def sweep(
        self,
        features: np.ndarray,
        similarity: Similarity,
        least: np.ndarray,
        found: Optional[Found] = None,
    ) -> np.ndarray:
        """Groups at many thresholds at once: (T, m) int32, numbered as in ``group``.

        least: (T,) similarities that edges must have. found: Neighbours and similarities, (m, k)
            each, where they are known.
        """
        by = self.compared_by(similarity)
        near, values = found or nearest_in_corpus(features, self.neighbours, by)
        there = near >= 0
        target, column = np.nonzero(there)
        source, weight = near[there], -values[target, column]
        if self.method != "average":
            arrays = (0, len(features), source, target, weight)
            return graph.sweep(*arrays, thresholds=-least, leftover=self.method).cluster
        limit = float((-least).max())
        joins = average_joins(features, source, target, limit, euclidean=by.metric != "ip")
        order = np.argsort(-least, kind="stable")
        labels = labels_at(len(features), joins, (-least)[order].astype(np.float32))
        groups = np.empty_like(labels)
        for row, at in enumerate(order.tolist()):
            groups[at] = number_clusters(labels[row], len(features))
        return groups


def letters_of(forms: Sequence[str]) -> np.ndarray:
    """Character n-grams of strings, hashed: (m, LETTERS) float32 of length 1.

    The same string has the same whatever else there is, so that they can be kept.
    """
    vectorizer = HashingVectorizer(analyzer="char_wb", ngram_range=(2, 4), n_features=LETTERS)
    return vectorizer.transform(forms).toarray().astype(np.float32)


@registry.misc("spacy-arbo-el.Discovery.v1")
def discovery(
    threshold: float = 0.5,
    neighbours: int = 4,
    letters: float = 0.0,
    method: str = "weak",
    spans_key: str = "new_entities",
) -> Discovery:
    """Group mentions that no entity fits into new entities; see ``Discovery``."""
    return Discovery(threshold, neighbours, letters, method, spans_key)
