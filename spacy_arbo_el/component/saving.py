"""How the component is written and read: to and from bytes, folders and other processes."""

import warnings
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Optional, Union

import srsly
from spacy import util
from spacy.pipeline import TrainablePipe
from spacy.pipeline.pipe import deserialize_config
from spacy.util import SimpleFrozenList

from ..discovery.new_entities import NewEntities
from ..errors import Errors, Warnings
from ..inference.ranker import Ranker
from ..io import write_file
from ..retrieval.corrections import Corrections

# What the config says of an encoder wins over what it said when the pipeline was saved.
ENCODER_SETTINGS = ("window", "predict_tokens", "train_tokens", "kept_tokens")


class SavedLinker(TrainablePipe):
    """The part of ``ArboLinker`` that saves and loads it."""

    def __reduce__(self):
        # For nlp.pipe(n_process=…) where processes are spawned; this never touches a file.
        # The parts are closures, which plain pickle refuses.
        settings = {
            "span_getter": self.span_getter,
            "verbalization": self.memory.verbalization,
            "similarity": self.similarity,
            "index": self.memory.index,
            "inference": self.inference,
            "discovery": self.discovery,
            "rewrite": self.reader.rewrite,
            "lexicon": self.memory.build_lexicon,
            "lookup": self.memory.lookup,
            **self.learner.objective._asdict(),
            "scorer": self.scorer,
            "labels_discard": list(self.labels_discard),
            "max_exemplars": self.memory.max_exemplars,
            **self._given,
        }
        parts = srsly.pickle_dumps((type(self), self.vocab, self.model, self.name, settings))
        return _rebuild, (parts, self.to_bytes(exclude=["vocab", "model"]), self._streams_in)

    def _cfg_to_save(self) -> Dict[str, Any]:
        return {"now": self.cfg, "given": self._given}

    def _load_cfg(self, saved: Dict[str, Any]) -> None:
        """What was set at run time comes back, unless the config gives another value now."""
        for key, value in saved["now"].items():
            if self._given.get(key) == saved["given"].get(key):
                self.cfg[key] = value
        check_threshold(self.cfg["threshold"])

    def _loaded(self) -> "SavedLinker":
        self.memory.loaded()
        return self

    def to_bytes(self, *, exclude: Iterable[str] = SimpleFrozenList()) -> bytes:
        """Serialise; ``exclude`` names any of cfg, vocab, model, kb, exemplars, ranker,
        corrections, new_entities."""
        self._prepare_to_save()
        serialize: Dict[str, Callable] = {
            "cfg": lambda: srsly.json_dumps(self._cfg_to_save()),
            "vocab": lambda: self.vocab.to_bytes(exclude=exclude),
            "model": self.model.to_bytes,
            "kb": self.kb.to_bytes,
            "exemplars": self.exemplars.to_bytes,
            "ranker": self._ranker_to_bytes,
            "corrections": lambda: self.memory.corrections.to_bytes(),
            "new_entities": lambda: self.new_entities.to_bytes(),
        }
        return util.to_bytes(serialize, exclude)

    def from_bytes(
        self, bytes_data: bytes, *, exclude: Iterable[str] = SimpleFrozenList()
    ) -> "SavedLinker":
        deserialize: Dict[str, Callable] = {
            "cfg": lambda b: self._load_cfg(srsly.json_loads(b)),
            "vocab": lambda b: self.vocab.from_bytes(b, exclude=exclude),
            "model": self._load_model,
            "kb": self.kb.from_bytes,
            "exemplars": self.exemplars.from_bytes,
            "ranker": self._ranker_from_bytes,
            "corrections": self._corrections_from_bytes,
            "new_entities": self._new_entities_from_bytes,
        }
        # Bytes of earlier versions lack the one or the other.
        for name in ("corrections", "new_entities"):
            if name not in exclude:
                deserialize[name](b"")
        util.from_bytes(bytes_data, deserialize, exclude)
        return self._loaded()

    def to_disk(
        self, path: Union[str, Path], *, exclude: Iterable[str] = SimpleFrozenList()
    ) -> None:
        """Write the folder ``path``; ``exclude`` as in ``to_bytes``."""
        self._prepare_to_save()
        serialize: Dict[str, Callable] = {
            "cfg": lambda p: srsly.write_json(p, self._cfg_to_save()),
            "vocab": lambda p: self.vocab.to_disk(p, exclude=exclude),
            "model": lambda p: write_file(p, self.model.to_bytes()),
            "kb": self.kb.to_disk,
            "exemplars": lambda p: write_file(p, self.exemplars.to_bytes()),
            "ranker": lambda p: write_file(p, self._ranker_to_bytes()),
            "corrections": lambda p: write_file(p, self.memory.corrections.to_bytes()),
            "new_entities": lambda p: write_file(p, self.new_entities.to_bytes()),
        }
        util.to_disk(path, serialize, exclude)

    def from_disk(
        self, path: Union[str, Path], *, exclude: Iterable[str] = SimpleFrozenList()
    ) -> "SavedLinker":
        deserialize: Dict[str, Callable] = {
            "cfg": lambda p: self._load_cfg(deserialize_config(p)),
            "vocab": lambda p: self.vocab.from_disk(p, exclude=exclude),
            "model": lambda p: self._load_model(p.read_bytes()),
            "kb": self.kb.from_disk,
            "exemplars": lambda p: self.exemplars.from_bytes(p.read_bytes()),
            "ranker": lambda p: self._ranker_from_bytes(_read_if_there(p)),
            "corrections": lambda p: self._corrections_from_bytes(_read_if_there(p)),
            "new_entities": lambda p: self._new_entities_from_bytes(_read_if_there(p)),
        }
        util.from_disk(path, deserialize, exclude)
        return self._loaded()

    def _corrections_from_bytes(self, data: bytes) -> None:
        self.memory.corrections = Corrections.from_bytes(data)

    def _new_entities_from_bytes(self, data: bytes) -> None:
        self.new_entities = NewEntities.from_bytes(data) if data else NewEntities()

    def _ranker_to_bytes(self) -> bytes:
        return b"" if self.ranker is None else self.ranker.to_bytes()

    def _ranker_from_bytes(self, data: bytes) -> None:
        self.ranker = Ranker.from_bytes(data) if data else None
        if data and self.ranker is None:
            warnings.warn(Warnings.W502.format(name=self.name))

    def _prepare_to_save(self) -> None:
        self._validate_serialization_attrs()
        if self.encoding.is_ready:
            self.refresh()

    def _load_model(self, data: bytes) -> None:
        """Weights come from the bytes, settings of the encoders from the present config."""
        given = [{key: layer.attrs[key] for key in ENCODER_SETTINGS} for layer in self.model.layers]
        self.model.from_bytes(data)
        for layer, settings in zip(self.model.layers, given):
            layer.attrs.update(settings)


def _read_if_there(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def _rebuild(parts: bytes, state: bytes, streams_in: Optional[int]) -> "SavedLinker":
    """A linker in another process, from what ``ArboLinker.__reduce__`` took apart."""
    kind, vocab, model, name, settings = srsly.pickle_loads(parts)
    linker = kind(vocab, model, name, **settings)
    linker._streams_in = streams_in
    return linker.from_bytes(state, exclude=["vocab", "model"])


def check_threshold(value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise ValueError(Errors.E402.format(value=value))
