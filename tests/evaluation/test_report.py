"""Rows of tables of scores."""

import pytest
from spacy.tokens import DocBin
from spacy.training import Example

from spacy_arbo_el.evaluation import report
from spacy_arbo_el.fitting.thresholds import sweep_linking

from ..linker.conftest import build
from ..linker.world import DEV, examples
from ..scores import compare_inference


@pytest.fixture(scope="module")
def pipeline():
    return build()


@pytest.fixture
def data(pipeline):
    return examples(pipeline, DEV)


def test_documents_are_not_changed(pipeline, data):
    compare_inference(pipeline, [Example(eg.predicted, eg.reference) for eg in data])
    assert all(not ent.kb_id_ for eg in data for ent in eg.predicted.ents)


def test_ids_of_merged_entities_are_those_of_the_entities_that_they_lead_to():
    nlp = build()
    linker = nlp.get_pipe("arbo_linker")
    linker.kb.merge("maker", "shop")
    old = examples(nlp, DEV)
    new = examples(nlp, [text.replace("|maker]", "|shop]") for text in DEV])
    assert nlp.evaluate(old) == {**nlp.evaluate(new), "speed": pytest.approx(0, abs=1e9)}
    assert compare_inference(nlp, old) == compare_inference(nlp, new)
    best = max(row["arbo_acc"] for row in sweep_linking(linker, [eg.reference for eg in old]).rows)
    assert best == nlp.evaluate(old)["arbo_acc"] > 0.6


def test_gold_ids_of_another_knowledge_base_are_said(pipeline, tmp_path):
    other = [text.replace("|", "|other-") for text in DEV[:2]]
    path = tmp_path / "dev.spacy"
    DocBin(docs=[eg.reference for eg in examples(pipeline, other)]).to_disk(path)
    with pytest.warns(UserWarning, match="W546.*None of the 2 gold ids.*such as other-"):
        report.annotated_examples(pipeline, path)
