"""Score pipelines on each part of documents, calibrated on the others.

    python held_out.py MODEL... DEV.spacy [--folds 5] [--tune arbo_acc] [--output SCORES.json]

The rows are those of ``arbo evaluate``. With ``--tune``, the threshold of each is chosen on the
other parts too, by this score. ``arbo fit`` compares ways to use the documents instead.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import srsly
from rich.console import Console
from spacy.language import Language
from spacy.training import Example
from thinc.api import require_gpu

from spacy_arbo_el import load_pipeline
from spacy_arbo_el.evaluation.outcomes import Outcome
from spacy_arbo_el.evaluation.reliability import error_of_links
from spacy_arbo_el.evaluation.report import (
    CONFIGURED,
    annotated_examples,
    as_table,
    inferences,
    linked_outcomes,
    score_rows,
)
from spacy_arbo_el.fitting.calibrate import divided, fit_folds
from spacy_arbo_el.fitting.thresholds import cautious_row, sweep_linking
from spacy_arbo_el.linker import find_linker
from spacy_arbo_el.linking.stages import LinkingStages

# From the stages of a linker to variants of them, by name.
Variants = Callable[[LinkingStages], Mapping[str, LinkingStages]]


def outcomes_of_stages(
    nlp: Language,
    examples: Sequence[Example],
    variants: Variants,
    *,
    folds: int = 0,
    tune_by: str = "",
) -> dict[str, list[Outcome]]:
    """Outcomes on gold mentions for several variants of stages.

    examples: Only the linker of the pipeline is run on them.
    variants: From the linker's calibrated stages to the stages to compare, by name.
    folds: Split the examples into so many parts; calibrate on all but one and score that one, in
        turn. 0 uses the present calibration. If it was fitted on the same examples, the scores are
        too high.
    tune_by: With folds, choose the threshold of each variant on the other parts too, by this score:
        one of ``LINKING_SCORES``. Otherwise it is the linker's own.
    """
    linker = find_linker(nlp)
    results: dict[str, list[Outcome]] = {}
    keeping = linker.caching_stages()
    nothing: list[Example] = []
    parts = [(nothing, list(examples))]
    fits = [keeping]
    if folds:
        references = [example.reference for example in examples]
        fitted = fit_folds(linker, references, folds, stages=keeping).without
        parts = list(divided(examples, folds))
        fits = [one.within(keeping) for one in fitted]
    for (rest, part), stages in zip(parts, fits):
        others = [example.reference for example in rest]
        for name, variant in variants(stages).items():
            threshold = linker.threshold
            if tune_by:
                sweep = sweep_linking(linker, others, stages=variant)
                row = cautious_row([sweep], tune_by, linker.threshold)
                threshold = sweep.rows[row]["threshold"]
            found = linked_outcomes(linker, variant, part, threshold)
            results.setdefault(name, []).extend(found)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("data", type=Path)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument(
        "--tune", default="", help="a score, such as arbo_acc or nel_micro_f"
    )
    parser.add_argument("--output", type=Path, help="a JSON file of the scores")
    parser.add_argument("--gpu-id", type=int, default=-1)
    options = parser.parse_args()
    if options.gpu_id >= 0:
        require_gpu(options.gpu_id)
    rows = {}
    for model in options.models:
        nlp = load_pipeline(model)
        examples = annotated_examples(nlp, options.data)
        found = outcomes_of_stages(
            nlp, examples, inferences, folds=options.folds, tune_by=options.tune
        )
        scores = {
            f"{model.name}: {name}": row
            for name, row in score_rows(nlp, found).items()
        }
        error = error_of_links(found[CONFIGURED])
        scores[f"{model.name}: {CONFIGURED}"]["arbo_calibration_error"] = error
        names = [one.name for one in options.models]
        if names.count(model.name) > 1:
            scores = {f"{model.parent}/{name}": row for name, row in scores.items()}
        rows.update(scores)
    title = f"{options.data}, calibrated on the other parts of {options.folds}"
    Console(width=160).print(as_table(rows, title))
    if options.output:
        srsly.write_json(options.output, rows)


if __name__ == "__main__":
    main()
