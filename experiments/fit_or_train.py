"""Compare a training with a fit on a fold of the training documents that neither has seen.

    python fit_or_train.py CONFIG TRAIN.spacy DEV.spacy KB FOLDER [--fold 0] [--seed 0]

Further arguments are settings of the config, SETTING=VALUE.

The fit is ``arbo fit --strategy both`` on the other folds, with the encoder untrained. The
training has the same documents, and DEV as its dev set. FOLDER gets the pipelines, and
``scores.json`` with R@1 of both, the difference, and its interval over mentions. Accuracy is not
compared: a fit chooses its threshold by it, a training by F1.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import spacy
import srsly
from commands import options_of, run
from judges import Column

from spacy_arbo_el import load_pipeline
from spacy_arbo_el.corpora.docbin import read_docs, write_docbin
from spacy_arbo_el.evaluation.report import (
    annotated_examples,
    linked_outcomes,
    seen_by,
)
from spacy_arbo_el.evaluation.scorer import is_candidate
from spacy_arbo_el.linker import find_linker

FOLDS = 5
FITTED, TRAINED = "fitted", "trained"


def split(corpus: Path, fold: int, folder: Path) -> tuple[Path, Path]:
    """Write the other folds of a corpus, and this one, which are always the same."""
    docs = list(read_docs(corpus, spacy.blank("en").vocab))
    folds = np.random.default_rng(0).permutation(len(docs)) % FOLDS
    rest, test = folder / "rest.spacy", folder / "test.spacy"
    write_docbin([docs[i] for i in np.flatnonzero(folds != fold)], rest)
    write_docbin([docs[i] for i in np.flatnonzero(folds == fold)], test)
    return rest, test


def judge(model: Path, test: Path) -> dict[str, np.ndarray]:
    """Whether each mention's first candidate is right, and its entity unseen: (m,) bool each."""
    nlp = load_pipeline(model)
    linker = find_linker(nlp)
    outcomes = linked_outcomes(
        linker, linker.stages, annotated_examples(nlp, test), linker.threshold
    )
    seen = seen_by(linker).ids
    with_entity = [outcome for outcome in outcomes if outcome.gold]
    columns = {
        "first": [is_candidate(outcome, 1) for outcome in with_entity],
        "unseen": [not seen & set(outcome.gold) for outcome in with_entity],
    }
    return {name: np.array(column, dtype=bool) for name, column in columns.items()}


def scores_of(columns: dict[str, dict[str, np.ndarray]]) -> dict[str, Any]:
    """The scores of both, and of training less fit the mean with its interval, as shares."""
    unseen = columns[FITTED]["unseen"]
    everything = np.ones(len(unseen), dtype=bool)
    scores: dict[str, Any] = {"mentions": len(unseen), "unseen": int(unseen.sum())}
    for ending, rows in (("", everything), ("_unseen", unseen)):
        fitted, trained = (
            Column(columns[model]["first"][rows].astype(float), np.flatnonzero(rows))
            for model in (FITTED, TRAINED)
        )
        scores[f"fitted{ending}"] = fitted.right.mean()
        scores[f"trained{ending}"] = trained.right.mean()
        scores[f"trained_less_fitted{ending}"] = trained.difference(fitted)
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("config", "train", "dev", "kb", "folder"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--fold", type=int, default=0, choices=range(FOLDS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("settings", nargs="*")
    args = parser.parse_intermixed_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    rest, test = split(args.train, args.fold, args.folder)
    run("init", args.kb, args.folder / "untrained")
    fitted = args.folder / FITTED
    run(
        "fit",
        args.folder / "untrained",
        rest,
        "--strategy",
        "both",
        "--output",
        fitted,
    )
    settings = {
        "paths.train": rest,
        "paths.dev": args.dev,
        "paths.kb": args.kb,
        "system.seed": args.seed,
        **dict(setting.split("=", 1) for setting in args.settings),
    }
    trained = args.folder / TRAINED
    run("train", args.config, "--output", trained, *options_of(settings))
    columns = {
        FITTED: judge(fitted, test),
        TRAINED: judge(trained / "model-last", test),
    }
    scores = {"fold": scores_of(columns)}
    srsly.write_json(args.folder / "scores.json", scores)
    print(srsly.json_dumps(scores, indent=2))


if __name__ == "__main__":
    main()
