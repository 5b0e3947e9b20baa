"""Two towers over one table of n-gram vectors (DEER, Figure 1)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from spacy.util import registry
from thinc.api import Linear, Model, Relu
from thinc.types import Floats2d

from ....base.settings import check_count
from ....encoders.dual import build_dual_encoder
from ....encoders.inputs import SpanInputs
from .reader import (
    ENTITY_FIELDS,
    MENTION_FIELDS,
    Field,
    NgramReader,
    averages,
    entity_fields,
    mention_fields,
)

Backprop = Callable[[Floats2d], None]
# How much of the context the vectors of an untrained encoder have, and of random directions.
CONTEXT = 0.3
NOISE = 0.05
# Spans that are encoded at a time where no gradients are wanted: their fields fit into the cache.
PREDICTED = 1024


@registry.architectures("spacy-arbo-el.NgramEncoder.v1")
def build_ngram_encoder(
    width: int = 200,
    vectors: int = 64,
    rows: int = 65536,
    hidden: int = 200,
    near: int = 5,
    window: int = 32,
) -> Model[SpanInputs, Floats2d]:
    """Two towers that average n-gram vectors, without a transformer (DEER, §4.1).

    Use it where a transformer is too slow. Its vectors of words begin at random, so it must be
    trained::

        [components.arbo_linker.model]
        @architectures = "spacy-arbo-el.NgramEncoder.v1"
        width = 200

    Words and pairs of words have vectors in one table, by their hashes. A field is the average of
    its words' vectors beside that of its pairs', in a separate layer. The fields of a mention
    are the mention, the tokens left and right of it, and its sentence without it. Those of an
    entity are its names, its description and its types. A compound layer joins the fields of the
    context, and another one the context and the name.

    The towers begin alike: the layer of a mention is that of names, the layer of its sentence
    that of descriptions, and the compound layers pass on what they get. So an untrained encoder
    compares n-grams.

    width: The width of the vectors that the towers give.
    vectors: The width of the vectors of n-grams.
    rows: The number of vectors in the table. The paper has 5 million and vectors of GloVe.
    hidden: The width of the layers.
    near: The tokens left, and those right of a mention, that are separate fields.
    window: The most tokens of the sentence on either side of the mention.
    RETURNS: Model as ``DualEncoder.v1`` gives.
    """
    sizes = {"width": width, "vectors": vectors, "rows": rows, "hidden": hidden}
    for name, value in sizes.items():
        check_count(f"model.{name}", value, least=1)
    reader = NgramReader(near, window)
    table = _table(rows, vectors)
    mention = _tower(
        "mention", MENTION_FIELDS, "sentence", table, reader, hidden, width
    )
    entity = _tower(
        "entity", ENTITY_FIELDS, "description", table, reader, hidden, width
    )
    model = build_dual_encoder(mention, entity)
    model.init = init
    return model


def init(model: Model, X: SpanInputs | None = None, Y: Floats2d | None = None) -> None:
    """Set all weights, unless the model has some."""
    towers = [model.get_ref(name) for name in ("mention", "entity")]
    model.set_dim("nO", towers[0].get_dim("nO"))
    table = towers[0].get_ref("table")
    if table.has_param("E"):
        return
    for tower in towers:
        _init_tower(tower)
    rows = table.get_dim("nV")
    width = table.get_dim("nO")
    vectors = (
        np.random.default_rng((rows, width)).normal(size=(rows, width)) / width**0.5
    )
    ops: Any = table.ops
    table.set_param("E", ops.asarray2f(vectors.astype(np.float32)))


def _table(rows: int, vectors: int) -> Model:
    """The vectors of n-grams. Towers multiply by them; the node only holds them."""
    return Model(
        "ngram_table",
        _pass_on,
        params={"E": None},
        dims={"nV": rows, "nO": vectors},
    )


def _pass_on(model: Model, X: Any, is_train: bool) -> tuple[Any, Callable]:
    return X, lambda dX: dX


def _tower(
    kind: str,
    fields: Sequence[str],
    main: str,
    table: Model,
    reader: NgramReader,
    hidden: int,
    width: int,
) -> Model[SpanInputs, Floats2d]:
    """One tower.

    kind: "mention" or "entity".
    fields: The names of its fields, that of names first.
    main: The field of the context that the towers compare at the beginning.
    """
    inner = 2 * table.get_dim("nO")
    layers = [Relu(hidden, inner) for _ in fields]
    context = [Relu(hidden, (len(fields) - 1) * hidden), Relu(hidden, hidden)]
    top = [Relu(hidden, 2 * hidden), Linear(width, hidden)]
    return Model(
        f"ngram_{kind}",
        forward,
        layers=[table, *layers, *context, *top],
        dims={"nO": width},
        refs={"table": table},
        attrs={
            "reader": reader,
            "kind": kind,
            "main": list(fields[1:]).index(main),
            "dropout_rate": 0.0,
        },
    )


@dataclass(frozen=True)
class _Parts:
    fields: list[Model]
    context: list[Model]
    top: list[Model]

    @classmethod
    def of(cls, tower: Model) -> "_Parts":
        return cls(tower.layers[1:-4], tower.layers[-4:-2], tower.layers[-2:])


def _init_tower(tower: Model) -> None:
    """The beginning weights, the same for the fields that correspond."""
    tower_parts = _Parts.of(tower)
    main = 1 + tower.attrs["main"]
    for number, layer in enumerate(tower_parts.fields):
        # 0 for names and mentions, 1 for sentences and descriptions, and others for the rest.
        seed = 0 if number == 0 else (1 if number == main else 10 + number)
        _set_layer(
            layer, random_projection(layer.get_dim("nO"), layer.get_dim("nI"), seed)
        )
    hidden = tower_parts.top[0].get_dim("nO")
    for layers, place, share_of_others in (
        (tower_parts.context, main - 1, NOISE),
        (tower_parts.top, 0, CONTEXT),
    ):
        first, second = layers
        _set_layer(
            first, identity_block(hidden, first.get_dim("nI"), place, share_of_others)
        )
        width = second.get_dim("nO")
        is_square = width == hidden
        _set_layer(
            second,
            np.eye(hidden) if is_square else random_projection(width, hidden, 2),
        )


def random_projection(width: int, inner: int, seed: int) -> np.ndarray:
    """(width, inner) float: a random projection that roughly keeps angles.

    It is the same in all processes.
    """
    generator = np.random.default_rng((seed, width, inner))
    return generator.normal(scale=(2.0 / width) ** 0.5, size=(width, inner))


def identity_block(
    width: int, inner: int, place: int, share_of_others: float
) -> np.ndarray:
    """Weights that pass on one input and a share of the others: (width, inner).

    inner: A multiple of the width: inputs of that width beside each other.
    place: Which of the inputs is passed on.
    """
    generator = np.random.default_rng((place, width, inner))
    weights = generator.normal(scale=NOISE / width**0.5, size=(width, inner))
    for number in range(inner // width):
        block = weights[:, number * width : (number + 1) * width]
        block += np.eye(width) * (1.0 if number == place else share_of_others)
    return weights


def _set_layer(layer: Model, weights: np.ndarray) -> None:
    ops: Any = layer.ops
    layer.set_param("W", ops.asarray2f(weights.astype(np.float32)))
    layer.set_param("b", ops.alloc1f(len(weights)))


def forward(model: Model, X: SpanInputs, is_train: bool) -> tuple[Floats2d, Backprop]:
    """One vector per span. Zeros for spans that can't be read, see ``SpanInputs.readable``.

    Dropout sets numbers of the averages to zero.
    """
    if is_train or len(X) <= PREDICTED:
        return _forward(model, X, is_train)
    starts = range(0, len(X), PREDICTED)
    blocks = (np.arange(start, min(start + PREDICTED, len(X))) for start in starts)
    vectors = [_forward(model, X.take(block), is_train)[0] for block in blocks]
    return model.ops.xp.concatenate(vectors), lambda dY: None


def _forward(model: Model, X: SpanInputs, is_train: bool) -> tuple[Floats2d, Backprop]:
    tower_parts = _Parts.of(model)
    table = model.get_ref("table")
    ops: Any = model.ops
    vectors = ops.to_numpy(table.get_param("E"))
    rate = model.attrs["dropout_rate"]
    matrices = []
    masks = []
    hidden = []
    backprops = []
    for field, layer in zip(_fields(model, X), tower_parts.fields):
        average_matrices = averages(field, len(vectors))
        averaged = ops.asarray2f(
            np.hstack([matrix @ vectors for matrix in average_matrices])
        )
        mask = ops.get_dropout_mask(averaged.shape, rate) if is_train and rate else 1.0
        output, backward = layer(averaged * mask, is_train)
        matrices.append(average_matrices)
        masks.append(mask)
        hidden.append(output)
        backprops.append(backward)
    context, backprop_context = _compound(tower_parts.context, hidden[1:], is_train)
    output, backprop_top = _compound(tower_parts.top, [hidden[0], context], is_train)
    readable = ops.asarray2f(X.readable[:, None].astype(np.float32))

    def backprop(d_output: Floats2d) -> None:
        d_name, d_context = backprop_top(d_output * readable)
        gradients = [d_name, *backprop_context(d_context)]
        sums: list[tuple[csr_matrix, np.ndarray]] = []
        for average_matrices, mask, gradient, backward in zip(
            matrices, masks, gradients, backprops
        ):
            halves = np.hsplit(ops.to_numpy(backward(gradient) * mask), 2)
            sums.extend(zip(average_matrices, halves))
        _add_gradient(table, sums)

    return output * readable, backprop


def _fields(tower: Model, X: SpanInputs) -> list[Field]:
    if tower.attrs["kind"] == "entity":
        return entity_fields(X)
    return mention_fields(X, tower.attrs["reader"].near)


def _compound(
    layers: Sequence[Model], inputs: Sequence[Floats2d], is_train: bool
) -> tuple[Floats2d, Callable[[Floats2d], list[Floats2d]]]:
    """Concatenated inputs through two layers (Figure 1d)."""
    xp = layers[0].ops.xp
    first, backprop_first = layers[0](xp.hstack(inputs), is_train)
    second, backprop_second = layers[1](first, is_train)

    def backprop(d_output: Floats2d) -> list[Floats2d]:
        gradient = backprop_first(backprop_second(d_output))
        gradients = xp.split(gradient, len(inputs), axis=1)
        return [
            xp.ascontiguousarray(gradient_of_input) for gradient_of_input in gradients
        ]

    return second, backprop


def _add_gradient(table: Model, sums: Sequence[tuple[csr_matrix, np.ndarray]]) -> None:
    ops: Any = table.ops
    if not table.has_grad("E"):
        table.set_grad("E", ops.alloc2f(table.get_dim("nV"), table.get_dim("nO")))
    gradient: Any = table.get_grad("E")
    for matrix, d_average in sums:
        rows, columns = np.unique(matrix.indices, return_inverse=True)
        small = csr_matrix(
            (matrix.data, columns.reshape(-1), matrix.indptr),
            shape=(len(d_average), len(rows)),
        )
        gradient[rows] += ops.asarray2f(small.T @ d_average)
