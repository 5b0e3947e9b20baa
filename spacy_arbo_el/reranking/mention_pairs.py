"""A scorer of edges between mentions, which reads both together (arborescence paper, §3.3)."""

from dataclasses import dataclass, field, replace
from typing import Any, Optional

import numpy as np
import srsly
from spacy.util import registry

from ..arrays import TopK
from ..calibration.calibration import Calibration
from ..calibration.logistic import Curve
from ..encoders.inputs import SpanInputs
from ..encoders.windows import check_size
from ..errors import Errors, Warnings
from ..log import warn_once
from ..settings import check_count
from .pair_inputs import pairs_of_mentions
from .pair_scorer import CachedScorer, PairScorer, Scorer

# Pairs whose word pieces are in memory at a time.
BLOCK = 1 << 14


@dataclass(frozen=True)
class MentionPairs:
    """Scores the edges between mentions by reading both together; see ``mention_pairs``.

    n_scored: How many of the nearest mentions of a mention are scored. Those behind them are no
        neighbours any more, since a similarity cannot be compared with a score.
    window: The most word pieces of each of the two mentions with its context.
    scorer: What ``arbo rerank --mentions`` has trained; None for nothing.
    curve: The curve of the log-odds by similarity that are added to the scores; None for scores of
        their own. The scorer was trained with it, so it stays when the linker is calibrated again.
    """

    n_scored: int = 4
    window: int = 48
    scorer: Optional[Scorer] = field(default=None, repr=False)
    curve: Optional[Curve] = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_count("mention_scorer.n_scored", self.n_scored, 1)
        check_size("mention_scorer.window", self.window)

    @property
    def size(self) -> int:
        """The most word pieces of a pair."""
        return 2 * self.window

    @property
    def is_trained(self) -> bool:
        return self.scorer is not None

    def __call__(self, inputs: SpanInputs, nearest: TopK, retriever: str, first: int = 0) -> TopK:
        """See ``MentionScorer``. Mentions that cannot be read are nobody's neighbours."""
        if self.scorer is None:
            return nearest
        nearest = nearest.first(self.n_scored)
        own = first + np.arange(len(nearest))
        readable = inputs.readable
        valid = nearest.valid & readable[nearest.ids] & readable[own][:, None]
        if not valid.any():
            return nearest.where(valid)
        if self.scorer.scorer.retriever != retriever:
            warn_once(Warnings.W910)
        others, mentions = nearest.ids[valid], np.broadcast_to(own[:, None], valid.shape)[valid]
        scores = np.full(valid.shape, -np.inf, dtype=np.float32)
        read = self.score(inputs, mentions, others)
        scores[valid] = self.with_similarities(read, nearest.scores[valid])
        order = np.lexsort((nearest.ids, -scores), axis=1)
        ids = np.where(valid, nearest.ids, -1)
        return TopK(np.take_along_axis(ids, order, 1), np.take_along_axis(scores, order, 1))

    def with_similarities(self, scores: np.ndarray, similarities: np.ndarray) -> np.ndarray:
        """(p,) float32, the scores of pairs of mentions with the log-odds by similarity added.

        scores: (p,) float32, what the scorer gives.
        similarities: (p,) float32, those of the vectors.
        """
        if self.curve is None:
            return scores
        slope, offset = self.curve
        return (scores + slope * similarities + offset).astype(np.float32)

    def score(self, inputs: SpanInputs, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """(p,) float32, the mean of the scores of each pair of mentions both ways round.

        A pair that occurs twice, or both ways round, is read once each way round. There must be a
        ``scorer``.

        inputs: As in ``__call__``.
        first, second: (p,) int64, the mentions of each pair.
        """
        low, high = np.minimum(first, second), np.maximum(first, second)
        pairs, place = np.unique(low * len(inputs) + high, return_inverse=True)
        ends = pairs // len(inputs), pairs % len(inputs)
        assert self.scorer is not None
        scores = np.empty((2, len(pairs)), dtype=np.float32)
        for start in range(0, len(pairs), BLOCK):
            part = slice(start, start + BLOCK)
            one, other = ends[0][part], ends[1][part]
            for way, (a, b) in enumerate(((one, other), (other, one))):
                scores[way, part] = self.scorer(self.pairs(inputs, a, b))
        return scores.mean(axis=0)[place.reshape(-1)]

    def pairs(self, inputs: SpanInputs, first: np.ndarray, second: np.ndarray) -> SpanInputs:
        """What the scorer reads of pairs of mentions, (p,) int64 each; there must be one."""
        assert self.scorer is not None
        specials = self.scorer.scorer.tokenizer.specials
        rows, place = np.unique(np.stack([first, second]), return_inverse=True)
        one, other = place.reshape(2, -1)
        return pairs_of_mentions(inputs.take(rows), one, other, self.window, specials)

    def cached(self) -> "MentionPairs":
        """The same, with scores that are remembered while weights stay as they are."""
        return self if self.scorer is None else replace(self, scorer=CachedScorer(self.scorer))

    def to_bytes(self) -> bytes:
        if self.scorer is None:
            return b""
        return srsly.msgpack_dumps({"scorer": self.scorer.scorer.to_bytes(), "curve": self.curve})

    def from_bytes(self, data: bytes) -> "MentionPairs":
        """What was trained. Raises ValueError where it was trained for a smaller window."""
        if not data:
            return replace(self, scorer=None, curve=None)
        content: Any = srsly.msgpack_loads(data)
        scorer = PairScorer.from_bytes(content["scorer"])
        trained = scorer.tower.attrs["reader"].size
        if trained < self.size:
            raise ValueError(Errors.E910.format(size=self.window, trained=trained // 2))
        curve = content["curve"] and Calibration.from_config({"mention": content["curve"]}).mention
        return replace(self, scorer=scorer, curve=curve)


@registry.misc("spacy-arbo-el.MentionPairs.v1")
def mention_pairs(n_scored: int = 4, window: int = 48) -> MentionPairs:
    """Score the edges between mentions by reading both together.

    By default, a score is the log-odds by the similarity of the vectors and what the model adds to
    them, see ``RerankerTraining.v1``. The scores take the place of the similarities, for inference
    and for discovery, and the curves "mention", "same_mention" and "same_new_entity" of the
    calibration are fitted on them. Use it where mentions decide by each other, and where linking
    may take several times as long. ``python -m spacy arbo rerank --mentions`` trains it for a
    trained pipeline, whose encoder stays as it is. Until it is trained, similarities stay::

        [components.arbo_linker.mention_scorer]
        @misc = "spacy-arbo-el.MentionPairs.v1"
        n_scored = 4

    n_scored: How many of the nearest mentions of a mention are scored. Those behind them are no
        neighbours any more, since a similarity cannot be compared with a score.
    window: The most word pieces of each of the two mentions with its context.
    """
    return MentionPairs(n_scored, window)
