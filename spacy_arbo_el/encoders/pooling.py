"""Hidden states of passages -> one vector per span.

Which pooling to take depends on how the transformer was trained before: take
``SpanMeanPooling.v1`` for a sentence encoder such as the default one, which averages word pieces,
and ``ClsPooling.v1`` for a BERT, as the arborescence paper does. A pooling is named in the config
of a tower::

    [components.arbo_linker.model.mention.pooling]
    @misc = "spacy-arbo-el.SpanMeanPooling.v1"
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from spacy.util import registry
from torch import Tensor


class SpanStates(NamedTuple):
    """Hidden states of passages and the places of ``n`` spans.

    hidden: (p, length, width).
    passage: (n,) int64, the passage each span is in.
    first: (n,) int64, the first word piece of the span, counted from the start of its passage.
    last: (n,) int64, the last one, inclusive.
    marker: (n,) int64, the span's marker token.
    """

    hidden: Tensor
    passage: Tensor
    first: Tensor
    last: Tensor
    marker: Tensor

    def at(self, piece: Tensor) -> Tensor:
        """Hidden state of one word piece per span: (n, width)."""
        return self.hidden[self.passage, piece]


# RETURNS: (n, width), one row per span; (n, 2 width) where ``widening = 2``, and so on.
Pooling = Callable[[SpanStates], Tensor]


def pooled_width(pooling: Pooling | None, width: int) -> int:
    """The width of the vectors of spans, from that of hidden states. None widens nothing."""
    return width * int(getattr(pooling, "widening", 1))


@registry.misc("spacy-arbo-el.ClsPooling.v1")
@dataclass(frozen=True)
class ClsPooling:
    """The vector of the first token, [CLS]. What BLINK and the arborescence paper (§2.2) use.

    All spans of a passage get the same vector: use it for windows and texts, one span each.
    """

    def __call__(self, states: SpanStates) -> Tensor:
        return states.at(torch.zeros_like(states.first))


@registry.misc("spacy-arbo-el.StartPooling.v1")
@dataclass(frozen=True)
class StartPooling:
    """Pools the marker's vector: [START] or [TITLE].

    An alternative to ``ClsPooling.v1`` where there is enough training data to learn the markers.
    """

    def __call__(self, states: SpanStates) -> Tensor:
        return states.at(states.marker)


@registry.misc("spacy-arbo-el.SpanMeanPooling.v1")
@dataclass(frozen=True)
class SpanMeanPooling:
    """Pools the mean over a mention's or title's word pieces, the default.

    It links well before any training, because sentence encoders average word pieces too.
    """

    def __call__(self, states: SpanStates) -> Tensor:
        hidden = states.hidden
        places = (states.passage, states.first, states.last)
        # As many spans at a time as there are passages, so that memory is bounded by ``hidden``.
        blocks = zip(*(place.split(max(len(hidden), 1)) for place in places))
        return torch.cat(
            [_mean(hidden.index_select(0, p), f, t) for p, f, t in blocks]
        )


@registry.misc("spacy-arbo-el.FirstLastPooling.v1")
@dataclass(frozen=True)
class FirstLastPooling:
    """Concatenates the first and last word piece. They are of a mention or title (VERBALIZED,
    §3.2).

    Vectors are twice as wide as the transformer's, and so are the files of a knowledge base. The
    paper finds it better than the mean of the span. Compare it with ``SpanMeanPooling.v1`` on your
    own data.
    """

    widening: ClassVar[int] = 2

    def __call__(self, states: SpanStates) -> Tensor:
        return torch.cat([states.at(states.first), states.at(states.last)], dim=1)


def _mean(hidden: Tensor, first: Tensor, last: Tensor) -> Tensor:
    position = torch.arange(hidden.shape[1], device=hidden.device)
    inside = (position >= first[:, None]) & (position <= last[:, None])
    # Not a matrix product: autocast would run it in bfloat16.
    weights = inside.to(hidden.dtype).unsqueeze(-1)
    return (hidden * weights).sum(1) / weights.sum(1)
