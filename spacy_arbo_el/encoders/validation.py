"""Validation of spans that were read from bytes."""

import numpy as np

from .inputs import SpanInputs

_TYPES = {
    "ids": np.int32,
    "offsets": np.int64,
    "passage": np.int64,
    "first": np.int32,
    "last": np.int32,
    "marker": np.int32,
}


def check_inputs(inputs: SpanInputs) -> SpanInputs:
    """Raise ValueError for inputs that an encoder cannot take. An array has another type or
    shape, or leads elsewhere.
    """
    for name, dtype in _TYPES.items():
        array = getattr(inputs, name)
        if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != 1:
            raise ValueError(f"{name} is no list of numbers of type {np.dtype(dtype).name}")
    offsets, passage = inputs.offsets, inputs.passage
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(inputs.ids):
        raise ValueError("the passages don't cover the word pieces")
    # Compared and not subtracted: the differences of large numbers may wrap round.
    if (offsets[1:] < offsets[:-1]).any():
        raise ValueError("a passage ends before it starts")
    if len(inputs.ids) and inputs.ids.min() < 0:
        raise ValueError("a word piece has a number below 0")
    if not len(passage) == len(inputs.first) == len(inputs.last) == len(inputs.marker):
        raise ValueError("the spans have places of different numbers")
    if len(passage) and (passage.min() < 0 or passage.max() >= inputs.passages):
        raise ValueError("a span is in a passage that does not exist")
    # A span that can't be read has no word piece: it may be at the end of its passage.
    ends = inputs.lengths[passage] + ~inputs.readable
    for name, least in (("first", 0), ("last", -1), ("marker", 0)):
        place = getattr(inputs, name)
        if (place < least).any() or (place >= ends).any():
            raise ValueError(f"the {name} word piece of a span is outside its passage")
    if (inputs.last < inputs.first - 1).any():
        raise ValueError("a span ends before it starts")
    return inputs
