"""The callback at the end of training: honest scores, and a threshold."""

import pytest

from spacy_arbo_el import find_linker
from spacy_arbo_el.fitting import callback
from spacy_arbo_el.fitting.calibrate import fit_folds
from spacy_arbo_el.fitting.callback import FOLDS, Calibrate, fit_and_score
from spacy_arbo_el.fitting.held_out import fit_held_out
from spacy_arbo_el.fitting.thresholds import THRESHOLDS
from spacy_arbo_el.mentions.record import text_fingerprint
from spacy_arbo_el.runs.evaluation import create_evaluation
from spacy_arbo_el.training import held_out

from ..expecting import raises
from ..linker.conftest import build
from ..linker.world import DEV, TRAIN, docs_of, examples
from ..scores import compare_inference

UNKNOWN = ["She ate [cheese|NIL] with fruit.", "Cars have [wheels|NIL].", "A [fox|NIL] sleeps."]
WEIGHTS = {"arbo_acc": 1.0, "nel_micro_f": 0.0, "arbo_nil_f": None}


@pytest.fixture(scope="module")
def nlp():
    return build(train=TRAIN, reranker={"@misc": "spacy-arbo-el.FeatureRanker.v1"}, threshold=0.0)


@pytest.fixture(scope="module")
def data(nlp):
    return examples(nlp, [*DEV, *UNKNOWN])


@pytest.fixture
def dev(data, tmp_path):
    from spacy.tokens import DocBin

    path = tmp_path / "dev.spacy"
    DocBin(docs=[eg.reference for eg in data], store_user_data=True).to_disk(path)
    return path


def test_scores_are_those_of_folds(nlp, data):
    docs = [eg.reference for eg in data]
    fit, scores = fit_and_score(find_linker(nlp), docs, "")
    assert fit.threshold == 0.0
    expected = compare_inference(nlp, data, folds=FOLDS)["as configured"]
    assert {key: scores[key] for key in expected} == expected


def test_the_threshold_is_the_best_on_the_held_out_parts(nlp, data):
    linker, docs = find_linker(nlp), [eg.reference for eg in data]
    fit, scores = fit_and_score(linker, docs, "arbo_acc")
    assert fit.threshold > 0.0, "unknown mentions are NIL"
    assert fit.threshold < 1.0
    linked = fit_and_score(linker, docs, "")[1]
    assert scores["arbo_acc"] > linked["arbo_acc"]
    assert scores["arbo_nil_r"] > 0
    assert linker.threshold == 0.0, "the linker is unchanged"


def test_too_few_documents_leave_the_threshold(linker, data):
    fit, scores = fit_and_score(linker, [data[0].reference], "arbo_acc")
    assert fit.threshold == linker.threshold
    assert scores == {}


def test_a_saved_pipeline_is_tuned_and_scored_on_held_out_documents(data, dev):
    nlp = build(train=TRAIN, reranker={"@misc": "spacy-arbo-el.FeatureRanker.v1"}, threshold=0.0)
    callback = Calibrate(path=dev, tune_by="nel_micro_f")
    settings = {"before_to_disk": callback, "score_weights": WEIGHTS}
    score, scores = create_evaluation(nlp, lambda nlp: data, settings)()
    linker = find_linker(nlp)
    docs = [eg.reference for eg in data]
    fit, expected = fit_and_score(linker, docs, "nel_micro_f")
    assert linker.threshold == nlp.config["components"]["arbo_linker"]["threshold"]
    assert nlp.config["components"]["arbo_linker"]["threshold"] == fit.threshold
    assert score == scores["arbo_acc"]
    assert scores["arbo_acc"] == expected["arbo_acc"]
    assert scores["nel_micro_f"] == expected["nel_micro_f"]


def test_mentions_held_out_of_training_are_fitted_on_without_their_exemplars(data, monkeypatch):
    monkeypatch.setattr(held_out, "MIN_MENTIONS", 1)
    objective = {"@misc": "spacy-arbo-el.Objective.v1", "held_out": 0.5}
    reranker = {"@misc": "spacy-arbo-el.FeatureRanker.v1"}
    nlp = build(train=TRAIN, reranker=reranker, objective=objective, threshold=0.0)
    linker = nlp.get_pipe("arbo_linker")
    training_docs, dev = docs_of(nlp), [eg.reference for eg in data]
    fit, scores = fit_and_score(linker, dev, "", training_docs=training_docs)
    assert len(linker.exemplars) == len(build(train=TRAIN).get_pipe("arbo_linker").exemplars)
    chosen = linker.trainer.held_out
    docs = [doc for doc in training_docs if text_fingerprint(doc.text) in chosen.documents]
    assert docs
    assert len(docs) < len(training_docs)
    linker.exemplars.remove(chosen.keys)
    linker.refresh()
    expected = fit_folds(linker, [*dev, *docs], 0).whole
    assert fit.reranker.to_bytes() == expected.reranker.to_bytes()


def test_an_unknown_score_is_refused(tmp_path):
    with raises("tune_by must be.*'accuracy'"):
        Calibrate(path=tmp_path, tune_by="accuracy")


def test_a_save_takes_the_fit_of_the_score_before_it_and_a_rough_one_is_quick(
    data, dev, monkeypatch
):
    fits = []

    def counted(linker, docs, folds, *args, thresholds, **settings):
        fits.append((folds, len(thresholds)))
        return fit_held_out(linker, docs, folds, *args, thresholds=thresholds, **settings)

    monkeypatch.setattr(callback, "fit_held_out", counted)
    nlp = build(train=TRAIN, threshold=0.0)
    calibrate = Calibrate(path=dev, tune_by="nel_micro_f")
    calibrate.calibrate_and_score(nlp, rough=True)
    calibrate(nlp)
    rough, exact = (2, 21), (FOLDS, len(THRESHOLDS))
    assert fits == [rough]
    _, scores = calibrate.calibrate_and_score(nlp)
    calibrate(nlp)
    assert calibrate.calibrate_and_score(nlp)[1] == scores
    assert fits == [rough, exact]
    nlp.update(data, sgd=nlp.create_optimizer())
    calibrate(nlp)
    assert fits == [rough, exact, exact]
