"""All that training depends on, in one file: weights, optimizer, random states, what pipes add."""

import json
import random
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

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


class Progress(NamedTuple):
    """How far training has come.

    step: The last step done. losses: Summed up since the last evaluation.
    evaluations: (score, other scores) of every evaluation so far.
    losses_then: The losses summed up before each of them.
    batches: A fingerprint of each batch so far.
    config: The config that is trained, as spaCy writes it.
    """

    step: int
    losses: Dict[str, float]
    evaluations: List[Tuple[float, Dict[str, Any]]]
    losses_then: List[Dict[str, float]]
    batches: List[str]
    config: str


class Checkpoint(NamedTuple):
    """A checkpoint that was read: how far training had come, and the state to go on from."""

    progress: Progress
    arrays: Mapping[str, np.ndarray]
    state: Dict[str, Any]


def write_checkpoint(path: Path, nlp: Language, optimizer: Optimizer, progress: Progress) -> None:
    """Write a checkpoint, all or nothing, in place of the one before."""
    names = _parameter_names(nlp)
    arrays: Dict[str, np.ndarray] = {}
    state: Dict[str, Any] = {"format": FORMAT, "progress": progress._asdict(), "pipes": {}}
    for name, model in _models(nlp):
        arrays[f"model{_SEPARATOR}{name}"] = np.frombuffer(model.to_bytes(), dtype=np.uint8)
    for kind in MOMENTS:
        for key, values in (getattr(optimizer, kind) or {}).items():
            if key in names:
                arrays[f"{kind}{_SEPARATOR}{names[key]}"] = to_numpy(values)
    for kind in COUNTS:
        counts = getattr(optimizer, kind)
        state[kind] = {names[key]: int(n) for key, n in counts.items() if key in names}
    for name, pipe in nlp.pipeline:
        if hasattr(pipe, "training_state"):
            extra, state["pipes"][name] = pipe.training_state()
            arrays.update((f"pipe{_SEPARATOR}{name}{_SEPARATOR}{k}", v) for k, v in extra.items())
    arrays["torch"] = torch.get_rng_state().numpy()
    if torch.cuda.is_available():
        arrays["cuda"] = torch.cuda.get_rng_state().numpy()
    _, keys, *numpy_state = np.random.get_state(legacy=True)
    arrays["numpy"] = np.asarray(keys)
    state["numpy"] = numpy_state
    version, words, gauss = random.getstate()
    state["random"] = [version, list(words), gauss]
    arrays = {key: np.ascontiguousarray(value) for key, value in arrays.items()}
    write_file(path, save(arrays, metadata={"state": json.dumps(state, default=float)}))


def read_checkpoint(path: Path) -> Optional[Checkpoint]:
    """The checkpoint of a file; None where there is none. Raises ValueError for a broken one."""
    if not path.is_file():
        return None
    try:
        with safe_open(path, framework="np") as file:
            state = json.loads(file.metadata()["state"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if state["format"] != FORMAT:
            raise ValueError(f"its format is {state['format']}, not {FORMAT}")
        progress = Progress(**state["progress"])
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise ValueError(Errors.E601.format(path=path, problem=error)) from None
    evaluations = [(score, others) for score, others in progress.evaluations]
    return Checkpoint(progress._replace(evaluations=evaluations), arrays, state)


def restore(checkpoint: Checkpoint, nlp: Language, optimizer: Optimizer) -> None:
    """Bring pipeline, optimizer and random states to where the checkpoint was written."""
    arrays, state = checkpoint.arrays, checkpoint.state
    models = dict(_models(nlp))
    for name, model in models.items():
        model.from_bytes(arrays[f"model{_SEPARATOR}{name}"].tobytes())
    keys = {name: key for key, name in _parameter_names(nlp).items()}
    ops = next(iter(models.values())).ops
    for full, values in arrays.items():
        kind, _, name = full.partition(_SEPARATOR)
        if kind in MOMENTS and name in keys:
            getattr(optimizer, kind)[keys[name]] = ops.asarray(values.copy())  # type: ignore[arg-type]
    for kind in COUNTS:
        getattr(optimizer, kind).update((keys[k], n) for k, n in state[kind].items() if k in keys)
    for name, extra in state["pipes"].items():
        prefix = f"pipe{_SEPARATOR}{name}{_SEPARATOR}"
        own = {k[len(prefix) :]: v for k, v in arrays.items() if k.startswith(prefix)}
        nlp.get_pipe(name).restore_training_state(own, extra)  # type: ignore[attr-defined]
    torch.set_rng_state(torch.from_numpy(arrays["torch"].copy()))
    if "cuda" in arrays and torch.cuda.is_available():
        torch.cuda.set_rng_state(torch.from_numpy(arrays["cuda"].copy()))
    np.random.set_state(("MT19937", arrays["numpy"], *state["numpy"]))
    version, words, gauss = state["random"]
    random.setstate((version, tuple(words), gauss))


def _models(nlp: Language) -> Iterator[Tuple[str, Model]]:
    for name, pipe in nlp.pipeline:
        if getattr(pipe, "is_trainable", False) and isinstance(pipe.model, Model):  # type: ignore[attr-defined]
            yield name, pipe.model  # type: ignore[attr-defined]


def _parameter_names(nlp: Language) -> Dict[Tuple[int, str], str]:
    """The optimizer's keys -> names that are the same in every process.

    The keys hold ids that count the models of a process.
    """
    names = {}
    for pipe, model in _models(nlp):
        for i, node in enumerate(model.walk()):
            for name in node.param_names:
                names[node.id, name] = _SEPARATOR.join((pipe, str(i), name))
            for j, shim in enumerate(node.shims):
                for name, _ in _named_parameters(shim):
                    names[shim.id, name] = _SEPARATOR.join((pipe, str(i), f"shim{j}", name))
    return names


def _named_parameters(shim: Any):
    module = getattr(shim, "_model", None)
    return module.named_parameters() if isinstance(module, torch.nn.Module) else ()
