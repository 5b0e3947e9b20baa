"""DEER (Gillick et al. 2019): two towers of averaged n-grams, trained in rounds.

The towers are ``NgramEncoder.v1``, and the first round is the package's in-batch softmax. Here: an
entity's text in fields (§4.1), the logistic loss, learned scales, and the hard negatives that each
round finds and keeps (§4.3).

Other than in the paper, Adam trains in place of SGD with momentum, types are read as words, the
title's field has all names of the entity, and a round ends after so many mentions, not when recall
stops rising.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from spacy.util import registry
from thinc.api import Model
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from ...base.arrays import (
    first_of_each,
    has_vector,
    minus_ones,
    offsets_of,
    ragged_ranges,
)
from ...base.settings import check_count, check_number, check_positive
from ...encoders.protocol import Text
from ...kb.entity import Entity
from ...retrieval.index.exact import FlatIndex
from ...training.cache import EmbeddingCache
from ...training.losses import Loss
from ...training.negatives import TEXTS_PER_ENTITY
from ...training.positives import gold_texts, mentions_of, nearest_gold_texts
from ...training.table import GoldTable

# Under which the cache keeps the hard negatives.
KEPT = "deer"
# The node of the dual encoder with an objective's learned scale and offset.
NODE = "loss_scale_{number}"
SCALARS = ("scale", "offset")
# How much faster than the encoder's weights the scalars move: they are logarithms and offsets of
# logits, of the size of 1, and the learning rates of transformers are far below that.
SPEED = 100.0


@registry.misc("spacy-arbo-el.Fields.v1")
@dataclass(frozen=True)
class Fields:
    """One text per entity, with fields as lines. ``NgramEncoder.v1`` reads them (DEER, §4.1).

    The lines of its title are the names, the first one the title itself. The first line of its
    description is the description, and the others are the types::

        [components.arbo_linker.retriever.verbalization]
        @misc = "spacy-arbo-el.Fields.v1"

    aliases: Whether the other names are among the names.
    types: Whether the types are fields.
    """

    aliases: bool = True
    types: bool = True

    def __call__(self, entity: Entity) -> list[Text]:
        names = entity.names if self.aliases else entity.names[:1]
        lines = [entity.description, *(entity.types if self.types else ())]
        title, description = (
            "\n".join(" ".join(line.split()) for line in lines_of_part)
            for lines_of_part in (names, lines)
        )
        return [(title, description)] if title or entity.description else []


@registry.losses("spacy-arbo-el.Logistic.v1")
@dataclass(frozen=True)
class Logistic:
    """Binary cross-entropy over targets, each independent of the others.

    Use it where a logit should say by itself how likely a target is right. Scale and offset are
    best learned, by ``LearnedScale.v1``::

        [components.arbo_linker.objective.loss]
        @losses = "spacy-arbo-el.Logistic.v1"
        scale = 20.0
        offset = -10.0

    scale: Similarities are multiplied by this number.
    offset: This is added after that.
    """

    scale: float = 20.0
    offset: float = -10.0

    def __post_init__(self) -> None:
        check_positive("loss.scale", self.scale)
        check_number("loss.offset", self.offset)

    def __call__(self, logits: Tensor, positive: Tensor, valid: Tensor) -> Tensor:
        losses = binary_cross_entropy_with_logits(
            logits, positive.to(logits.dtype), reduction="none"
        )
        return torch.where(valid, losses, 0.0).sum(1)


class KeptPairs(NamedTuple):
    """Hard negatives that ``NegativesOfRounds.v1`` keeps in the cache over refreshes.

    refresh: How many refreshes there were when it last sought some.
    pairs: (2, p) int64, the numbers of mentions and of texts, by mention.
    """

    refresh: int = 0
    pairs: np.ndarray = np.zeros((2, 0), dtype=np.int64)

    def renumbered(self, mentions: np.ndarray, texts: np.ndarray) -> "KeptPairs":
        """Return the pairs of other numbers; those that have none are left out."""
        new = np.stack([_new(self.pairs[0], mentions), _new(self.pairs[1], texts)])
        return self._replace(pairs=np.unique(new[:, (new >= 0).all(axis=0)], axis=1))


@registry.losses("spacy-arbo-el.LearnedScale.v1")
@dataclass(frozen=True)
class LearnedScale:
    """A loss whose scale and offset are trained with the encoder.

    Use it with a logistic loss, whose offset says how rare right targets are::

        [components.arbo_linker.objective.loss]
        @losses = "spacy-arbo-el.LearnedScale.v1"

        [components.arbo_linker.objective.loss.loss]
        @losses = "spacy-arbo-el.Logistic.v1"

    A pipeline that was saved with it can't be loaded without it, nor the other way round.

    loss: The loss. Training begins with its scale and offset.
    """

    loss: Loss

    @property
    def scale(self) -> float:
        return self.loss.scale

    @property
    def offset(self) -> float:
        return self.loss.offset

    def __call__(self, logits: Tensor, positive: Tensor, valid: Tensor) -> Tensor:
        return self.loss(logits, positive, valid)

    def attach(self, model: Model, number: int) -> None:
        name = NODE.format(number=number)
        if not model.has_ref(name):
            node: Model = Model(
                name, _forward, init=_init, params=dict.fromkeys(SCALARS)
            )
            _init(node)
            model.layers.append(node)
            model.set_ref(name, node)

    def scalars(self, model: Model, number: int) -> tuple[float, float]:
        """Return the present scale and offset of an objective."""
        scale, offset = self._scalars(model, number)
        return scale.item(), offset.item()

    def _scalars(self, model: Model, number: int) -> tuple[Tensor, Tensor]:
        node = model.get_ref(NODE.format(number=number))
        scale, offset = (SPEED * _parameter(node, name) for name in SCALARS)
        # The scale is the exponential of its parameter.
        return self.scale * scale.exp(), self.offset + offset

    def logits(self, model: Model, number: int, similarities: Tensor) -> Tensor:
        scale, offset = self._scalars(model, number)
        return scale * similarities + offset


def _parameter(node: Model, name: str) -> Tensor:
    """A parameter of a node, which gets the gradient."""
    ops: Any = node.ops
    parameter = torch.tensor(
        ops.to_numpy(node.get_param(name)), dtype=torch.float64, requires_grad=True
    )
    parameter.register_hook(
        lambda grad: node.inc_grad(name, ops.asarray1f(grad.numpy()))
    )
    return parameter


def _init(model: Model, X: Any = None, Y: Any = None) -> None:
    for name in SCALARS:
        model.set_param(name, model.ops.alloc1f(1))


def _forward(model: Model, X: Any, is_train: bool) -> tuple[Any, Callable]:
    return X, lambda dX: dX


@registry.misc("spacy-arbo-el.NegativesOfRounds.v1")
@dataclass(frozen=True)
class NegativesOfRounds:
    """Wrong entities that were once nearer than the gold one (DEER, §4.3).

    They are sought for all mentions in each round but the first, and kept for good. A round ends
    when all texts and mentions are encoded again, see ``CacheRefresh.v1``. Use it with a
    ``Logistic.v1`` loss and ``PositivesInRounds.v1``, beside an objective with negatives of the
    batch::

        [components.arbo_linker.objective.negatives]
        @misc = "spacy-arbo-el.NegativesOfRounds.v1"
        k = 10

    Vectors must stay unchanged during a round: set ``on_the_fly = false`` in the refresh.

    k: The number of nearest entities that are looked at for each mention.
    """

    k: int = 10

    def __post_init__(self) -> None:
        check_count("negatives.k", self.k, least=1)

    def __call__(
        self, queries: np.ndarray, table: GoldTable, cache: EmbeddingCache
    ) -> np.ndarray:
        state: Any = cache.kept.get(KEPT, KeptPairs())
        if state.refresh < cache.refreshes:
            nearer = np.stack(nearer_than_gold(self.k, table, cache))
            pairs = np.unique(np.concatenate([state.pairs, nearer], axis=1), axis=1)
            state = cache.kept[KEPT] = KeptPairs(cache.refreshes, pairs)
        return texts_of(state.pairs, mentions_of(queries, table))


@registry.misc("spacy-arbo-el.PositivesInRounds.v1")
@dataclass(frozen=True)
class PositivesInRounds:
    """The gold entity's most similar text, from round two on (DEER, §4.3).

    In the first round there are no hard negatives yet, and so no classification to learn::

        [components.arbo_linker.objective.positives]
        @misc = "spacy-arbo-el.PositivesInRounds.v1"
    """

    def __call__(
        self, queries: np.ndarray, table: GoldTable, cache: EmbeddingCache
    ) -> np.ndarray:
        if not cache.refreshes:
            return minus_ones((len(queries), 1))
        return gold_texts(mentions_of(queries, table), table, cache)[:, None]


def texts_of(pairs: np.ndarray, mentions: np.ndarray) -> np.ndarray:
    """Texts paired with mentions: (b, k) int64, -1 for none.

    pairs: (2, p) int64, mentions and texts, by mention.
    mentions: (b,) int64.
    """
    first, last = (
        np.searchsorted(pairs[0], mentions, side) for side in ("left", "right")
    )
    counts = last - first
    table = minus_ones((len(mentions), int(counts.max(initial=0))))
    row = np.repeat(np.arange(len(mentions)), counts)
    column = np.arange(len(row)) - np.repeat(offsets_of(counts)[:-1], counts)
    table[row, column] = pairs[1][ragged_ranges(first, counts)]
    return table


def nearer_than_gold(
    k: int, table: GoldTable, cache: EmbeddingCache
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of mentions and texts of wrong entities that are nearer than the gold one.

    k: The number of nearest entities of each mention that are looked at.
    RETURNS: Mentions and texts, (p,) int64 each. Of an entity the nearest text is taken.
    """
    members, offsets = table.members(np.arange(len(table.cluster_sizes)))
    gold, similarity = nearest_gold_texts(members, offsets, table, cache)
    members = members[gold >= 0]
    similarity = similarity[gold >= 0]
    index = FlatIndex(cache.texts, cache.similarity)
    hits = index.search(cache.mentions[members], k * TEXTS_PER_ENTITY)
    nearer = hits.valid & (hits.scores > similarity[:, None])
    nearer &= has_vector(cache.texts)[np.maximum(hits.ids, 0)]
    row = np.nonzero(nearer)[0]
    text = hits.ids[nearer]
    # A gold text may seem nearer than itself by rounding.
    own_row, own_text = table.text_pairs(table.n_texts + members)
    wrong = ~np.isin(row * table.n_texts + text, own_row * table.n_texts + own_text)
    row = row[wrong]
    text = text[wrong]
    places = first_of_each(row, table.text_entity[text], len(members), k)
    chosen = places[places >= 0]
    return members[row[chosen]], text[chosen]


def _new(values: np.ndarray, old_numbers: np.ndarray) -> np.ndarray:
    """The new number of each value, -1 for none.

    old_numbers: As in ``Renumbered``.
    """
    size = int(max(values.max(initial=-1), old_numbers.max(initial=-1))) + 1
    new = minus_ones(size)
    present = np.flatnonzero(old_numbers >= 0)
    new[old_numbers[present]] = present
    return new[values]
