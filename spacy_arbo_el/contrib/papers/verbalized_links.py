"""VERBALIZED's iteration (§4). Links written into the text, in linking and in training."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from spacy.tokens import Span
from spacy.util import registry

from ...base.arrays import offsets_of
from ...base.settings import check_count, check_part, check_share
from ...kb.knowledge_base import ArboKB
from ...kb.verbalizations import Parts
from ...mentions.normalization.text import replace as edited
from ...mentions.reader import ReadTexts
from ...mentions.record import keys_of
from ...training.queries import random_generator
from ...training.step import RevisedInputs

if TYPE_CHECKING:
    from ...linking.stages import LinkingStages
    from ...training.trainer import Trainer


@registry.misc("spacy-arbo-el.WrittenLinks.v1")
@dataclass(frozen=True)
class WrittenLinks:
    """Writes some links into the text of training mentions.

    Iterative training (§4.2, §A.1). Links are gold ones at first, some of them
    wrong, and later those that the encoder predicts with the largest similarity. Use it with
    iterative prediction::

        [components.arbo_linker.iteration]
        @misc = "spacy-arbo-el.IterativePrediction.v1"

        [components.arbo_linker.iteration.training]
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
        check_part("iteration.training.share", self.share)
        check_share("iteration.training.corrupted", self.corrupted)
        check_count("iteration.training.predicted_after", self.predicted_after)


def write_links(kb: ArboKB, texts: ReadTexts, written: np.ndarray, limit: int) -> ReadTexts:
    """Insert entity descriptions behind some mentions: "mention (description)".

    An entity without a description has its title there.

    written: (m,) int64, the entity of each mention, -1 for none.
    limit: The description ends at the next punctuation after so many characters; 0 for no limit.
    """
    verbalize = Parts(limit=limit)
    positions = np.unique(written[written >= 0]).tolist()
    entities = kb.entities.at_all(positions)
    phrases = {
        position: rest or title
        for position, entity in entities.items()
        for title, rest in verbalize(entity)
    }
    bounds = offsets_of(np.array([len(pairs) for pairs in texts.offsets]))
    changed: list[str] = []
    moved: list[np.ndarray] = []
    for text, pairs, start in zip(texts.texts, texts.offsets, bounds.tolist()):
        own = written[start : start + len(pairs)].tolist()
        edits = insertions(pairs, [phrases.get(position, "") for position in own])
        new_text, new_pairs = edited(text, pairs, edits)
        changed.append(new_text)
        moved.append(new_pairs)
    return replace(texts, texts=changed, offsets=moved)


def insertions(pairs: np.ndarray, phrases: Sequence[str]) -> list[tuple[int, int, str]]:
    """Insertions behind mentions, in order. One where several mentions end at the same place."""
    by_end: dict[int, str] = {}
    for end, phrase in zip(pairs[:, 1].tolist(), phrases):
        if phrase:
            by_end.setdefault(end, phrase)
    # Not inside of another mention, whose words would be torn apart.
    ends = np.array(sorted(by_end), dtype=np.int64)
    begun = np.searchsorted(np.sort(pairs[:, 0]), ends, side="left")
    ended = np.searchsorted(np.sort(pairs[:, 1]), ends, side="right")
    return [(end, end, f" ({by_end[end]})") for end in ends[begun <= ended].tolist()]


def read_with_links(
    limit: int,
    settings: WrittenLinks,
    stages: "LinkingStages",
    trainer: "Trainer",
    spans: Sequence[Sequence[Span]],
    rows: np.ndarray,
) -> tuple[np.ndarray, RevisedInputs]:
    """Mentions of a training step with their encoder inputs.

    spans: The mentions of each document of the step, also those that are not trained on.
    rows: (b,) int64, the rows of the mentions to train on in the exemplar store.
    RETURNS: The rows without those of mentions that are written in.
    """
    exemplars = stages.datastore.exemplars
    kb = stages.datastore.kb
    groups = [group for group in spans if group]
    stored = np.array(
        [exemplars.row(key) for group in groups for key in keys_of(group)], dtype=np.int64
    )
    documents = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    rng = random_generator()
    written = np.full(len(stored), -1, dtype=np.int64)
    doubt = rng.random(len(stored))
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
    inputs = stages.reader.inputs_of(write_links(kb, texts, written, limit))
    rest = np.flatnonzero((written < 0) & np.isin(stored, rows))
    return stored[rest], RevisedInputs(stored[rest], inputs.take(rest))


def _some_of_each(
    documents: np.ndarray, share: float, doubt: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """The least doubtful mentions of each document: (c,) int64. A share of them but never all.

    documents: (m,) int64, the document of each mention, ascending from 0.
    doubt: (m,) float, by which mentions are chosen.
    """
    counts = np.bincount(documents)
    wanted = np.floor(share * counts + rng.random(len(counts))).astype(np.int64)
    order = np.lexsort((doubt, documents))
    place = np.arange(len(order)) - np.searchsorted(documents, documents[order])
    return order[place < np.minimum(wanted, counts - 1)[documents[order]]]
