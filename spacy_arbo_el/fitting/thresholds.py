"""Scores at many thresholds, each in one sweep."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from spacy.tokens import Doc

from ..base.errors import Errors
from ..evaluation.uncertainty import bootstrap_counts
from ..linker import ArboLinker
from ..linking.stages import LinkingStages
from ..mentions.labels import annotated_batches, gold_positions, is_gold
from ..mentions.record import MentionBatch, gold_ids

# The probabilities that are tried.
THRESHOLDS = np.concatenate([np.arange(0.0, 0.99, 0.01), [0.99, 0.995, 0.999]]).round(
    3
)
# Bootstrap samples of the documents, which say how far a score can be by chance.
SAMPLES = 200

LINKING_SCORES = (
    "arbo_acc",
    "nel_micro_f",
    "nel_micro_p",
    "nel_micro_r",
    "arbo_nil_f",
    "arbo_nil_p",
    "arbo_nil_r",
)

# The scores that a linker is fitted by, by the names that people give.
CRITERIA = {"accuracy": "arbo_acc", "f1": "nel_micro_f"}

# A score that a threshold is chosen by: one of ``LINKING_SCORES``; or a number, of how many missed
# links cost as much as a wrong one.
Score = str | float

# Scores by name.
SweepRow = dict[str, float]


class ThresholdSweep(NamedTuple):
    """Annotated mentions, linked at T thresholds.

    rows: The scores at each threshold.
    judged: (2, T, n) bool, whether mentions were linked, and whether the link was correct; mentions
        with discarded labels come last.
    has_gold: (n,) bool, whether they have a gold entity.
    documents: (n,) int64, the document that each is in.
    """

    rows: list[SweepRow]
    judged: np.ndarray
    has_gold: np.ndarray
    documents: np.ndarray


def cautious_row(sweeps: Sequence[ThresholdSweep], score: Score, prior: float) -> int:
    """Find the row nearest to a prior threshold among those as good as the best.

    A row is as good where the best leads it by at most one standard error of the difference, over
    bootstrap samples of the documents. So a threshold moves only where the documents show that
    another is better, and few documents move it little.

    sweeps: Of the same thresholds, on different documents.
    prior: The threshold that is kept if nothing speaks against it.
    """
    thresholds = np.array([row["threshold"] for row in sweeps[0].rows])
    judged = np.concatenate([sweep.judged for sweep in sweeps], axis=2)
    has_gold = np.concatenate([sweep.has_gold for sweep in sweeps])
    values = _values(score, judged, has_gold, np.ones((len(has_gold), 1)))[:, 0]
    best = middle_of_best(values)
    starts = np.cumsum([0, *(sweep.documents.max(initial=-1) + 1 for sweep in sweeps)])
    documents = np.concatenate(
        [sweep.documents + s for sweep, s in zip(sweeps, starts)]
    )
    drawn = bootstrap_counts(int(documents.max()) + 1, SAMPLES).T.astype(np.float32)
    # (mentions, SAMPLES): how often each mention is in a sample.
    samples = _values(score, judged, has_gold, drawn[documents])
    error = (samples[[best]] - samples).std(axis=1)
    as_good = np.flatnonzero(values[best] - values <= error)
    return int(as_good[np.abs(thresholds[as_good] - prior).argmin()])


def _values(
    score: Score, judged: np.ndarray, has_gold: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    linked, correct = judged
    if isinstance(score, str):
        return scores_of_links(linked, correct, has_gold, weights)[score]
    gained = (correct & has_gold) - score * (linked & ~correct)
    return gained @ weights / max(1, len(has_gold))


def sweep_linking(
    linker: ArboLinker,
    docs: Sequence[Doc],
    thresholds: np.ndarray = THRESHOLDS,
    stages: LinkingStages | None = None,
) -> ThresholdSweep:
    """Link annotated mentions at many thresholds. Candidates are retrieved and ranked only once.

    Each row has "threshold" and scores as in ``scorer.py``: "arbo_acc", "arbo_nil_p", "_r", "_f"
    and "nel_micro_p", "_r", "_f".

    stages: The stages to link with; by default the linker's own.
    """
    stages = stages or linker.stages
    batches: list[MentionBatch] = []
    linked: list[np.ndarray] = []
    correct: list[np.ndarray] = []
    for spans in annotated_batches(stages.reader, docs):
        ranked = stages.rank(spans)
        decided = [
            stages.decide(ranked, float(threshold)).entities
            for threshold in thresholds
        ]
        entities = np.stack(decided)
        gold = gold_positions(
            linker.kb, [record.kb_ids for record in ranked.batch.records]
        )
        linked.append(entities >= 0)
        correct.append(is_gold(entities.T, gold).T)
        batches.append(ranked.batch)
    if not batches:
        raise Errors.E712()
    batch = MentionBatch.concat(batches)
    # Mentions with discarded labels are NIL at every threshold.
    reader = linker.reader
    mentions = (span for doc in docs for span in reader.all_mentions(doc))
    discarded = [s for s in mentions if s.kb_id_ and reader.is_discarded(s.label_)]
    never = np.zeros((len(thresholds), len(discarded)), dtype=bool)
    has_gold = [bool(record.kb_ids) for record in batch.records]
    has_gold += [bool(gold_ids(span)) for span in discarded]
    judged = np.stack([np.hstack([*linked, never]), np.hstack([*correct, never])])
    rows = _rows(thresholds, judged, np.array(has_gold))
    documents = np.append(
        batch.documents, batch.n_documents + np.arange(len(discarded))
    )
    return ThresholdSweep(rows, judged, np.array(has_gold), documents)


def _rows(
    thresholds: np.ndarray, judged: np.ndarray, has_gold: np.ndarray
) -> list[SweepRow]:
    linked, correct = judged
    scores = scores_of_links(linked, correct, has_gold, np.ones((len(has_gold), 1)))
    columns = {
        "threshold": thresholds,
        **{name: rows[:, 0] for name, rows in scores.items()},
    }
    return [
        dict(zip(columns, row)) for row in zip(*(x.tolist() for x in columns.values()))
    ]


def middle_of_best(values: np.ndarray) -> int:
    """The number of the highest value. If several are equal, the middle of the first run.

    If the first run begins at the lowest threshold, that threshold is chosen.
    """
    first = int(values.argmax())
    last = first
    while last + 1 < len(values) and values[last + 1] == values[first]:
        last += 1
    # The lowest threshold, 0, says that everything is linked.
    return first if first == 0 else (first + last) // 2


def scores_of_links(
    linked: np.ndarray, correct: np.ndarray, has_gold: np.ndarray, weights: np.ndarray
) -> dict[str, np.ndarray]:
    """The scores at T thresholds for S ways to weigh mentions, each (T, S).

    linked, correct: (T, m) bool.
    has_gold: (m,) bool.
    weights: (m, S) float.
    """
    right = correct & has_gold
    nil_right = ~linked & ~has_gold
    gold = has_gold[None] @ weights
    nil = ~has_gold[None] @ weights
    return {
        "arbo_acc": _ratio((right | nil_right) @ weights, gold + nil),
        **_rates("arbo_nil", nil_right @ weights, ~linked @ weights, nil),
        **_rates("nel_micro", right @ weights, linked @ weights, gold),
    }


def _rates(
    name: str, correct: np.ndarray, predicted: np.ndarray, gold: np.ndarray
) -> dict[str, np.ndarray]:
    """Precision, recall and F1 from counts (T, S); ``gold`` may be (1, S)."""
    return {
        f"{name}_p": _ratio(correct, predicted),
        f"{name}_r": _ratio(correct, gold),
        f"{name}_f": _ratio(2 * correct, predicted + gold),
    }


def _ratio(counts: np.ndarray, totals: np.ndarray) -> np.ndarray:
    return counts / np.where(totals > 0, totals, 1)
