"""Scores of a pipeline, as ``arbo evaluate`` prints them."""

from spacy_arbo_el.evaluation.report import score_rows
from spacy_arbo_el.fitting.held_out import inference_outcomes


def compare_inference(nlp, examples, folds=0, tune_by=""):
    """The scores of a pipeline's linker on gold mentions, by inference procedure."""
    return score_rows(nlp, inference_outcomes(nlp, examples, folds, tune_by))
