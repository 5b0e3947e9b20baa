"""A cross-encoder that learns from candidates of encoders that have not seen the document.

    python experiments/cross_fitting.py MODEL CONFIG TRAIN.spacy DEV.spacy OUT [SETTING ...]

The encoder of MODEL has learned the mentions of TRAIN, so it ranks their candidates better than
those of other documents. Here an encoder is trained on each half of TRAIN, and gives the candidates
of the mentions of the other half. CONFIG and the SETTINGs are those that MODEL was trained with,
such as ``--paths.kb kb --training.max_steps 60``.
"""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from spacy_arbo_el.base.arrays import TopK
from spacy_arbo_el.contrib.papers.cross_encoder.candidates import (
    TrainingCandidates,
    annotated_mentions,
    make_candidates,
)
from spacy_arbo_el.contrib.papers.cross_encoder.reranker import RerankerTraining, fit_weight
from spacy_arbo_el.contrib.papers.cross_encoder.reranker_run import (
    RerankerRun,
    read_config,
    set_reranker,
)
from spacy_arbo_el.corpora.docbin import read_docs, write_docbin
from spacy_arbo_el.fitting.calibrate import calibrate_pipeline
from spacy_arbo_el.linker import ArboLinker, find_linker
from spacy_arbo_el.pipelines import load_pipeline, save_pipeline

COUNT = RerankerTraining().n_candidates


def run(command: str, *arguments: Any) -> None:
    """Run a command of ``python -m spacy arbo``."""
    subprocess.run(
        [sys.executable, "-m", "spacy", "arbo", command, *map(str, arguments)], check=True
    )


def options_of(settings: dict[str, Any]) -> list[str]:
    """Settings of a config as options of ``run``."""
    return [str(word) for name, value in settings.items() for word in (f"--{name}", value)]


def candidates_of(model: Path, corpus: Path, main: ArboLinker) -> TrainingCandidates:
    """The candidates of the mentions of a corpus by a pipeline, as positions of the main linker."""
    nlp = load_pipeline(model)
    linker = find_linker(nlp)
    stages = replace(linker.stages, calibration=main.calibration)
    mentions = annotated_mentions(stages, read_docs(corpus, nlp.vocab))
    table = make_candidates(stages, mentions, COUNT)
    ids = linker.kb.entities.ids_of(np.arange(linker.kb.entities.positions)).tolist()
    positions = np.append(main.kb.entities.positions_of(ids), -1)
    return replace(table, candidates=positions[table.candidates], gold=positions[table.gold])


def joined(tables: Sequence[TrainingCandidates], weights: Sequence[float]) -> TrainingCandidates:
    """The rows of tables one after the other, their log-odds times weights."""
    first = TopK.concat([TopK(t.candidates, t.scores * w) for t, w in zip(tables, weights)])
    gold = TopK.concat([TopK(t.gold, t.gold_scores * w) for t, w in zip(tables, weights)])
    recall = np.mean([table.recall for table in tables], axis=0)
    return TrainingCandidates(first.ids, first.scores, gold.ids, gold.scores, recall)


def main(model: str, config: str, train: str, dev: str, output: str, settings: list[str]) -> None:
    folder, nlp = Path(output), load_pipeline(Path(model))
    linker, docs = find_linker(nlp), list(read_docs(Path(train), nlp.vocab))
    halves, tables = (docs[::2], docs[1::2]), []
    paths = [folder / f"half-{number}.spacy" for number in range(2)]
    for half, path in zip(halves, paths):
        write_docbin(half, path)
    for number, (held_out, others) in enumerate(zip(paths, paths[::-1])):
        encoder = folder / f"encoder-{number}"
        corpora = ("--paths.train", others, "--paths.dev", dev)
        run("train", config, "--resume", "--output", encoder, *corpora, *settings)
        tables.append(candidates_of(encoder / "model-last", held_out, linker))
    # The log-odds of each half are scaled as those of unseen mentions are.
    unseen = fit_weight(candidates_of(Path(model), Path(dev), linker))
    table = joined(tables, [np.float32(fit_weight(table) / unseen) for table in tables])
    ordered = [*halves[0], *halves[1]]
    dev_docs, sections = list(read_docs(Path(dev), nlp.vocab)), read_config(None, {})
    training = RerankerRun(nlp, sections, folder)
    reranker = training.train(ordered, dev_docs, candidates=table)
    set_reranker(nlp, linker, reranker, sections["reranker"])
    calibrate_pipeline(nlp, dev_docs)
    save_pipeline(nlp, folder / "model-last")


if __name__ == "__main__":
    main(*sys.argv[1:6], sys.argv[6:])
