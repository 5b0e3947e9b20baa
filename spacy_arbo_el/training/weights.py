"""The weights and gradients of a pipeline in training, as arrays, and back into the same pipeline.

Nothing is built anew from a checkpoint: its arrays are put into the models that the config has
made. So a checkpoint can neither change an architecture nor write files.
"""

from contextlib import nullcontext
from typing import (
    Any,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Protocol,
    Sequence,
    Tuple,
)

import numpy as np
from thinc.api import Model
from thinc.util import to_numpy

from ..devices import torch

_SEPARATOR = "|"
WEIGHTS, GRADIENT, SHIM = "weights", "gradient", "shim"

Arrays = Dict[str, np.ndarray]


class Pipeline(Protocol):
    """What is trained, by name: spaCy's ``Language``, or parts that are no components."""

    @property
    def pipeline(self) -> Sequence[Tuple[str, Any]]: ...


class Weights(NamedTuple):
    """Weights and gradients.

    arrays: Weights, and gradients that are not zero, by name.
    zero_gradients: The names of parameters whose gradient is zero. It makes a difference to an
        optimizer with momentum, which passes over a parameter without a gradient.
    """

    arrays: Arrays
    zero_gradients: List[str]


def key_of(*names: str) -> str:
    return _SEPARATOR.join(names)


def models_of(nlp: Pipeline) -> Iterator[Tuple[str, Model]]:
    """The models of trainable components, with the components' names."""
    for name, pipe in nlp.pipeline:
        model = getattr(pipe, "model", None)
        if getattr(pipe, "is_trainable", False) and isinstance(model, Model):
            yield name, model


def parameter_names(nlp: Pipeline) -> Dict[Tuple[int, str], str]:
    """From the optimizer's keys to names that are the same in every process.

    The keys contain ids that thinc gives to models in the order in which they are created.
    """
    names = {}
    for prefix, node in _nodes(nlp):
        for name in node.param_names:
            names[node.id, name] = key_of(prefix, name)
    for prefix, shim in _shims(nlp):
        for name, _ in _parameters(shim):
            names[shim.id, name] = key_of(prefix, name)
    return names


def read_weights(nlp: Pipeline) -> Weights:
    """All weights and gradients of the trainable components."""
    arrays: Arrays = {}
    gradients: Arrays = {}
    for prefix, node in _nodes(nlp):
        for name in node.param_names:
            if node.has_param(name):
                arrays[key_of(WEIGHTS, prefix, name)] = to_numpy(node.get_param(name))
            if node.has_grad(name):
                gradients[key_of(prefix, name)] = to_numpy(node.get_grad(name))
    for prefix, shim in _shims(nlp):
        for name, tensor in _state(shim):
            arrays[key_of(WEIGHTS, prefix, name)] = _bytes_of(tensor)
        for name, parameter in _parameters(shim):
            if parameter.grad is not None:
                gradients[key_of(prefix, name)] = _bytes_of(parameter.grad)
        if not _is_torch(shim):
            arrays[key_of(SHIM, prefix)] = np.frombuffer(shim.to_bytes(), dtype=np.uint8)
    zeros = [name for name, gradient in gradients.items() if _is_zero(gradient)]
    for name in zeros:
        del gradients[name]
    arrays.update((key_of(GRADIENT, name), gradient) for name, gradient in gradients.items())
    return Weights(arrays, zeros)


def set_weights(nlp: Pipeline, arrays: Mapping[str, np.ndarray], zero: Iterable[str]) -> None:
    """Put what ``read_weights`` gave into a pipeline from the same config.

    Raises ValueError where the pipeline has other weights, before anything is changed.

    arrays: Weights and gradients by name. Other arrays are left alone.
    zero: The names of parameters whose gradient is zero.
    """
    _check(nlp, arrays)
    zeros = set(zero)
    for prefix, node in _nodes(nlp):
        ops: Any = node.ops
        for name in node.param_names:
            weights = arrays.get(key_of(WEIGHTS, prefix, name))
            if weights is not None:
                node.set_param(name, ops.asarray(weights.copy()))
            gradient = arrays.get(key_of(GRADIENT, prefix, name))
            if gradient is not None:
                node.set_grad(name, ops.asarray(gradient.copy()))
            elif key_of(prefix, name) in zeros:
                node.set_grad(name, ops.xp.zeros_like(node.get_param(name)))
    shims = list(_shims(nlp))
    with torch.no_grad() if shims else nullcontext():
        for prefix, shim in shims:
            for name, tensor in _state(shim):
                tensor.copy_(_tensor_of(arrays[key_of(WEIGHTS, prefix, name)], tensor))
            for name, parameter in _parameters(shim):
                gradient = arrays.get(key_of(GRADIENT, prefix, name))
                parameter.grad = None
                if gradient is not None:
                    parameter.grad = _tensor_of(gradient, parameter).to(parameter.device)
                elif key_of(prefix, name) in zeros:
                    parameter.grad = torch.zeros_like(parameter)
            if not _is_torch(shim):
                shim.from_bytes(arrays[key_of(SHIM, prefix)].tobytes())


def _check(nlp: Pipeline, arrays: Mapping[str, np.ndarray]) -> None:
    """Raise ValueError where a pipeline has other weights than some arrays are for."""
    present = read_weights(nlp).arrays
    of_weights = (key_of(WEIGHTS, ""), key_of(SHIM, ""))
    for key in {**present, **arrays}:
        if not key.startswith(of_weights):
            continue
        here, there = present.get(key), arrays.get(key)
        # spaCy's models can have parameters that get their values at the first step.
        if there is None or (here is None and key.startswith(of_weights[1])):
            raise ValueError(f"{key} is in one of the two only")
        if here is not None and key.startswith(of_weights[0]) and here.shape != there.shape:
            raise ValueError(f"{key} has {here.shape} and {there.shape} numbers")


def _nodes(nlp: Pipeline) -> Iterator[Tuple[str, Model]]:
    """The nodes of all models, with names that are the same in every process."""
    for pipe, model in models_of(nlp):
        for i, node in enumerate(model.walk()):
            yield key_of(pipe, str(i)), node


def _shims(nlp: Pipeline) -> Iterator[Tuple[str, Any]]:
    for prefix, node in _nodes(nlp):
        for j, shim in enumerate(node.shims):
            yield key_of(prefix, f"shim{j}"), shim


def _is_torch(shim: Any) -> bool:
    return torch is not None and isinstance(getattr(shim, "_model", None), torch.nn.Module)


def _parameters(shim: Any) -> Iterable[Tuple[str, Any]]:
    return shim._model.named_parameters() if _is_torch(shim) else ()


def _state(shim: Any) -> Iterable[Tuple[str, Any]]:
    """The weights and buffers of a torch module. To write into one changes the module."""
    return shim._model.state_dict().items() if _is_torch(shim) else ()


def _bytes_of(tensor: Any) -> np.ndarray:
    """As bytes, because NumPy has no bfloat16."""
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()


def _tensor_of(array: np.ndarray, like: Any) -> Any:
    """A tensor from its bytes, with the type and shape of another."""
    return torch.from_numpy(array.copy()).view(like.dtype).reshape(like.shape)


def _is_zero(array: np.ndarray) -> bool:
    """Whether all bits are 0: there is a negative zero."""
    return not np.ascontiguousarray(array).view(np.uint8).any()
