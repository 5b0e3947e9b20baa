"""Checkpoints: one file with all that training depends on."""

import json
import random
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save
from thinc.api import Optimizer
from thinc.util import to_numpy

from ..devices import torch
from ..errors import Errors
from ..io import write_file
from .sealed import seal, unseal
from .weights import Arrays, Pipeline, key_of, models_of, parameter_names, read_weights, set_weights

FORMAT = 3
MOMENTS = ("mom1", "mom2", "averages")
COUNTS = ("nr_update", "last_seen")
_KIND = "checkpoint"
_STATE = "state"

# The score that the best model is chosen by, and all scores
Evaluation = Tuple[float, Dict[str, Any]]


class History(NamedTuple):
    """What a run of training has done so far.

    step: The last step.
    losses: The losses summed since the last evaluation, by component.
    evaluations: All evaluations so far.
    evaluated_losses: The losses summed before each evaluation.
    batches: A fingerprint of each batch so far.
    config: The config of the run, as spaCy writes it.
    inputs: A fingerprint of what the run began with, by name.
    is_finished: Whether the training has ended.
    """

    step: int
    losses: Dict[str, float]
    evaluations: List[Evaluation]
    evaluated_losses: List[Dict[str, float]]
    batches: List[str]
    config: str
    inputs: Dict[str, str] = {}
    is_finished: bool = False


class Checkpoint(NamedTuple):
    """A checkpoint that was read from a file.

    path: The file.
    history: What the run had done.
    arrays: Weights, moments of the optimizer, random states and arrays of components, by name.
        There are none where the training has ended.
    state: All else that ``restore_checkpoint`` needs.
    """

    path: Path
    history: History
    arrays: Mapping[str, np.ndarray]
    state: Dict[str, Any]


def write_checkpoint(path: Path, nlp: Pipeline, optimizer: Optimizer, history: History) -> None:
    """Write a checkpoint, all or nothing, in place of the previous one."""
    weights = read_weights(nlp)
    arrays: Arrays = dict(weights.arrays)
    state: Dict[str, Any] = {"zero_gradients": weights.zero_gradients, "pipes": {}}
    names = parameter_names(nlp)
    for moment in MOMENTS:
        for key, values in (getattr(optimizer, moment) or {}).items():
            if key in names:
                arrays[key_of(moment, names[key])] = to_numpy(values)
    for count in COUNTS:
        counts = getattr(optimizer, count)
        state[count] = {names[key]: int(n) for key, n in counts.items() if key in names}
    for name, pipe in nlp.pipeline:
        if hasattr(pipe, "training_state"):
            pipe_arrays, state["pipes"][name] = pipe.training_state()
            arrays.update((key_of("pipe", name, k), values) for k, values in pipe_arrays.items())
    _save_random_states(arrays, state)
    _write(path, arrays, {**state, "history": history._asdict()})


def write_finished(path: Path, history: History) -> None:
    """Write that the training has ended, in place of its last checkpoint."""
    _write(path, {}, {"history": history._replace(is_finished=True)._asdict()})


def _write(path: Path, arrays: Arrays, state: Dict[str, Any]) -> None:
    text = json.dumps({"format": FORMAT, **state}, default=float)
    everything = {**arrays, _STATE: np.frombuffer(text.encode("utf8"), dtype=np.uint8)}
    content = save({key: np.ascontiguousarray(array) for key, array in everything.items()})
    write_file(path, seal(_KIND, content))


def read_checkpoint(path: Path) -> Optional[Checkpoint]:
    """Read a checkpoint; None if the file does not exist. Raises ValueError if it is damaged."""
    if not path.is_file():
        return None
    try:
        arrays = load(unseal(_KIND, path.read_bytes()))
        state = json.loads(arrays.pop(_STATE).tobytes())
        if state["format"] != FORMAT:
            raise ValueError(f"its format is {state['format']}, not {FORMAT}")
        history = History(**state["history"])
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise ValueError(Errors.E601.format(path=path, problem=error)) from None
    evaluations = [(score, others) for score, others in history.evaluations]
    return Checkpoint(path, history._replace(evaluations=evaluations), arrays, state)


def restore_checkpoint(checkpoint: Checkpoint, nlp: Pipeline, optimizer: Optimizer) -> None:
    """Give pipeline, optimizer and random generators the state that a checkpoint holds.

    Raises ValueError where the pipeline has other weights than that of the checkpoint.
    """
    arrays, state = checkpoint.arrays, checkpoint.state
    try:
        set_weights(nlp, arrays, state["zero_gradients"])
    except ValueError as error:
        raise ValueError(Errors.E605.format(path=checkpoint.path, problem=error)) from None
    names = parameter_names(nlp)
    models = dict(models_of(nlp))
    for key, name in names.items():
        for moment in MOMENTS:
            values = arrays.get(key_of(moment, name))
            if values is not None:
                ops: Any = next(iter(models.values())).ops
                getattr(optimizer, moment)[key] = ops.asarray(values.copy())
        for count in COUNTS:
            if name in state[count]:
                getattr(optimizer, count)[key] = state[count][name]
    for name, pipe_state in state["pipes"].items():
        prefix = key_of("pipe", name, "")
        pipe_arrays = {k[len(prefix) :]: v for k, v in arrays.items() if k.startswith(prefix)}
        dict(nlp.pipeline)[name].restore_training_state(pipe_arrays, pipe_state)
    _restore_random_states(arrays, state)


def _save_random_states(arrays: Arrays, state: Dict[str, Any]) -> None:
    """Add the states of the random generators of torch, NumPy and Python."""
    if torch is not None:
        arrays["torch"] = torch.get_rng_state().numpy()
        if torch.cuda.is_available():
            arrays["cuda"] = torch.cuda.get_rng_state().numpy()
    _, keys, *numpy_state = np.random.get_state(legacy=True)
    arrays["numpy"] = np.asarray(keys)
    state["numpy"] = numpy_state
    version, words, gauss = random.getstate()
    state["random"] = [version, list(words), gauss]


def _restore_random_states(arrays: Mapping[str, np.ndarray], state: Mapping[str, Any]) -> None:
    if torch is not None and "torch" in arrays:
        torch.set_rng_state(torch.from_numpy(arrays["torch"].copy()))
    if torch is not None and "cuda" in arrays and torch.cuda.is_available():
        torch.cuda.set_rng_state(torch.from_numpy(arrays["cuda"].copy()))
    np.random.set_state(("MT19937", arrays["numpy"], *state["numpy"]))
    version, words, gauss = state["random"]
    random.setstate((version, tuple(words), gauss))
