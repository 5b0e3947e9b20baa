"""Saving and loading of the component: to bytes, to folders, and to other processes.

``component_folder.py`` has the folder that it is saved in.
"""

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import srsly
from spacy.vocab import Vocab
from thinc.api import Model

from ..base.devices import device_of_vectors
from ..base.errors import Errors, Warnings, code_of
from ..discovery.new_entities import NewEntities
from ..encoders.dual import TOWERS, DualEncoder
from ..encoders.inputs import SpanInputs
from ..retrieval.exemplars import ExemplarStore
from ..storage.files import Checksum
from .component_folder import KB, VERSION, ComponentFolder
from .corrections import Corrections
from .stages import LinkingStages

if TYPE_CHECKING:
    from ..encoders.shim import EncoderShim

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


class SavedLinker(Protocol):
    """The parts of an ``ArboLinker`` that are saved and loaded."""

    vocab: Vocab
    model: Model
    name: str
    encoder: DualEncoder
    stages: LinkingStages
    new_entities: NewEntities


class _Part(NamedTuple):
    """A part of the state with functions that give its bytes and that take them."""

    name: str
    dump: Callable[[], bytes]
    load: Callable[[bytes], Any]


@dataclass(frozen=True)
class Serializer:
    """Writes and reads the state of a linker."""

    linker: SavedLinker

    def to_bytes(self, exclude: Iterable[str]) -> bytes:
        """Serialize all parts but the excluded, with checksums."""
        kb = self.linker.stages.datastore.kb
        data_of = {
            state_part.name: state_part.dump() for state_part in self._parts(exclude)
        }
        if KB not in exclude:
            data_of[KB] = kb.to_bytes()
        content = {
            "format": VERSION,
            "checksums": {
                name: Checksum.of(data).hash for name, data in data_of.items()
            },
            "parts": data_of,
        }
        return srsly.msgpack_dumps(content)

    def from_bytes(self, data: bytes, exclude: Iterable[str]) -> None:
        """Load all saved parts but the excluded ones."""
        with reading_part(self.linker.name, "bytes"):
            content: Any = srsly.msgpack_loads(data)
            if content["format"] != VERSION:
                raise Errors.E057(problem=f"format {content['format']!r:.20}")
            sums = {
                name: Checksum.of(data).hash for name, data in content["parts"].items()
            }
            if sums != content["checksums"]:
                raise Errors.E057(problem="a checksum is wrong")
            data_of = content["parts"]
        if KB in data_of and KB not in exclude:
            self.linker.stages.datastore.kb.from_bytes(data_of[KB])
        self._load(data_of, exclude)

    def to_disk(self, path: Path, exclude: Iterable[str]) -> None:
        """Write a folder in one step. It is the old one or the new one at any moment."""
        kb = None if KB in exclude else self.linker.stages.datastore.kb
        dumps = {
            state_part.name: state_part.dump for state_part in self._parts(exclude)
        }
        ComponentFolder(path).write(dumps, kb)

    def from_disk(self, path: Path, exclude: Iterable[str]) -> None:
        """Load a folder of ``to_disk`` after checking each file."""
        open_kb = None if KB in exclude else self.linker.stages.datastore.kb.from_disk
        names = [state_part.name for state_part in self._parts(exclude)]
        self._load(ComponentFolder(path).read(names, open_kb), exclude)

    def _load(self, data_of: Mapping[str, bytes], exclude: Iterable[str]) -> None:
        """Load the parts that were read, after the knowledge base."""
        for state_part in self._parts(exclude):
            if state_part.name in data_of:
                with reading_part(self.linker.name, state_part.name):
                    state_part.load(data_of[state_part.name])
        stages = self.linker.stages
        drop_orphans(stages.corrections, stages.datastore.exemplars, self.linker.name)
        self.linker.encoder.weights_changed()
        if self.linker.encoder.is_ready:
            stages.datastore.refresh()

    def _parts(self, exclude: Iterable[str]) -> list[_Part]:
        linker = self.linker
        stages = linker.stages
        exemplars = stages.datastore.exemplars
        load_vocab = partial(linker.vocab.from_bytes, exclude=exclude)
        state_parts = [
            _Part("vocab", partial(_dump_vocab, linker.vocab, exclude), load_vocab),
            _Part("model", linker.model.to_bytes, self._load_model),
            _Part("exemplars", exemplars.to_bytes, self._load_exemplars),
            _Part("reranker", self._dump_reranker, self._load_reranker),
            _Part("corrections", stages.corrections.to_bytes, self._load_corrections),
            _Part("new_entities", linker.new_entities.to_bytes, self._load_new),
        ]
        return [
            state_part for state_part in state_parts if state_part.name not in exclude
        ]

    def _load_model(self, data: bytes) -> None:
        """Load weights from bytes, but settings from the config."""
        model = self.linker.model
        refs = {tower: model.get_ref(tower) for tower in TOWERS}
        settings = [
            {key: layer.attrs[key] for key in ENCODER_SETTINGS if key in layer.attrs}
            for layer in model.walk()
        ]
        model.from_bytes(data)
        for layer, present_settings in zip(model.walk(), settings):
            layer.attrs.update(present_settings)
        check_towers(model, refs)

    def _load_exemplars(self, data: bytes) -> None:
        exemplars = self.linker.stages.datastore.exemplars.from_bytes(data)
        check_word_pieces(exemplars.inputs, self.linker.model)

    def _dump_reranker(self) -> bytes:
        """Serialized weights and kind of the reranker; empty for nothing."""
        reranker = self.linker.stages.reranker
        data = reranker.to_bytes()
        if data:
            return srsly.msgpack_dumps({"kind": type(reranker).__name__, "data": data})
        return b""

    def _load_reranker(self, data: bytes) -> None:
        """Load the reranker's weights, unless the config has another one."""
        present = self.linker.stages.reranker
        present_kind = type(present).__name__
        saved: Any = (
            srsly.msgpack_loads(data) if data else {"kind": present_kind, "data": b""}
        )
        learned = saved["data"]
        kind = saved["kind"]
        if kind != present_kind:
            Warnings.W503.warn(
                name=self.linker.name, saved=f"{kind:.80}", present=present_kind
            )
            learned = b""
        reranker = present.from_bytes(learned)
        self.linker.stages = replace(self.linker.stages, reranker=reranker)

    def _load_corrections(self, data: bytes) -> None:
        stages = self.linker.stages
        self.linker.stages = replace(stages, corrections=Corrections.from_bytes(data))

    def _load_new(self, data: bytes) -> None:
        new_entities = NewEntities.from_bytes(data)
        check_word_pieces(new_entities.rows.inputs, self.linker.model)
        self.linker.new_entities = new_entities


def _dump_vocab(vocab: Vocab, exclude: Iterable[str]) -> bytes:
    with device_of_vectors(vocab):
        return vocab.to_bytes(exclude=exclude)


def rebuild(
    kind: type,
    vocab: Vocab,
    model: Model,
    name: str,
    settings: dict[str, Any],
    state: bytes,
) -> Any:
    """The same linker in another process.

    settings: The keyword arguments of its constructor.
    state: What ``to_bytes`` gave without vocab and model.
    """
    linker = kind(vocab, model, name, **settings)
    return linker.from_bytes(state, exclude=["vocab", "model"])


@contextmanager
def reading_part(name: str, piece: str) -> Iterator[None]:
    """Convert errors of damaged bytes to one ValueError."""
    collects_garbage = gc.isenabled()
    try:
        yield
    # What msgpack, NumPy, thinc and transformers raise has no common base class.
    except Exception as error:
        if isinstance(error, ValueError) and code_of(error):
            raise
        problem = f"{type(error).__name__}: {error}"
        raise Errors.E058(part=piece, name=name, problem=problem) from error
    finally:
        # srsly turns it off to unpack, and leaves it off where that fails.
        if collects_garbage:
            gc.enable()


def check_towers(model: Model, refs: Any) -> None:
    """Raise ValueError if model and config differ in structure.

    refs: The towers before the weights were read.
    """
    for tower in TOWERS:
        node = model.get_ref(tower)
        if node is not refs[tower]:
            raise ValueError(f"{tower} leads to another layer")
        for layer, shim in _loaded_shims(node):
            from ..encoders.pooling import pooled_width

            width = layer.get_dim("nO") if layer.has_dim("nO") else None
            model_width = pooled_width(layer.attrs.get("pooling"), shim.width)
            if width not in (None, model_width):
                raise ValueError(
                    f"{tower} has vectors {model_width} wide and not {width}"
                )


def check_word_pieces(inputs: SpanInputs, model: Model) -> None:
    """Raise ValueError if the mention encoder lacks word pieces."""
    largest = int(inputs.ids.max(initial=-1))
    shims = _loaded_shims(model.get_ref("mention"))
    if any(largest >= shim.vocabulary_size for _, shim in shims):
        raise ValueError("a word piece has a number that the encoder does not know")


def _loaded_shims(tower: Model) -> "list[tuple[Model, EncoderShim]]":
    if not any(layer.shims for layer in tower.walk()):
        return []
    # Only transformers have shims, and only they need torch.
    from ..encoders.shim import EncoderShim

    return [
        (layer, shim)
        for layer in tower.walk()
        for shim in layer.shims
        if isinstance(shim, EncoderShim) and shim.is_loaded
    ]


def drop_orphans(corrections: Corrections, store: ExemplarStore, name: str) -> None:
    """Drop corrections of unstored mentions, with a warning."""
    orphans = [key for key in corrections.items if store.row(key[:3]) < 0]
    for key in orphans:
        del corrections.items[key]
    if orphans:
        Warnings.W515.warn(count=len(orphans), name=name)
