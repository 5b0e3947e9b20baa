"""The model of a cross-encoder, a transformer with a linear layer, and how its scores count."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import srsly
from thinc.api import Linear, Model, chain
from thinc.types import Floats2d

from ....base.arrays import TopK, at_columns, int_array
from ....base.calibration import (
    fit_presence,
    fit_temperature,
    log_odds_of,
    log_softmax,
)
from ....encoders.inputs import EncodingCache, SpanInputs
from ....encoders.pooling import ClsPooling
from ....encoders.serialization import load_transformer
from ....encoders.shim import EncoderShim, attention_kind, loaded_shim, shim_of
from ....encoders.transformer import build_transformer_encoder
from ....encoders.windows import tokenizer_of
from ....encoders.word_pieces import WordPieceTokenizer
from ....ranking.features import FEATURES, CandidateFeatures
from ....ranking.ranker_fit import fit_weights
from ....ranking.ranker_weights import RankerWeights
from ....storage.files import pack_arrays, unpack_arrays
from ..errors import PaperMessages

# The standard deviation of the linear layer's first weights, as BERT's.
FIRST_WEIGHTS = 0.02
# Raw scores of a cross-encoder, until a curve is fitted: one of the candidates is right.
PLAIN = (1.0, 0.0, 4.0)


@dataclass(frozen=True, eq=False)
class PairScorer:
    """A transformer over pairs with a linear layer on [CLS].

    model: The two as a thinc model: pairs -> (p, 1).
    retriever: The fingerprint of the linker's encoder when this was trained.
    """

    model: Model
    retriever: str

    @classmethod
    def create(
        cls,
        source: Model,
        size: int,
        retriever: str,
        seed: int = 0,
    ) -> "PairScorer":
        """Create an untrained scorer with the weights and word pieces of an encoder.

        source: The encoder of mentions, a transformer tower.
        seed: Determines the weights of the linear layer.

        Raises ValueError where the transformer has no second token type or reads fewer word pieces.
        """
        read = (
            layer
            for layer in source.walk()
            if any(isinstance(s, EncoderShim) for s in layer.shims)
        )
        transformer = next(read, None)
        if transformer is None:
            raise PaperMessages.E874()
        shim = loaded_shim(transformer)
        tower = _tower(transformer.attrs["name"], size)
        shim_of(tower).from_bytes(shim.to_bytes())
        tower.initialize()
        tokenizer_of(tower, size)
        rng = np.random.default_rng(seed)
        weights = rng.normal(0, FIRST_WEIGHTS, (1, tower.get_dim("nO"))).astype(
            np.float32
        )
        return cls(
            _with_head(tower, weights, np.zeros(1, dtype=np.float32)), retriever
        )

    @property
    def tower(self) -> Model:
        """The transformer."""
        return self.model.layers[0]

    @property
    def tokenizer(self) -> WordPieceTokenizer:
        """The tokenizer of entities' texts."""
        return shim_of(self.tower).word_pieces

    def __call__(
        self, pairs: SpanInputs, cache: EncodingCache | None = None
    ) -> np.ndarray:
        """Return scores, (p,) float32, comparable among the candidates of a mention.

        cache: Keeps the scores for the next call; None to keep none.

        Errors: E873 for NaN.
        """
        if cache is None:
            return self._read(pairs)
        kind = "pairs", self.model.id
        return cache.of(
            kind,
            pairs.keys(),
            lambda new: self._read(pairs.take(int_array(new))),
        )

    def _read(self, pairs: SpanInputs) -> np.ndarray:
        if not len(pairs):
            return np.zeros(0, dtype=np.float32)
        if int(pairs.ids.max()) >= shim_of(self.tower).vocabulary_size:
            raise PaperMessages.E875(name=self.tower.attrs["name"])
        return check_scores(self.model.ops.to_numpy(self.model.predict(pairs))[:, 0])

    def begin_update(
        self, pairs: SpanInputs
    ) -> tuple[np.ndarray, Callable[[np.ndarray], None]]:
        """Score pairs (p,); return scores and their backprop."""
        ops: Any = self.model.ops
        scores, backprop = self.model.begin_update(pairs)
        return ops.to_numpy(scores)[:, 0], lambda gradient: backprop(
            ops.asarray2f(gradient[:, None])
        )

    def to_bytes(self) -> bytes:
        shim = shim_of(self.tower)
        head = self.model.layers[1]
        ops: Any = self.model.ops
        arrays = {name: ops.to_numpy(head.get_param(name)) for name in ("W", "b")}
        content: dict[str, Any] = {
            "retriever": self.retriever,
            "name": str(self.tower.attrs["name"]),
            "size": self.tower.attrs["reader"].size,
            "head": pack_arrays(arrays),
            "transformer": shim.to_bytes(),
        }
        return srsly.msgpack_dumps(content)

    @classmethod
    def from_bytes(cls, data: bytes) -> "PairScorer":
        """Load the result of ``to_bytes``. Raises ValueError where it is anything else."""
        content: Any = srsly.msgpack_loads(data)
        tower = _tower(str(content["name"]), int(content["size"]))
        message: Any = srsly.msgpack_loads(content["transformer"])
        shim_of(tower).set_transformer(*load_transformer(message, attention_kind()))
        tower.initialize()
        tokenizer_of(tower, tower.attrs["reader"].size)
        head = unpack_arrays(content["head"])
        shapes = {"W": (1, tower.get_dim("nO")), "b": (1,)}
        for name, shape in shapes.items():
            if head[name].shape != shape or head[name].dtype != np.float32:
                raise ValueError(
                    f"{name} has the shape {head[name].shape}, not {shape}"
                )
            if not np.isfinite(head[name]).all():
                raise ValueError(f"{name} has numbers that are not finite")
        return cls(_with_head(tower, head["W"], head["b"]), str(content["retriever"]))


def check_scores(scores: np.ndarray) -> np.ndarray:
    """The scores; ValueError where one is no finite number."""
    wrong = np.flatnonzero(~np.isfinite(scores))
    if len(wrong):
        raise PaperMessages.E873(count=len(wrong), total=len(scores))
    return scores


def _tower(name: str, size: int) -> Model[SpanInputs, Floats2d]:
    """A transformer over pairs, without weights."""
    tower = build_transformer_encoder(name, size, ClsPooling())
    tower.attrs["pairs"] = True
    return tower


def _with_head(tower: Model, weights: np.ndarray, bias: np.ndarray) -> Model:
    head = Linear(nO=1, nI=tower.get_dim("nO"))
    ops: Any = head.ops
    head.set_param("W", ops.asarray(weights))
    head.set_param("b", ops.asarray(bias))
    return chain(tower, head)


@dataclass(frozen=True, eq=False)
class CrossEncoderFit:
    """Parameters fitted on held-out documents.

    curve: The temperature of the softmax over scores, the weight of the log-odds that the first
        candidate had before, and an offset: for scores that rank by themselves.
    weights: Of the features with the score as one more; None where the score ranks by itself.
    """

    curve: tuple[float, float, float] = PLAIN
    weights: RankerWeights | None = None

    @classmethod
    def fit(
        cls,
        scores: np.ndarray,
        correct: np.ndarray,
        before: np.ndarray,
        features: CandidateFeatures | None,
        documents: np.ndarray,
    ) -> "CrossEncoderFit":
        """Learn from scored candidates.

        scores: (m, k) float32, NaN for none.
        correct: (m, k) bool.
        before: (m,) float32, the log-odds that the first candidate had before.
        features: Those of the candidates, with the scores; None to rank by scores alone.
        documents: (m,) int64, the document of each mention: these are held out at once.
        """
        scored = np.isfinite(scores)
        scores = np.where(scored, scores, -np.inf)
        gold = (correct & scored).any(axis=1)
        curve = PLAIN
        equal_counts = np.ones(len(scores))
        presence = fit_presence(
            before[:, None].astype(np.float64), gold, equal_counts, (1,)
        )
        if presence is not None:
            temperature, _ = fit_temperature(
                scores[gold], correct[gold], equal_counts[gold]
            )
            curve = (temperature, float(presence[0]), float(presence[1]))
        weights = (
            None if features is None else fit_weights(features, correct, documents)
        )
        return cls(curve, weights)

    def logits(
        self, scores: np.ndarray, valid: np.ndarray, before: np.ndarray
    ) -> np.ndarray:
        """Log-odds of candidates by scores alone: (m, k) float32.

        before: (m,) float32, the log-odds that the first candidate had before.
        """
        temperature, by_before, offset = self.curve
        log_shares = log_softmax(temperature * scores, valid)
        return log_odds_of(log_shares, by_before * before + offset)

    def to_bytes(self) -> bytes:
        weights = b"" if self.weights is None else self.weights.to_bytes()
        return pack_arrays(
            {
                "curve": np.array(self.curve),
                "weights": np.frombuffer(weights, dtype=np.uint8),
            }
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> "CrossEncoderFit":
        """Load the result of ``to_bytes``. Raises ValueError where a number is not finite."""
        arrays = unpack_arrays(data)
        curve = arrays["curve"]
        weights = arrays["weights"].tobytes()
        if curve.shape != (3,) or not np.isfinite(curve).all():
            raise ValueError(
                "the curve of the cross-encoder has numbers that are not finite"
            )
        n_features = len(FEATURES) + 1
        return cls(
            (float(curve[0]), float(curve[1]), float(curve[2])),
            RankerWeights.from_bytes(weights, n_features) if weights else None,
        )


def with_scores(
    candidates: CandidateFeatures, entities: np.ndarray, scores: np.ndarray
) -> CandidateFeatures:
    """Add a cross-encoder's score to candidates' features.

    entities: (m, k) int64, -1 for none. Those that are not among the candidates have features of 0.
    scores: (m, k) float32, NaN for none, which leaves a candidate out.
    """
    columns = TopK(
        candidates.entities, candidates.entities.astype(np.float32)
    ).columns_of(entities)
    place = np.maximum(columns, 0)
    features = np.take_along_axis(candidates.features, place[:, :, None], axis=1)
    features = np.where(columns[:, :, None] >= 0, features, np.float32(0))
    is_scored = np.isfinite(scores)
    score = np.where(is_scored, scores, np.float32(0))
    features = np.concatenate([features, score[:, :, None]], axis=2)
    features[~is_scored] = 0
    exemplars = at_columns(candidates.exemplars, columns, -1)
    prior = at_columns(candidates.prior, columns, 0)
    prior = np.where(is_scored, prior, np.float32(0))
    return CandidateFeatures(
        np.where(is_scored, entities, -1), features, exemplars, prior
    )
