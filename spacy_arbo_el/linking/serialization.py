"""How the component is written and read: bytes, folders, checkpoints and other processes."""

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Protocol, Tuple

import numpy as np
import srsly
from spacy import util
from spacy.vocab import Vocab
from thinc.api import Model

from ..calibration.calibration import Calibration
from ..discovery.new_entities import NewEntities
from ..encoders.dual import DualEncoder
from ..errors import Errors, Warnings
from ..io import write_file
from .corrections import Corrections
from .stages import LinkingStages
from .stream import Stream

# What the config says of an encoder wins over what it said when the pipeline was saved.
ENCODER_SETTINGS = ("reader", "pooling", "predict_tokens", "train_tokens", "kept_tokens")


class Serializable(Protocol):
    """The state of a linker.

    cfg: Settings that may change at run time.
    initial_cfg: The same as the config gave them.
    """

    name: str
    vocab: Vocab
    model: Model
    encoder: DualEncoder
    stages: LinkingStages
    streaming: Stream
    cfg: Dict[str, Any]
    initial_cfg: Dict[str, Any]


@dataclass(frozen=True)
class _Part:
    """One part of the state: its name, a function that gives its bytes, one that takes them."""

    name: str
    dump: Callable[[], bytes]
    load: Callable[[bytes], Any]


@dataclass(frozen=True)
class Serializer:
    """Writes and reads the state of a linker.

    linker: The linker.
    """

    linker: Serializable

    def to_bytes(self, exclude: Iterable[str]) -> bytes:
        """All parts but the excluded ones as bytes."""
        return util.to_bytes({part.name: part.dump for part in self._parts(exclude)}, exclude)

    def from_bytes(self, data: bytes, exclude: Iterable[str]) -> None:
        """Take over all parts but the excluded ones."""
        loaders = {part.name: part.load for part in self._parts(exclude)}
        util.from_bytes(data, loaders, exclude)
        self._loaded()

    def to_disk(self, path: Path, exclude: Iterable[str]) -> None:
        """Write a folder with one file a part; a file is replaced as a whole or stays."""
        writers = {part.name: _writer(part) for part in self._parts(exclude)}
        writers["vocab"] = lambda p: self.linker.vocab.to_disk(p, exclude=exclude)
        writers["kb"] = self.linker.stages.datastore.kb.to_disk
        util.to_disk(path, writers, exclude)

    def from_disk(self, path: Path, exclude: Iterable[str]) -> None:
        """Read a folder that ``to_disk`` wrote."""
        readers = {part.name: _reader(part) for part in self._parts(exclude)}
        readers["vocab"] = lambda p: self.linker.vocab.from_disk(p, exclude=exclude)
        readers["kb"] = self.linker.stages.datastore.kb.from_disk
        util.from_disk(path, readers, exclude)
        self._loaded()

    def _loaded(self) -> None:
        self.linker.encoder.weights_changed()
        self.linker.stages.datastore.loaded()

    def _parts(self, exclude: Iterable[str]) -> List[_Part]:
        linker, stages = self.linker, self.linker.stages
        kb, exemplars = stages.datastore.kb, stages.datastore.exemplars
        vocab = linker.vocab
        return [
            _Part("cfg", self._dump_cfg, self._load_cfg),
            _Part(
                "vocab",
                lambda: vocab.to_bytes(exclude=exclude),
                lambda data: vocab.from_bytes(data, exclude=exclude),
            ),
            _Part("model", linker.model.to_bytes, self._load_model),
            _Part("kb", kb.to_bytes, kb.from_bytes),
            _Part("exemplars", exemplars.to_bytes, exemplars.from_bytes),
            _Part("reranker", stages.reranker.to_bytes, self.load_reranker),
            _Part("corrections", stages.corrections.to_bytes, self._load_corrections),
            _Part("new_entities", linker.streaming.new_entities.to_bytes, self._load_new),
        ]

    def _dump_cfg(self) -> bytes:
        cfg = {"now": self.linker.cfg, "initial": self.linker.initial_cfg}
        return srsly.json_dumps(cfg).encode("utf8")

    def _load_cfg(self, data: bytes) -> None:
        """What was set at run time comes back, unless the config gives another value now."""
        saved = srsly.json_loads(data.decode("utf8"))
        for key, value in saved["now"].items():
            if self.linker.initial_cfg.get(key) == saved["initial"].get(key):
                self.linker.cfg[key] = value
        self.use_cfg()

    def use_cfg(self) -> None:
        """Link with the settings that are in ``cfg`` now."""
        check_threshold(self.linker.cfg["threshold"])
        calibration = Calibration.from_config(self.linker.cfg["calibration"])
        self.linker.stages = replace(self.linker.stages, calibration=calibration)

    def _load_model(self, data: bytes) -> None:
        """Weights come from the bytes, settings of the encoders from the present config."""
        layers = self.linker.model.layers
        settings = [
            {key: layer.attrs[key] for key in ENCODER_SETTINGS if key in layer.attrs}
            for layer in layers
        ]
        self.linker.model.from_bytes(data)
        for layer, kept in zip(layers, settings):
            layer.attrs.update(kept)

    def load_reranker(self, data: bytes) -> None:
        """Take over what the reranker has learned."""
        reranker = self.linker.stages.reranker.from_bytes(data)
        if data and not reranker.to_bytes():
            warnings.warn(Warnings.W502.format(name=self.linker.name))
        self.linker.stages = replace(self.linker.stages, reranker=reranker)

    def _load_corrections(self, data: bytes) -> None:
        corrections = Corrections.from_bytes(data)
        self.linker.stages = replace(self.linker.stages, corrections=corrections)

    def _load_new(self, data: bytes) -> None:
        self.linker.streaming.new_entities = NewEntities.from_bytes(data)

    # Checkpoints of training

    def checkpoint(self) -> Dict[str, np.ndarray]:
        """What a checkpoint keeps beside the weights and the state of training."""
        datastore = self.linker.stages.datastore
        if len(datastore.exemplars.vectors) != len(datastore.exemplars):
            datastore.complete()
        exemplars, reranker = datastore.exemplars, self.linker.stages.reranker
        parts = {"exemplars": exemplars.to_bytes(), "reranker": reranker.to_bytes()}
        return {name: np.frombuffer(data, dtype=np.uint8) for name, data in parts.items()}

    def restore_checkpoint(self, arrays: Dict[str, np.ndarray], cfg: Dict[str, Any]) -> None:
        """Take over what ``checkpoint`` gave, and the settings of that time."""
        self.linker.cfg.update(cfg)
        self.use_cfg()
        self.load_reranker(arrays["reranker"].tobytes())
        datastore = self.linker.stages.datastore
        datastore.exemplars.from_bytes(arrays["exemplars"].tobytes())
        datastore.changed()


def check_threshold(value: float) -> float:
    """The value, where it is a probability; else ValueError."""
    if not 0.0 <= value <= 1.0:
        raise ValueError(Errors.E402.format(value=value))
    return value


def _writer(part: _Part) -> Callable[[Path], Any]:
    return lambda path: write_file(path, part.dump())


def _reader(part: _Part) -> Callable[[Path], Any]:
    return lambda path: part.load(path.read_bytes())


def pickled_parts(linker: Any, settings: Dict[str, Any]) -> Tuple[Any, ...]:
    """What ``rebuild`` makes the same linker of in another process.

    settings: The keyword arguments of its constructor.
    """
    state = linker.to_bytes(exclude=["vocab", "model"])
    parts = (type(linker), linker.vocab, linker.model, linker.name, settings, state)
    return (*parts, linker.streaming.process)


def rebuild(
    kind: type,
    vocab: Vocab,
    model: Model,
    name: str,
    settings: Dict[str, Any],
    state: bytes,
    stream_process: Any,
) -> Any:
    """A linker in another process, from its ``pickled_parts``."""
    linker = kind(vocab, model, name, **settings)
    linker.streaming.process = stream_process
    return linker.from_bytes(state, exclude=["vocab", "model"])
