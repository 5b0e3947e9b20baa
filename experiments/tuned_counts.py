"""Choose the numbers of exemplars and of other mentions in an inference, then the thresholds.

    python tuned_counts.py MODEL DEV.spacy [--n-exemplars 1 5 15] [--n-mentions 0 1 2 4 8]
        [--output MODEL]

``arbo fit --thresholds`` chooses the thresholds with the numbers that the config has.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc

from spacy_arbo_el import load_pipeline, save_pipeline
from spacy_arbo_el.corpora.docbin import read_docs
from spacy_arbo_el.fitting.thresholds import sweep_linking
from spacy_arbo_el.fitting.tuning import store, tune
from spacy_arbo_el.linker import find_linker, name_of_linker

SETTINGS = ("n_exemplars", "n_mentions")


def choose_count(
    nlp: Language, docs: Sequence[Doc], setting: str, counts: Sequence[int]
) -> dict[int, float]:
    """Give the inference the number with the best accuracy, of equal ones the smallest.

    RETURNS: The accuracy with each.
    """
    linker = find_linker(nlp)
    threshold = np.array([linker.threshold])
    scores = {}
    for count in counts:
        inference: Any = linker.stages.inference
        stages = replace(
            linker.stages, inference=replace(inference, **{setting: count})
        )
        scores[count] = sweep_linking(linker, docs, threshold, stages).rows[0][
            "arbo_acc"
        ]
    best = min(scores, key=lambda count: (-scores[count], count))
    inference = linker.stages.inference
    linker.stages = replace(
        linker.stages, inference=replace(inference, **{setting: best})
    )
    config = nlp.get_pipe_config(name_of_linker(nlp, linker))
    config["inference"] = {**config["inference"], setting: best}
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("data", type=Path)
    for setting in SETTINGS:
        parser.add_argument(
            f"--{setting.replace('_', '-')}", type=int, nargs="*", default=[]
        )
    parser.add_argument(
        "--output", type=Path, help="by default, the pipeline is replaced"
    )
    options = parser.parse_args()
    nlp = load_pipeline(options.model)
    docs = list(read_docs(options.data, nlp.vocab))
    for setting in SETTINGS:
        counts = getattr(options, setting)
        for count, score in (
            choose_count(nlp, docs, setting, counts).items() if counts else ()
        ):
            print(f"{setting} = {count}: accuracy {score:.4f}")
    result = tune(find_linker(nlp), docs)
    store(nlp, result)
    print(f"threshold = {result.threshold:g}")
    save_pipeline(nlp, options.output or options.model)


if __name__ == "__main__":
    main()
