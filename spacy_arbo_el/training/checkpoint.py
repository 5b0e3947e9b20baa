"""Checkpoints: one file with all that training depends on."""

import json
import random
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Tuple

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save
from spacy.language import Language
from thinc.api import Model, Optimizer
from thinc.util import to_numpy

from ..errors import Errors
from ..io import write_file

FORMAT = 1
MOMENTS = ("mom1", "mom2", "averages")
COUNTS = ("nr_update", "last_seen")
_SEPARATOR = "|"

Arrays = Dict[str, np.ndarray]
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
    """

    step: int
    losses: Dict[str, float]
    evaluations: List[Evaluation]
    evaluated_losses: List[Dict[str, float]]
    batches: List[str]
    config: str


class Checkpoint(NamedTuple):
    """A checkpoint that was read from a file.

    history: What the run had done.
    arrays: Weights, moments of the optimizer, random states and arrays of components, by name.
    state: All else that ``restore_checkpoint`` needs.
    """

    history: History
    arrays: Mapping[str, np.ndarray]
    state: Dict[str, Any]


def write_checkpoint(path: Path, nlp: Language, optimizer: Optimizer, history: History) -> None:
    """Write a checkpoint, all or nothing, in place of the previous one."""
    arrays: Arrays = {}
    state: Dict[str, Any] = {"format": FORMAT, "history": history._asdict(), "pipes": {}}
    for name, model in _models(nlp):
        arrays[_key("model", name)] = np.frombuffer(model.to_bytes(), dtype=np.uint8)
    names = _parameter_names(nlp)
    for moment in MOMENTS:
        for key, values in (getattr(optimizer, moment) or {}).items():
            if key in names:
                arrays[_key(moment, names[key])] = to_numpy(values)
    for count in COUNTS:
        counts = getattr(optimizer, count)
        state[count] = {names[key]: int(n) for key, n in counts.items() if key in names}
    for name, pipe in nlp.pipeline:
        if hasattr(pipe, "training_state"):
            pipe_arrays, state["pipes"][name] = pipe.training_state()
            arrays.update((_key("pipe", name, k), values) for k, values in pipe_arrays.items())
    _save_random_states(arrays, state)
    arrays = {key: np.ascontiguousarray(values) for key, values in arrays.items()}
    write_file(path, save(arrays, metadata={"state": json.dumps(state, default=float)}))


def read_checkpoint(path: Path) -> Optional[Checkpoint]:
    """Read a checkpoint; None if the file does not exist. Raises ValueError if it is damaged."""
    if not path.is_file():
        return None
    try:
        with safe_open(path, framework="np") as file:
            state = json.loads(file.metadata()["state"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if state["format"] != FORMAT:
            raise ValueError(f"its format is {state['format']}, not {FORMAT}")
        history = History(**state["history"])
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise ValueError(Errors.E601.format(path=path, problem=error)) from None
    evaluations = [(score, others) for score, others in history.evaluations]
    return Checkpoint(history._replace(evaluations=evaluations), arrays, state)


def restore_checkpoint(checkpoint: Checkpoint, nlp: Language, optimizer: Optimizer) -> None:
    """Give pipeline, optimizer and random generators the state that a checkpoint holds."""
    arrays, state = checkpoint.arrays, checkpoint.state
    models = dict(_models(nlp))
    for name, model in models.items():
        model.from_bytes(arrays[_key("model", name)].tobytes())
    keys = {name: key for key, name in _parameter_names(nlp).items()}
    ops: Any = next(iter(models.values())).ops
    for array_name, values in arrays.items():
        moment, _, name = array_name.partition(_SEPARATOR)
        if moment in MOMENTS and name in keys:
            getattr(optimizer, moment)[keys[name]] = ops.asarray(values.copy())
    for count in COUNTS:
        counts = ((keys[name], n) for name, n in state[count].items() if name in keys)
        getattr(optimizer, count).update(counts)
    for name, pipe_state in state["pipes"].items():
        prefix = _key("pipe", name, "")
        pipe_arrays = {k[len(prefix) :]: v for k, v in arrays.items() if k.startswith(prefix)}
        pipe: Any = nlp.get_pipe(name)
        pipe.restore_training_state(pipe_arrays, pipe_state)
    _restore_random_states(arrays, state)


def _save_random_states(arrays: Arrays, state: Dict[str, Any]) -> None:
    """Add the states of the random generators of torch, NumPy and Python."""
    arrays["torch"] = torch.get_rng_state().numpy()
    if torch.cuda.is_available():
        arrays["cuda"] = torch.cuda.get_rng_state().numpy()
    _, keys, *numpy_state = np.random.get_state(legacy=True)
    arrays["numpy"] = np.asarray(keys)
    state["numpy"] = numpy_state
    version, words, gauss = random.getstate()
    state["random"] = [version, list(words), gauss]


def _restore_random_states(arrays: Mapping[str, np.ndarray], state: Mapping[str, Any]) -> None:
    torch.set_rng_state(torch.from_numpy(arrays["torch"].copy()))
    if "cuda" in arrays and torch.cuda.is_available():
        torch.cuda.set_rng_state(torch.from_numpy(arrays["cuda"].copy()))
    np.random.set_state(("MT19937", arrays["numpy"], *state["numpy"]))
    version, words, gauss = state["random"]
    random.setstate((version, tuple(words), gauss))


def _key(*names: str) -> str:
    return _SEPARATOR.join(names)


def _models(nlp: Language) -> Iterator[Tuple[str, Model]]:
    """The models of trainable components, with the components' names."""
    for name, pipe in nlp.pipeline:
        model = getattr(pipe, "model", None)
        if getattr(pipe, "is_trainable", False) and isinstance(model, Model):
            yield name, model


def _parameter_names(nlp: Language) -> Dict[Tuple[int, str], str]:
    """From the optimizer's keys to names that are the same in every process.

    The keys contain ids that thinc gives to models in the order in which they are created.
    """
    names = {}
    for pipe, model in _models(nlp):
        for i, node in enumerate(model.walk()):
            for name in node.param_names:
                names[node.id, name] = _key(pipe, str(i), name)
            for j, shim in enumerate(node.shims):
                for name, _ in _named_parameters(shim):
                    names[shim.id, name] = _key(pipe, str(i), f"shim{j}", name)
    return names


def _named_parameters(shim: Any) -> Iterable[Tuple[str, torch.nn.Parameter]]:
    module = getattr(shim, "_model", None)
    return module.named_parameters() if isinstance(module, torch.nn.Module) else ()
