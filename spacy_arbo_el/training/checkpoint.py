"""Checkpoints: single files from which killed training resumes."""

import json
from pathlib import Path
from typing import (
    Any,
    Dict,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save
from thinc.api import Model, Optimizer
from thinc.util import to_numpy

from ..errors import ArboError, Errors
from ..storage.files import write_file
from ..storage.manifest import Checksum

FORMAT = 3
MOMENTS = ("mom1", "mom2", "averages")
COUNTS = ("nr_update", "last_seen")
_STATE = "state"
_MODEL, _MORE = "model", "more"

# The score that the best model is chosen by, and all scores
Evaluation = Tuple[float, Dict[str, Any]]


# The components of a pipeline with their names, or parts that are no components.
Components = Sequence[Tuple[str, Any]]


class History(NamedTuple):
    """History of a run of training.

    step: The last step.
    evaluations: All evaluations so far.
    config: The config of the run, as spaCy writes it.
    inputs: A fingerprint of what the run began with, by name.
    is_finished: Whether the training has ended.
    """

    step: int
    evaluations: List[Evaluation]
    config: str
    inputs: Dict[str, str] = {}
    is_finished: bool = False


class Checkpoint(NamedTuple):
    """A checkpoint that was read from a file.

    path: The file.
    history: What the run had done.
    arrays: Models and moments of the optimizer, by name; none where the training has ended.
    counts: How often the optimizer has changed each parameter.
    """

    path: Path
    history: History
    arrays: Mapping[str, np.ndarray]
    counts: Mapping[str, Mapping[str, int]]


def write_checkpoint(path: Path, pipes: Components, optimizer: Optimizer, history: History) -> None:
    """Write a checkpoint over the previous one, atomically."""
    arrays: Dict[str, np.ndarray] = {}
    for name, pipe in _trained(pipes):
        arrays[_key(_MODEL, name)] = _as_array(pipe.model.to_bytes())
        if hasattr(pipe, "training_state"):
            arrays[_key(_MORE, name)] = _as_array(pipe.training_state())
    names = _parameter_names(pipes)
    for moment in MOMENTS:
        for key, values in (getattr(optimizer, moment) or {}).items():
            if key in names:
                arrays[_key(moment, names[key])] = np.ascontiguousarray(to_numpy(values))
    counts = {
        count: {names[key]: int(n) for key, n in getattr(optimizer, count).items() if key in names}
        for count in COUNTS
    }
    _write(path, arrays, counts, history)


def write_finished(path: Path, history: History) -> None:
    """Mark the training as finished, replacing its checkpoint. The last one."""
    _write(path, {}, {}, history._replace(is_finished=True))


def read_checkpoint(path: Path) -> Optional[Checkpoint]:
    """Read a checkpoint; None if the file does not exist. Raises ValueError if it is damaged."""
    if not path.is_file():
        return None
    try:
        arrays = load(_verified(path.read_bytes()))
        state = json.loads(arrays.pop(_STATE).tobytes())
        if state["format"] != FORMAT:
            raise ValueError(f"its format is {state['format']}, not {FORMAT}")
        history = History(**state["history"])
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise ArboError(Errors.E601.format(path=path, problem=error)) from None
    evaluations = [(score, scores) for score, scores in history.evaluations]
    return Checkpoint(path, history._replace(evaluations=evaluations), arrays, state["counts"])


def restore_checkpoint(checkpoint: Checkpoint, pipes: Components, optimizer: Optimizer) -> None:
    """Load models and optimizer state of a checkpoint. The pipeline must be of its config.

    Models read their own bytes, as they do from a saved pipeline.

    Raises ValueError where the pipeline has other models than that of the checkpoint.
    """
    arrays = checkpoint.arrays
    try:
        for name, pipe in _trained(pipes):
            pipe.model.from_bytes(arrays[_key(_MODEL, name)].tobytes())
            if hasattr(pipe, "restore_training_state"):
                pipe.restore_training_state(arrays[_key(_MORE, name)].tobytes())
    except (ValueError, KeyError) as error:
        raise ArboError(Errors.E605.format(path=checkpoint.path, problem=error)) from None
    ops: Any = next((pipe.model.ops for _, pipe in _trained(pipes)), None)
    for key, name in _parameter_names(pipes).items():
        for moment in MOMENTS:
            values = arrays.get(_key(moment, name))
            if values is not None:
                getattr(optimizer, moment)[key] = ops.asarray(values.copy())
        for count, numbers in checkpoint.counts.items():
            if name in numbers:
                getattr(optimizer, count)[key] = numbers[name]


def _write(
    path: Path,
    arrays: Dict[str, np.ndarray],
    counts: Dict[str, Dict[str, int]],
    history: History,
) -> None:
    state = {"format": FORMAT, "counts": counts, "history": history._asdict()}
    text = json.dumps(state, default=float).encode("utf8")
    content = save({**arrays, _STATE: _as_array(text)})
    write_file(path, _first_line(content) + content)


def _verified(data: bytes) -> bytes:
    """Content behind the first line. ValueError for a wrong checksum."""
    start = len(_first_line(b""))
    content = data[start:]
    if data[:start] != _first_line(content):
        raise ValueError("it is damaged, or of another version")
    return content


def _first_line(content: bytes) -> bytes:
    """Header line with the kind and checksum of the content."""
    return f"spacy-arbo-el checkpoint {Checksum.of(content).hash}\n".encode()


def _trained(pipes: Components) -> Iterator[Tuple[str, Any]]:
    """The components that have a model."""
    for name, pipe in pipes:
        if getattr(pipe, "is_trainable", False) and isinstance(pipe.model, Model):
            yield name, pipe


def _parameter_names(pipes: Components) -> Dict[Tuple[int, str], str]:
    """Map optimizer keys to process-independent names.

    The keys contain ids that thinc gives to models in the order in which they are created.
    """
    names = {}
    for pipe_name, pipe in _trained(pipes):
        for i, node in enumerate(pipe.model.walk()):
            for name in node.param_names:
                names[node.id, name] = _key(pipe_name, str(i), name)
            for shim in node.shims:
                parameters = getattr(getattr(shim, "_model", None), "named_parameters", dict)
                for name, _ in dict(parameters()).items():
                    names[shim.id, name] = _key(pipe_name, str(i), "shim", name)
    return names


def _key(*names: str) -> str:
    return "|".join(names)


def _as_array(data: bytes) -> np.ndarray:
    return np.frombuffer(data, dtype=np.uint8)
