"""Serialization of the component to bytes, folders and processes."""

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Mapping, Protocol, Tuple

import srsly
from spacy import util
from spacy.vocab import Vocab
from thinc.api import Model

from ..calibration import Calibration
from ..discovery.new_entities import NewEntities
from ..encoders.dual import TOWERS, DualEncoder
from ..errors import ArboError, Errors, Warnings
from ..reranking.protocol import Reranker
from ..storage.manifest import Checksum
from .component_folder import KB, ComponentFolder
from .corrections import Corrections
from .settings import LiveSettings
from .stages import LinkingStages
from .stream import Stream
from .validation import (
    check_corrections,
    check_exemplars,
    check_towers,
    check_word_pieces,
    drop_orphans,
    reading_part,
)

FORMAT = 3
# What the config says of an encoder wins over what it said when the pipeline was saved.
ENCODER_SETTINGS = (
    "name",
    "reader",
    "pooling",
    "predict_tokens",
    "train_tokens",
    "kept_tokens",
    "text_type",
)


class Serializable(Protocol):
    """The state of a linker.

    cfg: Settings that may change at run time. They are saved in the pipeline's config alone.
    """

    name: str
    vocab: Vocab
    model: Model
    encoder: DualEncoder
    stages: LinkingStages
    streaming: Stream
    cfg: LiveSettings


@dataclass(frozen=True)
class _Part:
    """A part of the state, with functions for bytes. Its name, a function that gives its bytes,
    one that takes them.
    """

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
        """Serialize all parts but the excluded, with checksums."""
        kb = self.linker.stages.datastore.kb
        parts = {part.name: part.dump() for part in self._parts(exclude)}
        if KB not in exclude:
            parts[KB] = kb.to_bytes()
        content = {
            "format": FORMAT,
            "checksums": {name: Checksum.of(data).hash for name, data in parts.items()},
            "parts": parts,
        }
        return srsly.msgpack_dumps(content)

    def from_bytes(self, data: bytes, exclude: Iterable[str]) -> None:
        """Load all saved parts but the excluded ones."""
        with reading_part(self.linker.name, "bytes"):
            content: Any = srsly.msgpack_loads(data)
            if content["format"] != FORMAT:
                raise ArboError(Errors.E057.format(problem=f"format {content['format']!r:.20}"))
            sums = {name: Checksum.of(part).hash for name, part in content["parts"].items()}
            if sums != content["checksums"]:
                raise ArboError(Errors.E057.format(problem="a checksum is wrong"))
            parts = content["parts"]
        if KB in parts and KB not in exclude:
            self.linker.stages.datastore.kb.from_bytes(parts[KB])
        self._load(parts, exclude)

    def to_disk(self, path: Path, exclude: Iterable[str]) -> None:
        """Write a folder in one step. It is the old one or the new one at any moment."""
        kb = None if KB in exclude else self.linker.stages.datastore.kb
        parts = {part.name: part.dump for part in self._parts(exclude)}
        ComponentFolder(path).write(parts, kb)
        self._warn_of_other_config(path)

    def from_disk(self, path: Path, exclude: Iterable[str]) -> None:
        """Load a folder of ``to_disk`` after checking each file."""
        open_kb = None if KB in exclude else self.linker.stages.datastore.kb.from_disk
        names = [part.name for part in self._parts(exclude)]
        self._load(ComponentFolder(path).read(names, open_kb), exclude)

    def _load(self, parts: Mapping[str, bytes], exclude: Iterable[str]) -> None:
        """Load the parts that were read, after the knowledge base."""
        for part in self._parts(exclude):
            if part.name in parts:
                with reading_part(self.linker.name, part.name):
                    part.load(parts[part.name])
        stages = self.linker.stages
        drop_orphans(stages.corrections, stages.datastore.exemplars, self.linker.name)
        self.linker.encoder.weights_changed()
        stages.datastore.loaded()

    def _warn_of_other_config(self, path: Path) -> None:
        """Warn if the saved config disagrees with settings in force."""
        file = path.parent / "config.cfg"
        try:
            config = util.load_config(file, interpolate=True)["components"][path.name]
        except (OSError, ValueError, KeyError, TypeError):
            return
        cfg = self.linker.cfg
        keys = [key for key in cfg if key in config and config[key] != cfg[key]]
        if keys:
            message = Warnings.W516.format(path=file, name=path.name, keys=", ".join(keys))
            warnings.warn(message)

    def _parts(self, exclude: Iterable[str]) -> List[_Part]:
        linker, stages = self.linker, self.linker.stages
        exemplars, vocab = stages.datastore.exemplars, linker.vocab
        parts = [
            _Part(
                "vocab",
                lambda: vocab.to_bytes(exclude=exclude),
                lambda data: vocab.from_bytes(data, exclude=exclude),
            ),
            _Part("model", linker.model.to_bytes, self._load_model),
            _Part("exemplars", exemplars.to_bytes, self._load_exemplars),
            _Part("reranker", self.dump_reranker, self.load_reranker),
            _Part("corrections", stages.corrections.to_bytes, self._load_corrections),
            _Part("new_entities", linker.streaming.new_entities.to_bytes, self._load_new),
        ]
        return [part for part in parts if part.name not in exclude]

    def use_cfg(self) -> None:
        """Link with the settings that are in ``cfg`` now."""
        check_threshold(self.linker.cfg["threshold"])
        calibration = Calibration.from_config(self.linker.cfg["calibration"])
        self.linker.stages = replace(self.linker.stages, calibration=calibration)

    def _load_model(self, data: bytes) -> None:
        """Load weights from bytes, but settings from the config."""
        model = self.linker.model
        refs = {tower: model.get_ref(tower) for tower in TOWERS}
        settings = [
            {key: layer.attrs[key] for key in ENCODER_SETTINGS if key in layer.attrs}
            for layer in model.walk()
        ]
        model.from_bytes(data)
        for layer, kept in zip(model.walk(), settings):
            layer.attrs.update(kept)
        check_towers(model, refs)

    def _load_exemplars(self, data: bytes) -> None:
        exemplars = self.linker.stages.datastore.exemplars.from_bytes(data)
        check_exemplars(exemplars, self.linker.model)

    def dump_reranker(self) -> bytes:
        """Serialized weights and kind of the reranker. Empty for nothing."""
        reranker = self.linker.stages.reranker
        data = reranker.to_bytes()
        return srsly.msgpack_dumps({"kind": kind_of(reranker), "data": data}) if data else b""

    def load_reranker(self, data: bytes) -> None:
        """Load the reranker's weights, unless the config has another one."""
        present = self.linker.stages.reranker
        saved: Any = srsly.msgpack_loads(data) if data else {"kind": kind_of(present), "data": b""}
        learned, kind, name = saved["data"], saved["kind"], self.linker.name
        if kind != kind_of(present):
            shown = {"saved": f"{kind:.80}", "present": kind_of(present)}
            warnings.warn(Warnings.W503.format(name=name, **shown))
            learned = b""
        reranker = present.from_bytes(learned)
        self.linker.stages = replace(self.linker.stages, reranker=reranker)

    def _load_corrections(self, data: bytes) -> None:
        corrections = Corrections.from_bytes(data)
        check_corrections(corrections)
        self.linker.stages = replace(self.linker.stages, corrections=corrections)

    def _load_new(self, data: bytes) -> None:
        new_entities = NewEntities.from_bytes(data)
        check_word_pieces(new_entities.rows.inputs, self.linker.model)
        self.linker.streaming.new_entities = new_entities


def kind_of(reranker: Reranker) -> str:
    """A key that rerankers must share to exchange weights."""
    settings = getattr(reranker, "learned_with", {})
    named = ", ".join(f"{name} = {value}" for name, value in settings.items())
    return type(reranker).__name__ + (f" ({named})" if named else "")


def check_threshold(value: float) -> float:
    """The value, where it is a probability; else ValueError."""
    if not 0.0 <= value <= 1.0:
        raise ArboError(Errors.E402.format(value=value))
    return value


def pickled_parts(linker: Any, settings: Dict[str, Any]) -> Tuple[Any, ...]:
    """Parts from which ``rebuild`` makes the same linker. Another process unpickles them.

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
