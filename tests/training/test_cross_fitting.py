"""Candidates by encoders that were trained on other documents."""

import shutil
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.linker import find_linker
from spacy_arbo_el.mentions.batch import MentionBatch
from spacy_arbo_el.mentions.getters import GroupSpans
from spacy_arbo_el.mentions.labels import gold_positions
from spacy_arbo_el.training import cross_fitting
from spacy_arbo_el.training.candidate_files import CandidatesFile
from spacy_arbo_el.training.candidates import annotated_mentions
from spacy_arbo_el.training.cross_fitting import CrossFitting, split_documents
from spacy_arbo_el.training.reranker import RerankerTrainer, RerankerTraining, fit_weight
from spacy_arbo_el.training.reranker_run import RerankerRun, read_config
from spacy_arbo_el.training.retraining import Retraining

from ..linker.conftest import build_tiny
from ..linker.world import DEV, ENTITIES, TRAIN, docs_of
from ..tiny import save_tiny

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
    return build_tiny(tiny_bert)


def batch_of(nlp, docs):
    return MentionBatch.concat(annotated_mentions(find_linker(nlp).stages, docs))


def run(nlp, folder, lines, resume=False, every=0, **settings):
    config = read_config(None, {**SETTINGS, **settings})
    runs = RerankerRun(nlp, config, folder, lines.append)
    return runs.train(docs_of(nlp), docs_of(nlp, DEV), resume=resume, every=every)


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
    table = CrossFitting.of(nlp, training, docs, tmp_path).candidates(0.5)
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
    table = CrossFitting.of(nlp, training, docs, tmp_path).candidates(1.0)
    gold = gold_positions(linker.kb, [record.kb_ids for record in batch.records])
    assert (table.gold == gold).all() and (table.gold >= 0).any() and (table.gold < 0).any()
    found = set(linker.kb.ids_of(table.candidates[table.candidates >= 0]).tolist())
    assert found <= {*(entity.id for entity in ENTITIES), "moon"} - {"planet", "car"}


def test_wrong_settings_are_refused_before_anything_is_made(nlp, tmp_path):
    with pytest.raises(ValueError, match="E884.*13 folds.*12"):
        run(nlp, tmp_path, [], **{"training.folds": 13})
    nlp.config["training"].update(max_epochs=0, max_steps=9, patience=9)
    with pytest.raises(ValueError, match="E885.*fold_steps"):
        run(nlp, tmp_path, [], **{"training.fold_steps": 0})
    assert not list(tmp_path.glob("candidates*"))
    for wrong in ({"folds": 1}, {"folds": -2}, {"fold_steps": -1}):
        with pytest.raises(ValueError, match="training.fold"):
            RerankerTraining(**wrong)


def stop_before(monkeypatch, name):
    """Interrupt a run before it writes a file of candidates."""
    write = CandidatesFile.write

    def stop(self, table):
        if self.path.name == name:
            raise KeyboardInterrupt
        write(self, table)

    monkeypatch.setattr(CandidatesFile, "write", stop)


def test_an_interrupted_run_trains_only_the_folds_that_are_left(nlp, tmp_path, monkeypatch):
    whole, lines = run(nlp, tmp_path / "whole", []), []
    stop_before(monkeypatch, "candidates-2.bin")
    with pytest.raises(KeyboardInterrupt):
        run(nlp, tmp_path / "cut", lines)
    monkeypatch.undo()
    lines.clear()
    resumed = run(nlp, tmp_path / "cut", lines)
    assert resumed.to_bytes() == whole.to_bytes()
    text = "\n".join(lines)
    assert "candidates-1.bin" in text and "fold 1 of 2" not in text
    assert "fold 2 of 2: training an encoder on 6 documents for 2 steps" in text
    assert "by the encoders of 2 folds" in text


def test_a_run_is_resumed_in_the_training_of_the_cross_encoder(nlp, tmp_path, monkeypatch):
    whole = run(nlp, tmp_path / "whole", [], **{"training.batch_size": 4})
    step, calls = RerankerTrainer.step, []

    def stop(self, *args):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return step(self, *args)

    monkeypatch.setattr(RerankerTrainer, "step", stop)
    with pytest.raises(KeyboardInterrupt):
        run(nlp, tmp_path / "cut", [], every=1, **{"training.batch_size": 4})
    monkeypatch.undo()
    lines = []
    resumed = run(nlp, tmp_path / "cut", lines, resume=True, **{"training.batch_size": 4})
    assert "Resuming after step 2" in lines and resumed.to_bytes() == whole.to_bytes()


@pytest.mark.parametrize("left", [1, 2])
def test_files_of_other_settings_are_refused_before_a_fold_is_trained(
    nlp, tmp_path, monkeypatch, left
):
    run(nlp, tmp_path, [])
    (tmp_path / f"candidates-{3 - left}.bin").unlink()
    monkeypatch.setattr(Retraining, "trained", None)
    for changed, name in (
        ({"training.folds": 3}, "training.folds was 2 and is 3"),
        ({"training.fold_steps": 3}, "steps was 2 and is 3"),
        ({"training.seed": 1}, "training.seed .* was 0 and is 1"),
    ):
        with pytest.raises(ValueError, match=rf"E887.*candidates-{left}.bin.*{name}.*Remove all"):
            run(nlp, tmp_path, [], **changed)
    with pytest.raises(ValueError, match="E876.*another pipeline"):
        run(nlp, tmp_path, [], **{"training.n_candidates": 3})
    nlp.config["training"]["dropout"] = 0.3
    with pytest.raises(ValueError, match="E887.*: training.dropout was 0.1 and is 0.3"):
        run(nlp, tmp_path, [])


def test_a_linker_that_finds_other_mentions_than_its_config_says_is_refused(nlp, tmp_path):
    # The config does not know of this.
    linker = find_linker(nlp)
    settings = replace(linker.stages.reader.settings, getter=GroupSpans("sc"))
    reader = replace(linker.stages.reader, settings=settings)
    linker.stages = replace(linker.stages, reader=reader)
    docs = docs_of(nlp)
    for doc in docs:
        doc.spans["sc"] = doc.ents[:1]
    training = RerankerTraining(folds=2, fold_steps=1, n_candidates=4)
    with pytest.raises(ValueError, match="E888.*finds 12 annotated.*finds 20"):
        CrossFitting.of(nlp, training, docs, tmp_path)


def test_files_of_an_encoder_with_other_first_weights_are_refused(tiny_bert, tmp_path):
    shutil.copytree(tiny_bert, tmp_path / "encoder")
    nlp = build_tiny(tmp_path / "encoder")
    run(nlp, tmp_path, [])
    save_tiny(tmp_path / "another", "bert", seed=1)
    shutil.rmtree(tmp_path / "encoder")
    (tmp_path / "another").rename(tmp_path / "encoder")
    with pytest.raises(ValueError, match="E887.*the first weights was"):
        run(nlp, tmp_path, [])


def test_documents_of_a_fold_without_a_batch_are_refused_before_training(nlp, tmp_path):
    batcher = {"@batchers": "spacy-arbo-el.batch_by_concept.v1", "n_concepts": 8, "n_mentions": 1}
    nlp.config["training"]["batcher"] = batcher
    with pytest.raises(ValueError, match="E889.*6 documents"):
        run(nlp, tmp_path, [])
