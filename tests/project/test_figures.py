"""The figures of examples/figures.py show the numbers that they are given."""

from pathlib import Path

import pytest
from spacy.util import import_file

from spacy_arbo_el.mentions.explanation import Explanation

from ..linker.conftest import build
from ..linker.world import TRAIN, annotated

figures = import_file("figures", Path(__file__).parents[2] / "examples" / "figures.py")


def test_cluster_sizes():
    (axes,) = figures.plot_cluster_sizes({"gold": [1, 5, 2]}).axes
    (line,) = axes.get_lines()
    assert line.get_xydata().tolist() == [[5, 1], [2, 2], [1, 3]]


def test_contributions_lead_from_nothing_to_the_sum():
    parts = {"words": -0.5, "name": 2.0}
    why = Explanation("x", None, titles={"a": "A"}, compared=("a", "b"), contributions=parts)
    (axes,) = figures.plot_contributions(why).axes
    bars = [(bar.get_x(), bar.get_width()) for bar in axes.patches]
    assert bars == [(0.0, 2.0), (2.0, -0.5), (0.0, 1.5)]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["name", "words", "sum"]
    with pytest.raises(ValueError, match="arbo fit"):
        figures.plot_contributions(Explanation("x", None))


def test_map_has_each_mention_and_names_the_most_frequent_entities():
    nlp = build()
    linker = nlp.get_pipe("arbo_linker")
    linker.refresh()
    docs = [annotated(nlp, text) for text in TRAIN]
    (axes,) = figures.plot_map(linker, docs, n_entities=2).axes
    sizes = [len(points.get_offsets()) for points in axes.collections]
    assert sizes == [14, 3, 1, 3, 1] and len(axes.texts) == 2
