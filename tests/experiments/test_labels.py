"""Scores with a part of the labels: others are no candidates, and their mentions are NIL."""

from pathlib import Path

import pytest
import srsly
from spacy.util import import_file

from spacy_arbo_el.corpora.docbin import write_docbin

from ..commands import run_script
from ..linker.conftest import build
from ..linker.world import DEV, annotated

SCRIPT = Path(__file__).parents[2] / "experiments" / "labels.py"


def test_only_the_labels_are_linked(tmp_path):
    nlp, model, dev, output = build(), tmp_path / "m", tmp_path / "dev.spacy", tmp_path / "o.json"
    nlp.to_disk(model)
    write_docbin([annotated(nlp, text) for text in DEV], dev)
    (tmp_path / "ids.txt").write_text("planet\n\nriver\n")
    options = ("--labels", str(tmp_path / "ids.txt"), "--output", str(output))
    run_script(SCRIPT, str(model), str(dev), *options)
    rows = srsly.read_json(output)
    scores = rows[f"{model}: as configured"]
    assert scores["arbo_mentions"] == len(DEV)
    assert scores["arbo_recall_at_64"] == 1.0, "mentions of other entities are NIL"
    assert scores["arbo_nil_r"] is not None


@pytest.mark.parametrize("ids", [["nobody"], []])
def test_labels_that_are_none_are_an_error(ids):
    kb = build().get_pipe("arbo_linker").kb
    size = len(kb)
    with pytest.raises(ValueError, match="labels are unknown"):
        import_file("labels", SCRIPT).keep_entities(kb, ids)
    assert len(kb) == size
