"""What a step encodes where links are written into the text (VERBALIZED, §4.2)."""

from typing import Sequence, Tuple

import numpy as np
from spacy.tokens import Span

from ..linking.insertions import write_links
from ..linking.iteration import IterativePrediction
from ..linking.iterative_training import WrittenLinks
from ..linking.stages import LinkingStages
from ..mentions.records import keys_of
from .sampling import random_generator
from .step import RevisedInputs
from .trainer import Trainer


# paper: VERBALIZED
def read_with_links(
    iteration: IterativePrediction,
    settings: WrittenLinks,
    stages: LinkingStages,
    trainer: Trainer,
    spans: Sequence[Sequence[Span]],
    rows: np.ndarray,
) -> Tuple[np.ndarray, RevisedInputs]:
    """The mentions of a step to train on, with what they are encoded from.

    iteration: How links are written into the text.
    settings: Which links are.
    stages: Those of the linker.
    trainer: Predicts links, from cached vectors.
    spans: The mentions of each document of the step, also those that are not trained on.
    rows: (b,) int64, the rows of the mentions to train on in the exemplar store.
    RETURNS: The rows without those of mentions that are written in.
    """
    exemplars, kb = stages.datastore.exemplars, stages.datastore.kb
    groups = [group for group in spans if group]
    stored = np.array(
        [exemplars.row(key) for group in groups for key in keys_of(group)], dtype=np.int64
    )
    documents = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    rng = random_generator()
    written, doubt = np.full(len(stored), -1, dtype=np.int64), rng.random(len(stored))
    by_gold = trainer.total < settings.predicted_after
    if not by_gold:
        known = np.flatnonzero(stored >= 0)
        predicted = trainer.predicted_entities(stored[known])
        doubt[:] = np.inf
        doubt[known] = -predicted.scores[:, 0]
    chosen = _some_of_each(documents, settings.share, doubt, rng)
    chosen = chosen[stored[chosen] >= 0]
    if by_gold:
        gold = exemplars.entities(kb)[stored[chosen]]
        wrong = rng.random(len(chosen)) < settings.corrupted
        written[chosen] = np.where(wrong, trainer.random_entities(rng, len(chosen)), gold)
    else:
        written[chosen] = predicted.ids[np.searchsorted(known, chosen), 0]
    texts = stages.reader.texts_of(groups)
    inputs = stages.reader.inputs_of(write_links(kb, texts, written, iteration.limit))
    rest = np.flatnonzero((written < 0) & np.isin(stored, rows))
    return stored[rest], RevisedInputs(stored[rest], inputs.take(rest))


def _some_of_each(
    documents: np.ndarray, share: float, doubt: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """The least doubtful mentions of each document, a share of them but never all: (c,) int64.

    documents: (m,) int64, the document of each mention, ascending from 0.
    doubt: (m,) float, by which mentions are chosen.
    """
    counts = np.bincount(documents)
    wanted = np.floor(share * counts + rng.random(len(counts))).astype(np.int64)
    order = np.lexsort((doubt, documents))
    place = np.arange(len(order)) - np.searchsorted(documents, documents[order])
    return order[place < np.minimum(wanted, counts - 1)[documents[order]]]
