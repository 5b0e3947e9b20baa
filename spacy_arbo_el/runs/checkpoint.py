"""Checkpoints: single files from which interrupted training resumes.

A checkpoint has the weights, the state of the optimizer, and the step. It is written after each
evaluation, over the previous one.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import (
    Any,
    NamedTuple,
)

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save
from spacy.tokens import Doc
from thinc.api import Model, Optimizer
from thinc.util import to_numpy

from ..base.errors import Errors
from ..storage.files import Checksum, write_file

CHECKPOINT = "checkpoint.bin"
MOMENTS = ("mom1", "mom2", "averages")
# The counts of the optimizer beside those of trainers: no component has this name.
UPDATES = "|nr_update"
_STATE = "state"

# The score that the best model is chosen by, and all scores
Evaluation = tuple[float, dict[str, Any]]
# The components of a pipeline with their names, or parts that are no components.
Components = Sequence[tuple[str, Any]]


class Checkpoint(NamedTuple):
    """The state of a training.

    identity: A hash of what the run began with, see ``identity_of``.
    evaluations: All evaluations so far.
    counts: How often the optimizer has changed each parameter, and the counts of trainers.
    arrays: Models and moments of the optimizer, by name; none where the training has ended.
    """

    identity: str
    step: int
    evaluations: list[Evaluation]
    counts: Mapping[str, Mapping[str, int]] = {}
    arrays: Mapping[str, np.ndarray] = {}

    @classmethod
    def of(
        cls,
        identity: str,
        step: int,
        evaluations: list[Evaluation],
        pipes: Components,
        optimizer: Optimizer,
    ) -> "Checkpoint":
        """Take the state of components and their optimizer."""
        names = _parameter_names(pipes)
        counts = {}
        arrays = {}
        for name, pipe in _trained(pipes):
            arrays[name] = np.frombuffer(pipe.model.to_bytes(), dtype=np.uint8)
            if hasattr(pipe, "trainer"):
                counts[name] = pipe.trainer.state()
        for moment in MOMENTS:
            for key, values in (getattr(optimizer, moment) or {}).items():
                if key in names:
                    arrays[f"{moment}|{names[key]}"] = np.ascontiguousarray(
                        to_numpy(values)
                    )
        updates = optimizer.nr_update.items()
        counts[UPDATES] = {names[key]: int(n) for key, n in updates if key in names}
        return cls(identity, step, evaluations, counts, arrays)

    def restore(self, pipes: Components, optimizer: Optimizer) -> None:
        """Load models and the optimizer's state. The pipeline must be of the run's config."""
        ops: Any = None
        for name, pipe in _trained(pipes):
            pipe.model.from_bytes(self.arrays[name].tobytes())
            ops = pipe.model.ops
            if name in self.counts:
                pipe.trainer.restore(self.counts[name])
        for key, name in _parameter_names(pipes).items():
            for moment in MOMENTS:
                values = self.arrays.get(f"{moment}|{name}")
                if values is not None:
                    getattr(optimizer, moment)[key] = ops.asarray(values.copy())
            if name in self.counts[UPDATES]:
                optimizer.nr_update[key] = self.counts[UPDATES][name]

    def write(self, path: Path) -> None:
        """Write it over the previous one in one step."""
        text = json.dumps(self._replace(arrays={}), default=float).encode("utf8")
        content = save({**self.arrays, _STATE: np.frombuffer(text, dtype=np.uint8)})
        write_file(path, _first_line(content) + content)


def write_end(path: Path, identity: str, step: int) -> None:
    """Mark a training as finished, in place of its last checkpoint."""
    Checkpoint(identity, step, []).write(path)


def read_checkpoint(path: Path) -> Checkpoint | None:
    """Read a checkpoint; None if the file does not exist. Raises ValueError if it is damaged."""
    if not path.is_file():
        return None
    try:
        data = path.read_bytes()
        content = data[len(_first_line(b"")) :]
        if data != _first_line(content) + content:
            raise ValueError("it is damaged, or of another version")
        arrays = load(content)
        identity, step, evaluations, counts, _ = json.loads(
            arrays.pop(_STATE).tobytes()
        )
    except (SafetensorError, ValueError, KeyError) as error:
        raise Errors.E601(path=path, problem=error) from None
    return Checkpoint(
        identity, step, [(score, all_) for score, all_ in evaluations], counts, arrays
    )


def checkpoint_to_resume(path: Path, identity: str) -> Checkpoint | None:
    """Return the checkpoint of a run that began with the same, None without one.

    The end of a run that began with something else does not count. Raises ValueError where such a
    run was interrupted.
    """
    checkpoint = read_checkpoint(path)
    if checkpoint is None or checkpoint.identity == identity:
        return checkpoint
    if checkpoint.arrays:
        raise Errors.E602(path=path)
    return None


def identity_of(settings: str, docs: Iterable[Doc], *further: str) -> str:
    """A hash of what a run begins with.

    settings: Its config.
    docs: Documents, of which texts and annotated spans count.
    further: Fingerprints of what else the run depends on.
    """
    digest = hashlib.blake2b(repr((settings, further)).encode("utf8"), digest_size=16)
    for doc in docs:
        groups = {"": doc.ents, **doc.spans}
        spans = [
            (key, span.start_char, span.end_char, span.label_, span.kb_id_, span.id_)
            for key in sorted(groups)
            for span in groups[key]
        ]
        digest.update(repr((doc.text, spans)).encode("utf8"))
    return digest.hexdigest()


def _first_line(content: bytes) -> bytes:
    """Header line with the kind and checksum of the content."""
    return f"spacy-arbo-el checkpoint {Checksum.of(content).hash}\n".encode()


def _trained(pipes: Components) -> Iterator[tuple[str, Any]]:
    for name, pipe in pipes:
        if getattr(pipe, "is_trainable", False) and isinstance(pipe.model, Model):
            yield name, pipe


def _parameter_names(pipes: Components) -> dict[tuple[int, str], str]:
    """Map optimizer keys to process-independent names.

    The keys contain ids that thinc gives to models in the order in which they are created.
    """
    names = {}
    for pipe_name, pipe in _trained(pipes):
        for i, node in enumerate(pipe.model.walk()):
            for name in node.param_names:
                names[node.id, name] = f"{pipe_name}|{i}|{name}"
            for shim in node.shims:
                parameters = getattr(
                    getattr(shim, "_model", None), "named_parameters", dict
                )
                for name, _ in dict(parameters()).items():
                    names[shim.id, name] = f"{pipe_name}|{i}|shim|{name}"
    return names
