"""Learned scale and offset from similarities to logits. Training changes them."""

from typing import Any, Callable, NamedTuple, Tuple

import numpy as np
from thinc.api import Model

from .losses import Loss

NODE = "loss_scalars"
NAMES = ("scale", "offset")
# How much faster than the encoder's weights the scalars move: they are logarithms and offsets of
# logits, of the size of 1, and the learning rates of transformers are far below that.
SPEED = 100.0

Backward = Callable[[np.ndarray], np.ndarray]


class Scalars(NamedTuple):
    """Scale and offset of logits: ``scale * similarity + offset``."""

    scale: float
    offset: float


def attach_scalars(model: Model, count: int) -> None:
    """Attach the learned scalars' node to a dual encoder. Unless it has one.

    count: The number of objectives.
    """
    if not model.has_ref(NODE):
        params, attrs = dict.fromkeys(NAMES), {"count": count}
        node: Model = Model(NODE, _forward, init=_init, params=params, attrs=attrs)
        _init(node)
        model.layers.append(node)
        model.set_ref(NODE, node)


def scalars_of(model: Model, number: int, loss: Loss) -> Scalars:
    """The present scalars of an objective.

    model: The dual encoder.
    number: Which of the objectives.
    loss: Its loss, which says where scalars begin.
    """
    scale, offset = (_values(model, name, number)[number] for name in NAMES)
    return Scalars(loss.scale * float(np.exp(SPEED * scale)), loss.offset + SPEED * float(offset))


def begin_update(
    model: Model, number: int, loss: Loss, similarities: np.ndarray
) -> Tuple[np.ndarray, Backward]:
    """Compute logits of similarities; return them and backprop.

    That function gives the gradient with respect to the similarities. Where the loss says that its
    scalars are learned, it leaves their gradients in the model.
    """
    scale, offset = scalars_of(model, number, loss)

    def backward(d_logits: np.ndarray) -> np.ndarray:
        if loss.learned:
            # The scale is the exponential of its parameter.
            _add_gradient(model, "scale", number, float((d_logits * similarities).sum()) * scale)
            _add_gradient(model, "offset", number, float(d_logits.sum()))
        return scale * d_logits

    return scale * similarities + offset, backward


def _values(model: Model, name: str, number: int) -> np.ndarray:
    """The parameters of at least ``number + 1`` objectives.

    Where a pipeline was trained with fewer objectives, those of the others are 0.
    """
    node = model.get_ref(NODE)
    ops: Any = node.ops
    values: np.ndarray = node.ops.to_numpy(node.get_param(name))
    missing = number + 1 - len(values)
    if missing > 0:
        values = np.concatenate([values, np.zeros(missing, dtype=np.float32)])
        node.set_param(name, ops.asarray1f(values))
    return values


def _add_gradient(model: Model, name: str, number: int, gradient: float) -> None:
    node = model.get_ref(NODE)
    ops: Any = node.ops
    gradients = np.zeros(len(_values(model, name, number)), dtype=np.float32)
    gradients[number] = SPEED * gradient
    node.inc_grad(name, ops.asarray1f(gradients))


def _init(model: Model, X: Any = None, Y: Any = None) -> None:
    for name in NAMES:
        model.set_param(name, model.ops.alloc1f(model.attrs["count"]))


def _forward(model: Model, X: Any, is_train: bool) -> Tuple[Any, Callable]:
    return X, lambda dX: dX
