"""The pairs of mentions that a mention scorer learns from."""

from dataclasses import dataclass, replace
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np
from spacy.util import registry

from ..arrays import TopK
from ..calibration.logistic import Curve, fit_logistic
from ..encoders.inputs import SpanInputs
from ..mentions.batch import MentionBatch
from ..mentions.labels import Identity
from ..reranking.mention_pairs import MentionPairs
from ..retrieval.corpus_search import nearest_in_corpus
from ..retrieval.mention_search import nearest_in_document
from ..retrieval.settings import RetrieverSettings
from ..settings import check_count
from .losses import binary_cross_entropy


@dataclass(frozen=True)
class LabelledPairs:
    """Pairs of mentions, and whether they are of the same entity.

    scorer: Reads them.
    inputs: The spans of the mentions.
    first, second: (p,) int64, the two mentions of each pair.
    similarities: (p,) float32, those of their vectors.
    correct: (p,) bool.
    """

    scorer: MentionPairs
    inputs: SpanInputs
    first: np.ndarray
    second: np.ndarray
    similarities: np.ndarray
    correct: np.ndarray

    def __len__(self) -> int:
        return len(self.correct)

    def take(self, rows: np.ndarray) -> "LabelledPairs":
        """The given pairs."""
        columns = (self.first, self.second, self.similarities, self.correct)
        return LabelledPairs(self.scorer, self.inputs, *(column[rows] for column in columns))

    def one_way(self, seed: int) -> "LabelledPairs":
        """The same pairs, half of them the other way round, at random."""
        turned = np.random.default_rng(seed).random(len(self)) < 0.5
        first = np.where(turned, self.second, self.first)
        return replace(self, first=first, second=np.where(turned, self.first, self.second))

    def pairs(self) -> SpanInputs:
        return self.scorer.pairs(self.inputs, self.first, self.second)

    def loss(self, scores: np.ndarray) -> Tuple[float, np.ndarray]:
        """The mean binary cross entropy of the pairs, and its gradient."""
        return binary_loss(self._scored(scores), self.correct)

    def accuracy(self, scores: np.ndarray) -> float:
        """The share of pairs on whose right side of 0 the score is."""
        return float(((self._scored(scores) > 0) == self.correct).mean())

    def _scored(self, scores: np.ndarray) -> np.ndarray:
        return self.scorer.with_similarities(scores, self.similarities)

    def curve(self) -> Optional[Curve]:
        """From similarities to log-odds that a pair is right; None where there is no such curve."""
        return fit_logistic(self.similarities, self.correct)


def binary_loss(scores: np.ndarray, correct: np.ndarray) -> Tuple[float, np.ndarray]:
    """The mean binary cross entropy of scores as log-odds, and its gradient.

    Not a softmax over the neighbours of a mention: scores become weights in one graph, so those of
    different mentions must be comparable.

    scores: (p,) float32.
    correct: (p,) bool.
    RETURNS: The loss, and (p,) float32, its gradient with respect to the scores.
    """
    losses, gradient = binary_cross_entropy(scores.astype(np.float64), correct)
    return float(losses.mean()), (gradient / len(scores)).astype(np.float32)


@registry.misc("spacy-arbo-el.NearestPairs.v1")
@dataclass(frozen=True)
class NearestPairs:
    """The nearest right and the nearest wrong mentions of each mention (§3.3).

    Right is a mention of the same entity, which can be a new one. Neighbours in the document and
    neighbours in the corpus are both taken, since both kinds of edges are scored later. Use it in
    the config of ``arbo rerank --mentions``::

        [pairs]
        @misc = "spacy-arbo-el.NearestPairs.v1"
        n_right = 2

    n_right: With how many of its nearest right mentions each mention is paired, in its document,
        and again in the corpus.
    n_wrong: The same for wrong mentions.
    n_searched: Among how many of its nearest mentions these are looked for.
    """

    n_right: int = 2
    n_wrong: int = 2
    n_searched: int = 32

    def __post_init__(self) -> None:
        check_count("pairs.n_right", self.n_right, 1)
        check_count("pairs.n_wrong", self.n_wrong, 1)
        check_count("pairs.n_searched", self.n_searched, 1)

    @classmethod
    def every(cls, count: int) -> "NearestPairs":
        """Each mention with all of its ``count`` nearest mentions: the edges that are scored."""
        return cls(count, count, count)

    def __call__(
        self, batch: MentionBatch, identities: Sequence[Identity], settings: RetrieverSettings
    ) -> Tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The pairs, each once: the last four fields of ``LabelledPairs``.

        batch: Encoded mentions.
        identities: The entity of each; those without one are left out.
        settings: How vectors are compared, and whether mentions of other types are neighbours.
        """
        numbers = identity_numbers(identities)
        known = numbers[:, 0] >= 0
        ends, similarities = [np.zeros((2, 0), dtype=np.int64)], [np.zeros(0, dtype=np.float32)]
        for nearest in self._searches(batch, settings):
            nearest = nearest.where(known[nearest.ids] & known[:, None])
            same = are_same(numbers[:, None], numbers[nearest.ids])
            for kind, count in ((same, self.n_right), (~same, self.n_wrong)):
                chosen = nearest.valid & kind
                chosen &= np.cumsum(chosen, axis=1) <= count
                ends.append(np.stack([np.nonzero(chosen)[0], nearest.ids[chosen]]))
                similarities.append(nearest.scores[chosen])
        low, high = np.sort(np.concatenate(ends, axis=1), axis=0)
        pairs, place = np.unique(low * len(batch) + high, return_index=True)
        first, second = pairs // max(len(batch), 1), pairs % max(len(batch), 1)
        correct = are_same(numbers[first], numbers[second])
        return first, second, np.concatenate(similarities)[place], correct

    def _searches(self, batch: MentionBatch, settings: RetrieverSettings) -> List[TopK]:
        """The nearest mentions in the document, and in the corpus."""
        vectors, similarity, count = batch.encoded, settings.similarity, self.n_searched
        searches = [
            nearest_in_document(vectors, batch.documents, count, similarity),
            nearest_in_corpus(vectors, count, similarity),
        ]
        if settings.match_types:
            labels = batch.labels
            searches = [one.where(labels[one.ids] == labels[:, None]) for one in searches]
        return searches


def identity_numbers(identities: Sequence[Identity]) -> np.ndarray:
    """Numbers for entities: (m, g) int64, -1 for none."""
    numbers: Dict[str, int] = {}
    width = max(map(len, identities), default=0)
    table = np.full((len(identities), max(width, 1)), -1, dtype=np.int64)
    for row, identity in enumerate(identities):
        found = [numbers.setdefault(name, len(numbers)) for name in sorted(identity)]
        table[row, : len(found)] = found
    return table


def are_same(numbers: np.ndarray, others: np.ndarray) -> Any:
    """(…,) bool, whether mentions have an entity in common.

    numbers, others: (…, g) int64, their entities, -1 for none.
    """
    same = numbers[..., :, None] == others[..., None, :]
    return (same & (numbers[..., :, None] >= 0)).any(axis=(-2, -1))
