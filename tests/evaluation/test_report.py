"""Rows of tables: thresholds that are chosen on other parts of the documents."""

import pytest
from spacy.tokens import DocBin
from spacy.training import Example

from spacy_arbo_el.evaluation import report
from spacy_arbo_el.fitting import held_out
from spacy_arbo_el.fitting.thresholds import sweep_linking
from spacy_arbo_el.ranking.decisions import Independent

from ..linker.conftest import build
from ..linker.world import DEV, examples
from ..scores import compare_inference

NIL = [
    "Boats with [sails|NIL] cross the river.",
    "She ate [cheese|NIL] with the fruit.",
    "The [telescope|NIL] showed a planet.",
    "Cars have [wheels|NIL] and doors.",
    "They ordered [tables|NIL] at a shop.",
    "A [fox|NIL] sleeps in the forest.",
]


@pytest.fixture(scope="module")
def pipeline():
    return build()


@pytest.fixture
def data(pipeline):
    # Each half has both.
    mixed = [text for i in (0, 2, 4) for text in (*DEV[i : i + 2], *NIL[i : i + 2])]
    return examples(pipeline, mixed)


def test_thresholds_are_chosen_on_the_other_parts(pipeline, data, monkeypatch):
    used = []

    def sweep(linker, docs, *, stages):
        used.append(([doc.text for doc in docs], stages))
        return sweep_linking(linker, docs, stages=stages)

    monkeypatch.setattr(held_out, "sweep_linking", sweep)
    fixed = compare_inference(pipeline, data, folds=2)
    assert not used and fixed["names alone"]["arbo_nil_r"] == 0.0, "the threshold is 0"
    tuned = compare_inference(pipeline, data, folds=2, tune_by="arbo_acc")
    assert tuned["names alone"]["arbo_nil_r"] > 0.5
    assert tuned["names alone"]["arbo_acc"] > fixed["names alone"]["arbo_acc"]
    parts = [[eg.reference.text for eg in data[i::2]] for i in (1, 0)]
    assert [texts for texts, _ in used] == [parts[0]] * 3 + [parts[1]] * 3
    assert used[0][1].inference == Independent(n_exemplars=0), "each procedure has its own"
    assert pipeline.get_pipe("arbo_linker").threshold == 0.0


def test_a_threshold_is_not_chosen_on_the_scored_documents(pipeline, data):
    with pytest.raises(ValueError, match="E831.*--folds 5"):
        compare_inference(pipeline, data, tune_by="arbo_acc")
    with pytest.raises(ValueError, match="no score 'accuracy' to tune by"):
        compare_inference(pipeline, data, folds=2, tune_by="accuracy")


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


@pytest.mark.parametrize("folds", [1, -5])
def test_cross_validation_needs_two_parts(pipeline, data, folds):
    with pytest.raises(ValueError, match=f"E834.*at least 2 parts, got {folds}"):
        compare_inference(pipeline, data, folds=folds)


def test_gold_ids_of_another_knowledge_base_are_said(pipeline, tmp_path):
    other = [text.replace("|", "|other-") for text in DEV[:2]]
    path = tmp_path / "dev.spacy"
    DocBin(docs=[eg.reference for eg in examples(pipeline, other)]).to_disk(path)
    with pytest.warns(UserWarning, match="W546.*None of the 2 gold ids.*such as other-"):
        report.annotated_examples(pipeline, path)
