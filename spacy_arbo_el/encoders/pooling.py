"""Hidden states -> one vector a sequence.

A pooling is a function ``(hidden, mask, first, last, anchor) -> vectors`` on torch tensors:
hidden (n, length, width), mask (n, length) 1 where a word piece stands, and the
positions of the name (see ``Sequences``), each (n,). It gives (n, width) vectors.
"""

from typing import Callable

import torch
from spacy.util import registry
from torch import Tensor

Pooling = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


def _pick(hidden: Tensor, position: Tensor) -> Tensor:
    return hidden[torch.arange(len(position), device=hidden.device), position]


@registry.misc("spacy-arbo-el.ClsPooling.v1")
def cls_pooling() -> Pooling:
    """The vector of the first token, [CLS]: what BLINK and the arborescence paper (§2.2) use."""

    def pool(hidden, mask, first, last, anchor):
        return hidden[:, 0]

    return pool


@registry.misc("spacy-arbo-el.StartPooling.v1")
def start_pooling() -> Pooling:
    """The vector of the marker: [START] of a mention, [TITLE] of an entity."""

    def pool(hidden, mask, first, last, anchor):
        return _pick(hidden, anchor)

    return pool


@registry.misc("spacy-arbo-el.MeanPooling.v1")
def mean_pooling() -> Pooling:
    """The mean over the word pieces of the name: of the mention, or of the entity's title."""

    def pool(hidden, mask, first, last, anchor):
        position = torch.arange(hidden.shape[1], device=hidden.device)
        inside = (position >= first[:, None]) & (position <= last[:, None])
        # Not a matrix product: autocast would run it in bfloat16.
        weights = inside.to(hidden.dtype).unsqueeze(-1)
        return (hidden * weights).sum(1) / weights.sum(1)

    return pool


@registry.misc("spacy-arbo-el.FirstLastPooling.v1")
def first_last_pooling() -> Pooling:
    """The mean of the name's first and last word piece (VERBALIZED, §3: "first-last")."""

    def pool(hidden, mask, first, last, anchor):
        return (_pick(hidden, first) + _pick(hidden, last)) / 2

    return pool
