"""VERBALIZED (Rücker and Akbik 2025): a dual encoder over whole documents.

Documents are read in passages (``DocumentEncoder.v1``), entities are titles with cut descriptions
(``Parts.v1``), vectors the first and last word piece (``FirstLastPooling.v1``). Here: the loss over
distances (§3.3), and as many negatives as a step can afford (§3.4).

Other than in the paper, mentions and entities share one encoder, and a smaller one; negatives come
from vectors that training keeps up to date. Links are not written into the text to link the others
(§4), which gained 0.1 points here: see ``docs/papers.md``.
"""

from dataclasses import dataclass

import numpy as np
import torch
from spacy.util import registry
from torch import Tensor

from ...base.settings import check_count
from ...training.cache import EmbeddingCache
from ...training.losses import LearnsScale, Loss
from ...training.negatives import Negatives
from ...training.table import GoldTable
from .errors import PaperMessages

# A squared distance of equal vectors may be a little below 0 by rounding.
SLIGHTLY_ABOVE = 1e-3
# Added to squared distances: the root of 0 has no derivative.
SMALLEST_SQUARE = 1e-12


@registry.losses("spacy-arbo-el.OverDistances.v1")
@dataclass(frozen=True)
class OverDistances:
    """A loss over negative Euclidean distances. They are not squared (VERBALIZED, §3.3).

    Use it with the similarity ``NegativeSquaredEuclidean.v1``. Candidates are ranked the same by
    both, but the gradients differ. The paper's best system has cross-entropy over distances::

        [components.arbo_linker.objective.loss]
        @losses = "spacy-arbo-el.OverDistances.v1"

        [components.arbo_linker.objective.loss.loss]
        @losses = "spacy-arbo-el.CrossEntropy.v1"
        scale = 1.0

    loss: The loss, without ``LearnedScale.v1``.
    """

    loss: Loss

    scale = 1.0
    offset = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.loss, LearnsScale):
            raise PaperMessages.E618()

    def __call__(self, logits: Tensor, positive: Tensor, valid: Tensor) -> Tensor:
        squares = -torch.where(valid, logits, 0.0)
        least = squares.min().item()
        if least < -SLIGHTLY_ABOVE:
            raise PaperMessages.E616(largest=-least)
        distances = (squares.clamp_min(0.0) + SMALLEST_SQUARE).sqrt()
        return self.loss(
            self.loss.offset - self.loss.scale * distances, positive, valid
        )


@registry.misc("spacy-arbo-el.NegativesWithinBudget.v1")
@dataclass(frozen=True)
class NegativesWithinBudget:
    """Negatives up to a step's budget of word pieces (VERBALIZED, §3.4).

    Texts that several queries share are encoded once, so many negatives cost little where the
    queries are alike. Each query gets the same number, at least one::

        [components.arbo_linker.objective.negatives]
        @misc = "spacy-arbo-el.NegativesWithinBudget.v1"
        word_pieces = 8192

        [components.arbo_linker.objective.negatives.negatives]
        @misc = "spacy-arbo-el.HardNegatives.v1"
        k = 64
        mention_share = 0.0

    negatives: Chooses them, the hardest first; texts only, no mentions.
    word_pieces: The most word pieces of a step's negatives.
    """

    negatives: Negatives
    word_pieces: int = 8192

    def __post_init__(self) -> None:
        check_count("negatives.word_pieces", self.word_pieces, least=1)

    def __call__(
        self, queries: np.ndarray, table: GoldTable, cache: EmbeddingCache
    ) -> np.ndarray:
        nodes = self.negatives(queries, table, cache)
        if not table.is_text(nodes).all():
            raise PaperMessages.E617()
        # Column by column: each text costs where it first occurs.
        texts, first = np.unique(nodes.T.ravel(), return_index=True)
        column = first[texts >= 0] // max(len(nodes), 1)
        lengths = table.text_lengths[texts[texts >= 0]]
        cost = np.cumsum(
            np.bincount(column, weights=lengths, minlength=nodes.shape[1])
        )
        affordable = int(np.searchsorted(cost, self.word_pieces, side="right"))
        return nodes[:, : max(affordable, 1)]
