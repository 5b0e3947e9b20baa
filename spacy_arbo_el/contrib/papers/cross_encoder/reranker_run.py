"""Training of a cross-encoder for a trained pipeline, from its config."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import Config

from ....base.errors import ArboError
from ....linker import ArboLinker, find_linker, name_of_linker
from ....linking.stages import LinkingStages
from ....mentions.record import MentionBatch
from ..errors import PaperMessages
from .candidates import annotated_mentions, make_candidates
from .cross_encoder import CrossEncoder
from .pair_scorer import PairScorer
from .reranker import LabelledMentions, RerankerTrainer, RerankerTraining, fit_weight

_CONFIG = Path(__file__).with_name("reranker.cfg")


def train_reranker(
    nlp: Language,
    config: Config,
    train: Sequence[Doc],
    dev: Sequence[Doc],
    report: Callable[[str], None] = print,
) -> CrossEncoder:
    """Train a cross-encoder for a trained pipeline. How its scores count is not fitted yet.

    nlp: The encoder of its linker stays as it is.
    config: With the sections ``reranker`` and ``training``, and no variables.
    train: Annotated documents to learn from.
    dev: Annotated documents to evaluate on after each epoch.
    report: Takes the lines of the log.
    """
    linker = find_linker(nlp)
    linker.encoder.require_ready(linker.name)
    parts = registry.resolve({name: config[name] for name in ("reranker", "training")})
    reranker = parts["reranker"]
    training = parts["training"]
    if not isinstance(reranker, CrossEncoder):
        raise ArboError(PaperMessages.E879.format(found=type(reranker).__name__))
    source = linker.encoder.model.get_ref("mention")
    fingerprint = linker.encoder.fingerprint
    scorer = PairScorer.create(source, reranker.size, fingerprint, training.seed)
    stages = linker.stages
    with linker.datastore.reading():
        held_out = labelled_mentions(stages, dev, training.n_candidates)
        learned = labelled_mentions(stages, train, training.n_candidates)
        weight = fit_weight(held_out.table) if training.residual else 0.0
        chosen = mentions_to_train_on(learned, weight, training)
        report(f"Training on {len(chosen)} of {len(learned)} mentions")
        curves = linker.calibration.times(weight) if training.residual else None
        reranker = replace(reranker, scorer=scorer, vector_curves=curves)
        trainer = RerankerTrainer(reranker, stages.context, weight, training, report)
        trainer.train(chosen, held_out)
    return reranker


def labelled_mentions(
    stages: LinkingStages, docs: Sequence[Doc], n_candidates: int
) -> LabelledMentions:
    """The annotated mentions of documents with their candidates."""
    parts = annotated_mentions(stages, docs)
    return LabelledMentions(
        MentionBatch.concat(parts), make_candidates(stages, parts, n_candidates)
    )


def read_config(path: Path | None, overrides: dict[str, Any]) -> Config:
    """The config of a training.

    path: A file; None for that of the package.
    """
    return Config().from_disk(path or _CONFIG, overrides=overrides)


def set_reranker(nlp: Language, linker: ArboLinker, reranker: CrossEncoder, config: Config) -> None:
    """Give a pipeline's linker a trained cross-encoder.

    config: The section that describes it; it becomes part of the pipeline's config.
    """
    linker.reranker = reranker
    nlp.get_pipe_config(name_of_linker(nlp, linker))["reranker"] = config


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
        raise ArboError(PaperMessages.E878.format(count=len(learned)))
    first = _first_of_each(learned.batch.take(rows))
    rows = rows[first]
    table = table.take(first)
    if training.residual and training.sure < 1.0:
        unsure = np.flatnonzero(table.gold_probability(weight) < training.sure)
        if not len(unsure):
            raise ArboError(PaperMessages.E883.format(count=len(rows), sure=training.sure))
        rows = rows[unsure]
        table = table.take(unsure)
    return LabelledMentions(learned.batch.take(rows), table)


def _first_of_each(batch: MentionBatch) -> np.ndarray:
    """First mention of each string and entities per document. (n,) int64.

    Two of them say little more than one. Trained on both, a model learns the string's entity in
    this document by heart.
    """
    first: dict[Any, int] = {}
    for place, record in enumerate(batch.records):
        first.setdefault((record.key[0], record.normalized.lower(), record.kb_ids), place)
    return np.array(list(first.values()), dtype=np.int64)
