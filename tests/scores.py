"""Scores of a pipeline, as ``arbo evaluate`` prints them, and held out."""

import sys
from importlib import import_module
from pathlib import Path

from spacy_arbo_el.evaluation.report import inferences, score_rows

# The scripts import each other by their names.
sys.path.append(str(Path(__file__).parents[1] / "experiments"))
held_out = import_module("held_out")
compare = import_module("compare")


def compare_inference(nlp, examples, folds=0):
    """The scores of a pipeline's linker on gold mentions, by inference procedure."""
    return score_rows(nlp, held_out.outcomes_of_stages(nlp, examples, inferences, folds=folds))
