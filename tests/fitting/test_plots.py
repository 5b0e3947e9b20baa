"""Figures: they show the numbers they are given, and say what they need."""

import sys

import numpy as np
import pytest

from spacy_arbo_el.evaluation.reliability import reliability
from spacy_arbo_el.fitting.plots import (
    THRESHOLD_LINES,
    plot_recall,
    plot_reliability,
    plot_thresholds,
)

ROWS = [
    {"threshold": t, **{key: abs(t - i / 10) for i, key in enumerate(THRESHOLD_LINES)}}
    for t in (0.0, 0.5, 1.0)
]


def lines_of(figure):
    (axes,) = figure.axes
    return {line.get_label(): line.get_xydata() for line in axes.get_lines()}


def test_thresholds():
    lines = lines_of(plot_thresholds(ROWS, best=1))
    for key, (label, _) in THRESHOLD_LINES.items():
        assert lines[label].tolist() == [[row["threshold"], row[key]] for row in ROWS]
    assert lines["chosen: 0.5"][:, 0].tolist() == [0.5, 0.5]


def test_reliability():
    part = reliability(np.array([0.1, 0.9, 0.9]), np.array([False, True, False]))
    lines = lines_of(plot_reliability({"mine": part}))
    assert lines[f"mine (ECE {part.error:.3f})"].tolist() == [[0.1, 0.0], [0.9, 0.5]]


def test_recall_leaves_out_what_was_not_measured():
    scores = {"arbo_recall_at_1": 0.5, "arbo_recall_at_8": 0.75, "arbo_recall_at_64": None}
    assert lines_of(plot_recall({"mine": scores}))["mine"].tolist() == [[1, 0.5], [8, 0.75]]


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"spacy_arbo_el\[plots\]"):
        plot_thresholds(ROWS, best=1)
