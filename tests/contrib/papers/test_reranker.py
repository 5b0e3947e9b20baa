"""Training of a cross-encoder: its loss, what it learns, interrupted runs."""

import re
from dataclasses import replace

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from thinc.api import Config

from spacy_arbo_el import find_linker, save_pipeline
from spacy_arbo_el.contrib.papers.cross_encoder import pair_scorer
from spacy_arbo_el.contrib.papers.cross_encoder.candidates import TrainingCandidates
from spacy_arbo_el.contrib.papers.cross_encoder.reranker import (
    RerankerTrainer,
    RerankerTraining,
    fit_weight,
    labelled_mentions,
    mentions_to_train_on,
    read_config,
    set_loss,
    set_reranker,
    train_reranker,
)
from spacy_arbo_el.corpora.docbin import write_docbin
from spacy_arbo_el.mentions.labels import gold_positions
from spacy_arbo_el.ranking.ranking import BestEvidence
from spacy_arbo_el.training.trainer import TrainingDiverged

from ...commands import run as arbo
from ...expecting import raises
from ...linker.conftest import build, build_tiny
from ...linker.world import DEV, TRAIN, docs_of

SETTINGS = {
    "reranker.window": 32,
    "reranker.text": 12,
    "reranker.n_reranked": 4,
    "training.n_candidates": 4,
    "training.learn_rate": 0.01,
    "training.batch_size": 6,
}


def run(nlp, report=lambda line: None, **settings):
    config = read_config(None, {**SETTINGS, **settings})
    return train_reranker(nlp, config, docs_of(nlp, TRAIN), docs_of(nlp, DEV), report)


def table_of(candidates, scores, gold):
    gold_scores = np.zeros(gold.shape, dtype=np.float32)
    return TrainingCandidates(candidates, scores, gold, gold_scores)


@given(st.data())
def test_the_weight_of_the_log_odds_predicts_the_gold_candidates_best(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 30)))
    m, k = data.draw(st.integers(1, 8)), data.draw(st.integers(2, 4))
    candidates = np.tile(np.arange(k), (m, 1))
    candidates[:, 2:][rng.random((m, k - 2)) < 0.3] = -1
    scores = np.where(candidates >= 0, rng.normal(size=(m, k)), -np.inf).astype(np.float32)
    table = table_of(candidates, scores, rng.integers(0, 2, (m, 1)))

    def loss(weight):
        return set_loss(weight * scores, table.correct)[0] + np.log(weight) ** 2 / m

    assert loss(fit_weight(table)) <= min(map(loss, np.geomspace(0.01, 100))) + 1e-4


def test_without_anything_to_fit_it_on_the_weight_is_one():
    candidates = np.array([[4, -1], [4, 5]])
    scores = np.array([[1.0, -np.inf], [1.0, 0.5]], dtype=np.float32)
    assert fit_weight(table_of(candidates, scores, np.array([[4], [6]]))) == 1.0
    equal = table_of(candidates[1:], np.ones((1, 2), np.float32), np.array([[5]]))
    assert fit_weight(equal) == pytest.approx(1.0, abs=1e-3)


def test_a_residual_that_adds_nothing_has_the_ranking_by_vectors(tiny_bert, monkeypatch):
    nlp = build_tiny(tiny_bert)
    monkeypatch.setattr(pair_scorer, "FIRST_WEIGHTS", 0.0)
    linker, lines = find_linker(nlp), []
    monkeypatch.setattr(RerankerTrainer, "step", lambda self, examples: 0.0)
    monkeypatch.setattr("thinc.api.Model.finish_update", lambda self, optimizer: None)
    residual = run(nlp, lines.append, **{"training.max_epochs": 1})
    alone = run(nlp, **{"training.residual": False, "training.max_epochs": 1})
    assert alone.vector_curves is None
    curves, own = residual.vector_curves, linker.calibration
    scaled = own.times(curves.entity[0] / own.entity[0])
    for name, curve in scaled.to_config().items():
        assert curves.to_config()[name] == pytest.approx(curve)
    assert residual.from_bytes(residual.to_bytes()).vector_curves == curves
    stages = linker.stages
    batch = stages.encode(stages.reader.read_docs(docs_of(nlp, DEV)))
    with stages.datastore.snapshot():
        neighbours = stages.retrieve(batch)
        expected = BestEvidence()(batch, neighbours, stages.context).candidates.ids
        by_scores = replace(residual, as_feature=False, ranker=BestEvidence())
        assert (by_scores(batch, neighbours, stages.context).candidates.ids == expected).all()
    gold = gold_positions(linker.kb, [record.kb_ids for record in batch.records])
    right = (expected[:, :1] == gold[:, :1]).mean()
    assert f"dev accuracy {right:.4f}" in lines[-1]


@pytest.mark.slow
def test_it_learns_what_the_encoder_does_not_know(tiny_bert):
    nlp = build_tiny(tiny_bert)
    before = find_linker(nlp).encoder.fingerprint
    lines, longer = [], {"training.max_epochs": 40, "training.dropout": 0.0}
    run(nlp, lines.append, **longer)
    losses = [float(re.search(r"loss ([\d.]+)", line).group(1)) for line in lines if "loss" in line]
    assert losses[0] > 1.0, lines
    assert losses[-1] < 0.3, lines
    assert find_linker(nlp).encoder.fingerprint == before, "the encoder stays as it is"


def test_a_run_is_reproducible(tiny_bert):
    nlp = build_tiny(tiny_bert)
    whole, again = (run(nlp, **{"training.max_epochs": 1}) for _ in range(2))
    assert whole.to_bytes() == again.to_bytes()


def test_a_loss_that_is_no_number_stops_the_training(tiny_bert, monkeypatch):
    monkeypatch.setattr(
        "spacy_arbo_el.contrib.papers.cross_encoder.reranker.set_loss",
        lambda scores, correct: (np.nan, scores),
    )
    with pytest.raises(TrainingDiverged, match="E607"):
        run(build_tiny(tiny_bert))


@pytest.mark.parametrize("sure", [0.0, 0.3, 0.6, 1.0])
@pytest.mark.parametrize("count", [2, 4])
def test_mentions_that_vectors_are_sure_of_are_not_trained_on(tiny_bert, sure, count):
    nlp = build_tiny(tiny_bert)
    # Two mentions of one string and entity, and one of another entity, in two documents.
    text = "The [Amazon|river] is not [amazon|shop]. The [amazon|river] is wide."
    docs = docs_of(nlp, [*TRAIN, text, f"{text} Yes."])
    learned = labelled_mentions(find_linker(nlp).stages, docs, count)
    ready, expected, distinct = learned.table.with_gold()[1], [], set()
    for row, record in enumerate(learned.batch.records):
        which = (record.key[0], record.normalized.lower(), record.kb_ids)
        chances = np.exp(2.0 * ready.scores[row].astype(float))
        gold = chances[np.isin(ready.candidates[row], ready.gold[row])].sum()
        if which not in distinct and (sure == 1.0 or gold / chances.sum() < sure):
            expected.append(record)
        distinct.add(which)
    training = RerankerTraining(sure=sure)
    if not expected:
        with raises("E883"):
            mentions_to_train_on(learned, 2.0, training)
        return
    chosen = mentions_to_train_on(learned, 2.0, training)
    assert list(chosen.batch.records) == expected
    assert chosen.table.correct.any(axis=1).all()
    own = RerankerTraining(sure=sure, residual=False)
    all_of_them = mentions_to_train_on(learned, 0.0, own)
    assert len(all_of_them) == len(distinct), "scores of its own are learned from all mentions"


def test_nothing_to_learn_from_and_another_reranker_are_refused(tiny_bert):
    empty = build([], model={"mention": {"name": str(tiny_bert), "window": 32}})
    with raises("E878"):
        run(empty)
    config = Config(read_config(None, SETTINGS))
    config["reranker"] = {"@misc": "spacy-arbo-el.BestEvidence.v1"}
    with raises("E879"):
        train_reranker(empty, config, [], [])


def test_the_section_of_a_renamed_linker_says_what_it_was_given(tiny_bert):
    nlp = build_tiny(tiny_bert)
    nlp.rename_pipe("arbo_linker", "linker")
    linker, settings = find_linker(nlp), read_config(None, {})["reranker"]
    set_reranker(nlp, linker, linker.reranker, settings)
    assert nlp.get_pipe_config("linker")["reranker"] == settings


@pytest.mark.slow
def test_the_command_saves_a_pipeline_that_links_with_its_cross_encoder(tiny_bert, tmp_path):
    ranker = {"@misc": "spacy-arbo-el.FeatureRanker.v1", "pretrained": False}
    nlp = build_tiny(tiny_bert, reranker=ranker)
    save_pipeline(nlp, tmp_path / "model")
    for name, texts in (("train", TRAIN), ("dev", [*DEV, *TRAIN])):
        write_docbin(docs_of(nlp, texts), tmp_path / f"{name}.spacy")
    overrides = {**SETTINGS, "training.max_epochs": 1}
    names = [str(tmp_path / name) for name in ("model", "train.spacy", "dev.spacy")]
    settings = [part for key, value in overrides.items() for part in (f"--{key}", str(value))]
    command = ["rerank", *names, "--output", tmp_path / "out", *settings]
    arbo(*command)
    again = spacy.load(tmp_path / "out" / "model-last")
    reranker = find_linker(again).reranker
    assert reranker.scorer is not None
    assert reranker.fitted.weights is not None
    assert reranker.n_reranked == 4
    assert reranker.window == 32
    kb_ids = [span.kb_id_ for doc in again.pipe(docs_of(again, DEV)) for span in doc.ents]
    assert all(kb_ids)
    alone = find_linker(build_tiny(tiny_bert)).reranker
    assert replace(reranker, scorer=None).to_bytes() != alone.to_bytes()


def test_the_command_refuses_an_output_that_can_not_be_replaced_before_it_trains(tmp_path):
    (tmp_path / "model-last").mkdir()
    (tmp_path / "model-last" / "notes.txt").touch()
    command = ("rerank", "model", "missing.spacy", "missing.spacy", "--output", tmp_path)
    assert "(notes.txt)" in arbo(*command, code=1)
