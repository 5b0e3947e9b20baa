"""The candidates that a cross-encoder learns to choose from.

A mention of the training corpus is stored as an exemplar, and in abstracts most mentions stand
beside one of the same string and entity. With these exemplars, the first candidate is nearly always
right, and nothing is learned. So candidates come without the exemplars of the mention's document.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ....base.arrays import Rows, TopK, int_array
from ....base.calibration import log_softmax
from ....linking.stages import LinkingStages
from ....mentions.labels import gold_positions, is_gold
from ....mentions.record import MentionBatch
from ....ranking.ranking import log_odds_by_vectors
from ....retrieval.exemplars import ExemplarStore
from ....retrieval.neighbours import Neighbours


@dataclass(frozen=True, eq=False)
class TrainingCandidates(Rows):
    """Candidates of a corpus's annotated mentions, in document order.

    candidates: (m, k) int64 positions in the knowledge base, best first, -1 for none.
    scores: (m, k) float32, the retriever's log-odds of candidates.
    gold: (m, g) int64, the positions of the gold entities, -1 for none.
    gold_scores: (m, g) float32, the retriever's log-odds of gold entities. One that is not among
        the neighbours has the least of its mention.
    """

    candidates: np.ndarray
    scores: np.ndarray
    gold: np.ndarray
    gold_scores: np.ndarray

    @property
    def correct(self) -> np.ndarray:
        """(m, k) bool, the candidates that are gold."""
        return is_gold(self.candidates, self.gold)

    def gold_probability(self, weight: float) -> np.ndarray:
        """Retriever's softmax probability of gold entities: (m,) float64."""
        log_shares = log_softmax(weight * self.scores, self.candidates >= 0)
        return np.where(self.correct, np.exp(log_shares), 0.0).sum(axis=1)

    def with_gold(self) -> tuple[np.ndarray, "TrainingCandidates"]:
        """Mentions with a gold entity in the KB, with candidates.

        A gold entity that is not among them takes the place of the last one.

        RETURNS: (n,) int64, which of the mentions; and n rows.
        """
        rows = np.flatnonzero((self.gold >= 0).any(axis=1))
        chosen = self.take(rows)
        candidates = chosen.candidates.copy()
        gold = chosen.gold
        scores = chosen.scores.copy()
        missing = np.flatnonzero(~is_gold(candidates, gold).any(axis=1))
        count = (candidates >= 0).sum(axis=1)
        last = np.minimum(count, candidates.shape[1] - 1)
        first_gold = (gold >= 0).argmax(axis=1)[missing]
        candidates[missing, last[missing]] = gold[missing, first_gold]
        scores[missing, last[missing]] = chosen.gold_scores[missing, first_gold]
        return rows, replace(chosen, candidates=candidates, scores=scores)


def make_candidates(
    stages: LinkingStages, batches: Iterable[MentionBatch], count: int
) -> TrainingCandidates:
    """Retrieve the first candidates of annotated mentions without the document's exemplars.

    batches: The mentions, which need not be encoded.
    count: How many candidates a mention has at most.
    """
    candidates = [TopK.empty(0, count)]
    gold = [TopK.empty(0, 1)]
    with stages.datastore.snapshot() as snapshot:
        documents = ExemplarDocuments.of(snapshot.exemplars)
        for batch in map(stages.encode, batches):
            neighbours = neighbours_for_training(stages, batch, documents)
            ranked = log_odds_by_vectors(neighbours, stages.calibration)
            candidates.append(ranked.resized(count))
            gold_ids = [record.kb_ids for record in batch.records]
            positions = gold_positions(snapshot.kb, gold_ids)
            gold.append(TopK(positions, ranked.scores_or_least(positions)))
    first = TopK.concat(candidates)
    all_gold = TopK.concat(gold)
    return TrainingCandidates(first.ids, first.scores, all_gold.ids, all_gold.scores)


class ExemplarDocuments(NamedTuple):
    """The documents of exemplars.

    numbers: The number of each document, by its key.
    of_exemplar: (n,) int64, the number of each exemplar's document.
    counts: (d,) int64, how many exemplars each document has.
    """

    numbers: dict[str, int]
    of_exemplar: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, exemplars: ExemplarStore) -> "ExemplarDocuments":
        numbers: dict[str, int] = {}
        keys = (record.key[0] for record in exemplars.records)
        of_exemplar = [numbers.setdefault(key, len(numbers)) for key in keys]
        array = int_array(of_exemplar)
        return cls(numbers, array, np.bincount(array, minlength=len(numbers)))


def neighbours_for_training(
    stages: LinkingStages, batch: MentionBatch, documents: ExemplarDocuments
) -> Neighbours:
    """The neighbours of encoded mentions, without the exemplars of a mention's own document."""
    snapshot = stages.datastore.refresh()
    count = stages.inference.n_exemplars
    own_documents = np.array(
        [documents.numbers.get(record.key[0], -1) for record in batch.records]
    )
    # So many of a mention's nearest exemplars may be of its document.
    extra = (
        int(documents.counts[own_documents[own_documents >= 0]].max(initial=0))
        if count
        else 0
    )
    neighbours = snapshot.retriever.neighbours(
        batch,
        snapshot.settings.n_candidates,
        count + extra,
        0,
        allowed=snapshot.allowed_entities(batch),
        named=snapshot.named_entities(batch),
    )
    if not extra:
        return neighbours
    # The retriever may give more than are asked for: those of further entities.
    width = max(neighbours.exemplars.width - extra, count)
    is_own = documents.of_exemplar[neighbours.exemplars.ids] == own_documents[:, None]
    exemplars = neighbours.exemplars.where(~is_own).first(width)
    entities = snapshot.exemplars.entities(snapshot.kb)[exemplars.ids]
    return neighbours.with_exemplars(
        exemplars, np.where(exemplars.valid, entities, -1)
    )
