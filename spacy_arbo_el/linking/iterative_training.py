"""Training with links in the text, so that linking can make use of them (VERBALIZED, §4.2)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Sequence, Tuple

import numpy as np
from spacy.tokens import Span
from spacy.util import registry

from ..mentions.records import keys_of
from ..settings import check_count, check_part, check_share
from ..training.sampling import random_generator
from ..training.step import RevisedInputs
from ..training.trainer import Trainer
from .insertions import write_links

if TYPE_CHECKING:
    from .stages import LinkingStages


@registry.misc("spacy-arbo-el.WrittenLinks.v1")
@dataclass(frozen=True)
class WrittenLinks:
    """Write the links of some mentions into the text that the others are trained in.

    This is VERBALIZED's iterative training (§4.2, §A.1). Links are gold ones at first, some of them
    wrong, and later those that the encoder predicts. Use it with iterative prediction::

        [components.arbo_linker.inference.training]
        @misc = "spacy-arbo-el.WrittenLinks.v1"
        share = 0.3

    A mention whose link is written in is left out of the loss. Mentions that are alone in their
    document are trained in the text as it is.

    share: The share of a document's mentions that are written in, above 0 and below 1.
    corrupted: The share of gold links that are replaced by a random entity, from 0 to 1.
    predicted_after: The number of mentions trained on, after which predicted links are written in.
    """

    share: float = 0.3
    corrupted: float = 0.1
    predicted_after: int = 30000

    def __post_init__(self) -> None:
        check_part("inference.training.share", self.share)
        check_share("inference.training.corrupted", self.corrupted)
        check_count("inference.training.predicted_after", self.predicted_after)

    def revised(
        self,
        stages: "LinkingStages",
        trainer: Trainer,
        spans: Sequence[Sequence[Span]],
        rows: np.ndarray,
        limit: int,
    ) -> Tuple[np.ndarray, RevisedInputs]:
        """The mentions of a step to train on, with what they are encoded from.

        spans: The mentions of each document of the step, also those that are not trained on.
        rows: (b,) int64, the rows of the mentions to train on in the exemplar store.
        limit: As in ``write_links``.
        RETURNS: The rows without those of mentions that are written in.
        """
        exemplars, kb = stages.datastore.exemplars, stages.datastore.kb
        groups = [group for group in spans if group]
        stored = np.array(
            [exemplars.row(key) for group in groups for key in keys_of(group)], dtype=np.int64
        )
        documents = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
        rng = random_generator()
        chosen = _some_of_each(documents, self.share, rng)
        chosen = chosen[stored[chosen] >= 0]
        written = np.full(len(stored), -1, dtype=np.int64)
        if trainer.total < self.predicted_after:
            gold = exemplars.entities(kb)[stored[chosen]]
            wrong = rng.random(len(chosen)) < self.corrupted
            written[chosen] = np.where(wrong, trainer.random_entities(rng, len(chosen)), gold)
        else:
            written[chosen] = trainer.predicted_entities(stored[chosen])
        texts = stages.reader.texts_of(groups)
        inputs = stages.reader.inputs_of(write_links(kb, texts, written, limit))
        rest = np.flatnonzero((written < 0) & np.isin(stored, rows))
        return stored[rest], RevisedInputs(stored[rest], inputs.take(rest))


def _some_of_each(documents: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """A share of the mentions of each document by chance, but never all: (c,) int64.

    documents: (m,) int64, the document of each mention, ascending from 0.
    """
    counts = np.bincount(documents)
    wanted = np.floor(share * counts + rng.random(len(counts))).astype(np.int64)
    order = np.lexsort((rng.random(len(documents)), documents))
    place = np.arange(len(order)) - np.searchsorted(documents, documents[order])
    return order[place < np.minimum(wanted, counts - 1)[documents[order]]]
