"""Two towers, one space: mentions and entities."""

from typing import Optional

from spacy.util import registry
from thinc.api import Model
from thinc.types import Floats2d

from .sequences import Sequences


@registry.architectures("spacy-arbo-el.DualEncoder.v1")
def build_dual_encoder(
    mention: Model[Sequences, Floats2d], entity: Optional[Model[Sequences, Floats2d]] = None
) -> Model:
    """The mention encoder and the entity encoder (arborescence paper, §2.2, Equation 4).

    mention: The tower that encodes windows round mentions.
    entity: The tower that encodes texts of entities. Without one, both kinds of text go
        through the same tower with shared weights.

    The towers are reached by ``model.get_ref("mention")`` and ``model.get_ref("entity")``.
    """
    layers = [mention] if entity is None else [mention, entity]
    return Model(
        "dual_encoder",
        forward,
        init=init,
        layers=layers,
        refs={"mention": mention, "entity": entity or mention},
        dims={"nO": None},
    )


def init(model: Model, X=None, Y=None) -> None:
    for layer in model.layers:
        layer.initialize()
    model.set_dim("nO", model.get_ref("mention").get_dim("nO"))


def forward(model: Model, X: Sequences, is_train: bool):
    """Windows of mentions through their tower; entities are asked for by name."""
    return model.get_ref("mention")(X, is_train)
