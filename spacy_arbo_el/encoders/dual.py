"""Two towers with one space of vectors, mentions and entities, also in forked worker processes."""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import threadpoolctl
import torch
from spacy.util import registry
from thinc.api import Model
from thinc.types import Floats2d

from ..base.arrays import check_vectors, numbered
from ..base.errors import Errors
from ..storage.locks import ForkableLock
from .inputs import SpanInputs, check_offsets
from .protocol import PassageTower, Text, TowerReader

TOWERS = ("mention", "entity")
# Texts of entities that are tokenized at a time.
TEXT_BLOCK = 65536
# The environment variable of the package tokenizers.
PARALLELISM = "TOKENIZERS_PARALLELISM"
_home = os.getpid()
_parallelism: str | None = None


@registry.architectures("spacy-arbo-el.DualEncoder.v1")
def build_dual_encoder(
    mention: Model[SpanInputs, Floats2d],
    entity: Model[SpanInputs, Floats2d] | None = None,
) -> Model[SpanInputs, Floats2d]:
    """Build a mention encoder and an entity encoder (arborescence paper, §2.2, Equation 4).

    One tower with shared weights is the default: it needs less training and less memory. Two
    towers, as in the paper, are for large training data::

        [components.arbo_linker.model]
        @architectures = "spacy-arbo-el.DualEncoder.v1"
        entity = null

        [components.arbo_linker.model.mention]
        @architectures = "spacy-arbo-el.TransformerEncoder.v1"

    mention: The tower that encodes mentions, with its reader in ``attrs["reader"]``; see
        ``TowerReader``.
    entity: The tower that encodes texts of entities; None to encode them with the same tower.
    RETURNS: Model with the refs "mention" and "entity".
    """
    return Model(
        "dual_encoder",
        forward,
        init=init,
        layers=[mention] if entity is None else [mention, entity],
        refs={"mention": mention, "entity": entity or mention},
        dims={"nO": None},
    )


def init(model: Model, X: SpanInputs | None = None, Y: Floats2d | None = None) -> None:
    for layer in model.layers:
        layer.initialize()
    model.set_dim("nO", model.get_ref("mention").get_dim("nO"))


def forward(model: Model, X: SpanInputs, is_train: bool) -> tuple[Floats2d, Callable]:
    """Mentions through their tower. Texts of entities go to the other tower by its name."""
    return model.get_ref("mention")(X, is_train)


class DualEncoder:
    """Encodes mentions and entity texts in one vector space, with two towers.

    Vectors are (n, width) float32, not normalized, and zeros for what a tower cannot read.

    model: A thinc model with the refs "mention" and "entity", such as ``build_dual_encoder``
        gives; each ref is a tower (see ``TowerReader``) of any kind.
    is_trained: Whether the weights are in training.
    """

    _fingerprints: dict[int, str]

    def __init__(self, model: Model):
        self.model = model
        self.is_trained = False
        self._fingerprint = ""
        self._fingerprints = {}
        self._loading = ForkableLock()

    @property
    def is_ready(self) -> bool:
        """Return whether both towers have their weights."""
        sized = all(self.model.get_ref(tower).has_dim("nO") for tower in TOWERS)
        return sized and all(_has_weights(node) for node in self.model.walk())

    def load(self) -> bool:
        """Load the towers' pretrained weights, unless done before. RETURNS: Whether it is ready.

        Towers that begin with random weights stay without: they must be trained first.
        """
        with self._loading:
            towers = [self.model.get_ref(tower) for tower in TOWERS]
            if not self.is_ready and all(
                tower.attrs.get("pretrained") for tower in towers
            ):
                self.model.initialize()
                self.weights_changed()
        return self.is_ready

    def require_ready(self, name: str) -> None:
        """Load pretrained towers. Raise an error where the component ``name`` has no weights."""
        if not self.is_ready and not self.load():
            raise Errors.E504(name=name)

    @property
    def fingerprint(self) -> str:
        """A hash of the weights and of how towers read. Equal where vectors are comparable."""
        if not self._fingerprint:
            digest = hashlib.blake2b(digest_size=16)
            for tower in TOWERS:
                node = self.model.get_ref(tower)
                digest.update(repr(node.attrs["reader"]).encode("utf8"))
                digest.update(self._fingerprint_of(node).encode("utf8"))
            self._fingerprint = digest.hexdigest()
        return self._fingerprint

    @property
    def text_fingerprint(self) -> str:
        """Hash what the vectors of entities' texts depend on: not how mentions are read."""
        node = self.model.get_ref("entity")
        reader = node.attrs["reader"]
        identity = getattr(reader, "text_identity", "") or repr(reader)
        digest = hashlib.blake2b(digest_size=16)
        digest.update(f"{identity} {self._fingerprint_of(node)}".encode())
        return digest.hexdigest()

    def _fingerprint_of(self, tower: Model) -> str:
        if tower.id not in self._fingerprints:
            digest = hashlib.blake2b(digest_size=16)
            digest.update(repr(tower.attrs.get("pooling")).encode("utf8"))
            if any(node.attrs.get("text_type") for node in tower.walk()):
                digest.update(b"text_type")
            for name, weights in _weights(tower):
                digest.update(f"{name} {weights.dtype} {weights.shape}".encode())
                digest.update(np.ascontiguousarray(weights).data)
            self._fingerprints[tower.id] = digest.hexdigest()
        return self._fingerprints[tower.id]

    def weights_changed(self, *, trained: bool = False) -> None:
        """Note that weights have changed. trained: Whether they are in training."""
        self._fingerprint = ""
        self._fingerprints = {}
        self.is_trained = trained

    def end_training(self) -> None:
        """Predict as after saving and loading, until the next update."""
        for node in self.model.walk():
            for shim in node.shims:
                if hasattr(shim, "end_training"):
                    shim.end_training()

    def read_mentions(
        self, texts: Sequence[str], text_of: np.ndarray, offsets: np.ndarray
    ) -> SpanInputs:
        """Mentions in texts, ready to be encoded; see ``TowerReader.read_mentions``."""
        check_offsets(texts, text_of, offsets)
        return self._reader("mention").read_mentions(
            self.model.get_ref("mention"), texts, text_of, offsets
        )

    def read_texts(self, texts: Sequence[Text]) -> SpanInputs:
        """Texts of entities, ready to be encoded: one span for each text."""
        reader = self._reader("entity")
        tower = self.model.get_ref("entity")
        blocks = range(0, len(texts), TEXT_BLOCK)
        return SpanInputs.concat(
            reader.read_texts(tower, texts[i : i + TEXT_BLOCK]) for i in blocks
        )

    def encode_mentions(self, inputs: SpanInputs) -> np.ndarray:
        """Encode spans of mentions. Those of equal word pieces run once."""
        return self._predict_distinct("mention", inputs)

    def encode_texts(self, inputs: SpanInputs) -> np.ndarray:
        """Encode texts of entities. Those of equal word pieces, as in capitals, run once."""
        return self._predict_distinct("entity", inputs)

    def _predict_distinct(self, tower: str, inputs: SpanInputs) -> np.ndarray:
        places = numbered(inputs.keys())
        first = np.unique(places, return_index=True)[1]
        if len(first) == len(inputs):
            return self._predict(tower, inputs)
        return self._predict(tower, inputs.take(first))[places]

    @property
    def reads_passages(self) -> bool:
        """Return whether both towers can encode whole texts."""
        return all(isinstance(self._reader(tower), PassageTower) for tower in TOWERS)

    def encode_passages(
        self, tower: str, texts: Sequence[str], size: int
    ) -> np.ndarray:
        """Encode whole texts: contexts of mentions, and descriptions of entities.

        tower: "mention" for contexts, "entity" for descriptions.
        size: The most word pieces of a text that are read, special tokens included.
        """
        reader: Any = self._reader(tower)
        inputs = reader.read_passages(self.model.get_ref(tower), texts, size)
        return self._predict(tower, inputs)

    def _reader(self, tower: str) -> TowerReader:
        return self.model.get_ref(tower).attrs["reader"]

    def _predict(self, tower: str, inputs: SpanInputs) -> np.ndarray:
        model = self.model.get_ref(tower)
        if not len(inputs):
            return np.zeros((0, model.get_dim("nO")), dtype=np.float32)
        return check_vectors(model.ops.to_numpy(model.predict(inputs)), len(inputs))


def _has_weights(node: Model) -> bool:
    """Return whether a model node has all its weights. Its layers do not count."""
    return all(node.has_param(name) for name in node.param_names) and all(
        shim._model is not None for shim in node.shims
    )


def _weights(tower: Model) -> Iterator[tuple[str, np.ndarray]]:
    """All weights of a tower by name. 0.0 is added, since an optimizer turns -0.0 into 0.0."""
    for number, node in enumerate(tower.walk()):
        for name in sorted(node.param_names):
            yield f"{number} {name}", node.ops.to_numpy(node.get_param(name)) + 0.0
        for shim in node.shims:
            module: Any = shim._model
            if isinstance(module, torch.nn.Module):
                for name, tensor in sorted(module.state_dict().items()):
                    # As bytes, because NumPy has no bfloat16.
                    flat = (tensor.detach().cpu() + 0).contiguous().reshape(-1)
                    yield (
                        f"{number} {name} {tensor.shape}",
                        flat.view(torch.uint8).numpy(),
                    )


def _before_fork() -> None:
    """Tell tokenizers that children use one thread. They would warn of it in each of them."""
    global _parallelism
    _parallelism = os.environ.get(PARALLELISM)
    if _parallelism is None:
        os.environ[PARALLELISM] = "false"


def _after_fork_in_parent() -> None:
    if _parallelism is None:
        os.environ.pop(PARALLELISM, None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent)


def one_thread_after_fork() -> None:
    """Compute with one thread in a forked process, where OpenMP's threads do not survive.

    A child that asks for them waits for ever, and more threads would compete for the cores.
    """
    global _home
    if os.getpid() == _home:
        return
    _home = os.getpid()
    # For later imports.
    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)
    # OpenMP, which faiss uses, and OpenBLAS, which NumPy uses and which starts its threads anew in
    # each child: more threads than cores wait for each other by spinning.
    threadpoolctl.threadpool_limits(1)
