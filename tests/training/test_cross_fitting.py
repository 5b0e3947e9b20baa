"""Candidates by encoders that were trained on other documents."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.language import Language

from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.linker import find_linker
from spacy_arbo_el.mentions.batch import MentionBatch
from spacy_arbo_el.mentions.labels import gold_positions
from spacy_arbo_el.training import candidates, cross_fitting
from spacy_arbo_el.training.candidates import annotated_mentions
from spacy_arbo_el.training.cross_fitting import CrossFitting, split_documents, trained_anew
from spacy_arbo_el.training.reranker import RerankerTraining, fit_weight
from spacy_arbo_el.training.reranker_run import RerankerRun, read_config

from ..linker.conftest import build
from ..linker.world import DEV, ENTITIES, TRAIN, annotated

SETTINGS = {
    "reranker.window": 32,
    "reranker.text": 12,
    "reranker.n_reranked": 4,
    "training.n_candidates": 4,
    "training.max_epochs": 1,
    "training.folds": 2,
    "training.fold_steps": 2,
}


@pytest.fixture
def nlp(tiny_bert):
    tower = {"mention": {"name": str(tiny_bert), "window": 32, "precision": "float32"}}
    return build(model=tower)


def docs_of(nlp, texts=TRAIN):
    return [annotated(nlp, text) for text in texts]


def batch_of(nlp, docs):
    return MentionBatch.concat(annotated_mentions(find_linker(nlp).stages, docs))


def run(nlp, folder, lines, **settings):
    config = read_config(None, {**SETTINGS, **settings})
    return RerankerRun(nlp, config, folder, lines.append).train(docs_of(nlp), docs_of(nlp, DEV))


@given(st.lists(st.sampled_from("abcdefgh"), max_size=20), st.integers(2, 5), st.integers(0, 9))
def test_each_document_is_in_one_fold_and_folds_have_nearly_as_many(keys, folds, seed):
    if len(set(keys)) < folds:
        with pytest.raises(ValueError, match="E884"):
            split_documents(keys, folds, seed)
        return
    fold_of = split_documents(keys, folds, seed)
    assert fold_of == split_documents(keys, folds, seed) and set(fold_of) == set(keys)
    counts = Counter(fold_of.values())
    assert set(counts) == set(range(folds)) and max(counts.values()) - min(counts.values()) <= 1


def test_a_mention_has_the_candidates_of_an_encoder_that_has_not_seen_its_document(
    nlp, tmp_path, monkeypatch
):
    seen = []
    make_candidates = cross_fitting.make_candidates

    def spied(stages, parts, count):
        parts, table = list(parts), make_candidates(stages, parts, count)
        learned = {record.key[0] for record in stages.datastore.exemplars.records}
        seen.append((learned, MentionBatch.concat(parts), table))
        return table

    monkeypatch.setattr(cross_fitting, "make_candidates", spied)
    # A Doc twice, and one without mentions.
    docs = docs_of(nlp, [*TRAIN, TRAIN[0], "Nothing here."])
    linker, batch = find_linker(nlp), batch_of(nlp, docs)
    before = linker.to_bytes()
    training = RerankerTraining(folds=3, fold_steps=2, n_candidates=4)
    table = CrossFitting(nlp, training, tmp_path).candidates(docs, batch, 0.5)
    assert linker.to_bytes() == before, "the pipeline stays as it is"
    expected = {}
    for learned, of_fold, made in seen:
        assert learned and not learned & {record.key[0] for record in of_fold.records}
        assert learned | {record.key[0] for record in of_fold.records} == {
            record.key[0] for record in batch.records
        }
        factor = np.float32(fit_weight(made) / 0.5)
        for row, record in enumerate(of_fold.records):
            expected[record.key] = made.candidates[row], made.scores[row] * factor
    assert len(seen) == 3
    for row, record in enumerate(batch.records):
        ids, scores = expected[record.key]
        assert (table.candidates[row] == ids).all()
        np.testing.assert_allclose(table.scores[row], scores, rtol=1e-6)
    gold = gold_positions(linker.kb, [record.kb_ids for record in batch.records])
    assert (table.gold == gold).all()
    assert table.recall[0, 0] == pytest.approx(table.correct[:, 0].mean())


def test_positions_are_those_of_a_knowledge_base_that_was_edited(nlp, tmp_path):
    linker = find_linker(nlp)
    linker.kb.remove("planet")
    linker.kb.add([Entity("moon", "Moon", "it circles the earth")])
    linker.kb.merge("car", "maker")
    docs = docs_of(nlp)
    batch = batch_of(nlp, docs)
    training = RerankerTraining(folds=2, fold_steps=1, n_candidates=7)
    table = CrossFitting(nlp, training, tmp_path).candidates(docs, batch, 1.0)
    gold = gold_positions(linker.kb, [record.kb_ids for record in batch.records])
    assert (table.gold == gold).all() and (table.gold >= 0).any() and (table.gold < 0).any()
    found = set(linker.kb.ids_of(table.candidates[table.candidates >= 0]).tolist())
    assert found <= {*(entity.id for entity in ENTITIES), "moon"} - {"planet", "car"}


@pytest.mark.parametrize(
    "config, steps, share, expected",
    [
        # A pass over these documents has three steps.
        ({"max_epochs": 2, "max_steps": 0}, 0, 1.0, 6),
        ({"max_epochs": 1, "max_steps": 0}, 0, 0.5, 6),
        ({"max_epochs": 2, "max_steps": 0}, 0, 0.8, 9),
        ({"max_epochs": 0, "max_steps": 4}, 0, 0.5, 4),
        ({"max_epochs": -1, "max_steps": 1}, 0, 0.1, 1),
        ({"max_epochs": 1, "max_steps": 5}, 0, 0.5, 5),
        ({"max_epochs": 1, "max_steps": 1, "patience": 9}, 5, 0.5, 5),
    ],
)
def test_an_encoder_is_trained_for_as_long_as_the_config_says(
    nlp, monkeypatch, config, steps, share, expected
):
    batcher = {"@batchers": "spacy.batch_by_sequence.v1", "size": 4, "get_length": None}
    optimizer = {"@optimizers": "Adam.v1", "learn_rate": 0.001, "use_averages": True}
    nlp.config["training"].update(
        {"patience": 0, "batcher": batcher, "optimizer": optimizer, **config}
    )
    calls = []
    update = Language.update
    monkeypatch.setattr(
        Language, "update", lambda self, *args, **kw: calls.append(1) or update(self, *args, **kw)
    )
    linker = find_linker(nlp)
    with trained_anew(nlp, linker, docs_of(nlp), steps, share) as trained:
        averaged = trained.encoder.fingerprint
        assert len(calls) == expected and averaged != linker.encoder.fingerprint
    assert trained.encoder.fingerprint != averaged or expected == 1


def test_without_a_known_end_of_training_the_steps_are_asked_for(nlp, tmp_path):
    for wrong in ({"patience": 9, "max_steps": 9}, {"patience": 0, "max_steps": 0}):
        nlp.config["training"].update({"max_epochs": 0, **wrong})
        with pytest.raises(ValueError, match="E885.*fold_steps"):
            run(nlp, tmp_path, [], **{"training.fold_steps": 0})
    with pytest.raises(ValueError, match="E884.*13 folds.*12"):
        run(nlp, tmp_path, [], **{"training.folds": 13})
    assert not list(tmp_path.glob("candidates*"))
    for wrong in ({"folds": 1}, {"folds": -2}, {"fold_steps": -1}):
        with pytest.raises(ValueError, match="training.fold"):
            RerankerTraining(**wrong)


def test_an_interrupted_run_trains_only_the_folds_that_are_left(nlp, tmp_path, monkeypatch):
    whole, lines = run(nlp, tmp_path / "whole", []), []
    write_candidates = candidates.write_candidates

    def stop(path, *args):
        if path.name == "candidates-2.bin":
            raise KeyboardInterrupt
        write_candidates(path, *args)

    monkeypatch.setattr(candidates, "write_candidates", stop)
    with pytest.raises(KeyboardInterrupt):
        run(nlp, tmp_path / "cut", lines)
    monkeypatch.undo()
    lines.clear()
    resumed = run(nlp, tmp_path / "cut", lines)
    assert resumed.to_bytes() == whole.to_bytes()
    text = "\n".join(lines)
    assert "candidates-1.bin" in text and "fold 2 of 2: encoder trained on 6 documents" in text
    assert "by the encoders of 2 folds" in text
    for changed in ({"training.folds": 3}, {"training.fold_steps": 3}, {"training.seed": 1}):
        with pytest.raises(ValueError, match="E876.*candidates-1.bin"):
            run(nlp, tmp_path / "cut", [], **changed)
