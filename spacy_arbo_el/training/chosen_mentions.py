"""The mentions that a cross-encoder is trained on. Those that it can learn something from."""

from typing import Any, Dict

import numpy as np

from ..errors import Errors
from ..mentions.batch import MentionBatch
from .reranker import LabelledMentions, RerankerTraining


def mentions_to_train_on(
    learned: LabelledMentions, weight: float, training: RerankerTraining
) -> LabelledMentions:
    """Select annotated mentions whose gold entity is a candidate.

    Of a document's mentions with the same string and entities, the first is taken. A model that
    learns what to add to the log-odds is not trained where vectors are sure of the gold entity,
    since there is little to add. A model with separate scores learns from all.

    learned: Annotated mentions with the candidates that were retrieved.
    weight: That of the retriever's log-odds.
    training: The settings.

    Raises ValueError if there are none.
    """
    rows, table = learned.table.with_gold()
    if not len(rows):
        raise ValueError(Errors.E878.format(count=len(learned)))
    first = _first_of_each(learned.batch.take(rows))
    rows, table = rows[first], table.take(first)
    if training.residual and training.sure < 1.0:
        unsure = np.flatnonzero(table.gold_probability(weight) < training.sure)
        if not len(unsure):
            raise ValueError(Errors.E883.format(count=len(rows), sure=training.sure))
        rows, table = rows[unsure], table.take(unsure)
    return LabelledMentions(learned.batch.take(rows), table)


def _first_of_each(batch: MentionBatch) -> np.ndarray:
    """First mention of each string and entities per document. (n,) int64.

    Two of them say little more than one. Trained on both, a model learns the string's entity in
    this document by heart.
    """
    first: Dict[Any, int] = {}
    for place, record in enumerate(batch.records):
        first.setdefault((record.key[0], record.normalized.lower(), record.kb_ids), place)
    return np.array(list(first.values()), dtype=np.int64)
