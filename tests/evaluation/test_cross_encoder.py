"""Rows with and without a cross-encoder, and its accuracy on candidates of oracles."""

import numpy as np
import pytest
from typer.testing import CliRunner

from spacy_arbo_el.cli import arbo_cli
from spacy_arbo_el.corpora.convert import write_docbin
from spacy_arbo_el.evaluation.cross_encoder import (
    OracleCandidates,
    _each_once,
    oracle_scores,
    rows_of_cross_encoder,
)
from spacy_arbo_el.evaluation.report import compare_inference
from spacy_arbo_el.linker import find_linker
from spacy_arbo_el.pipelines import save_pipeline
from spacy_arbo_el.reranking.best_evidence import log_odds_by_vectors

from ..linker.conftest import build, build_tiny
from ..linker.world import DEV, ENTITIES, TRAIN, annotated, examples
from ..reranking.test_cross_encoder import IN_RANKER, with_scorer

EXTRA = {
    "names alone, cross-encoder",
    "without the cross-encoder",
    "by the scores, not in the ranker",
    "consensus",
    "consensus, without the cross-encoder",
}


@pytest.fixture(scope="module")
def nlp(tiny_bert):
    """Don't change it."""
    return with_scorer(tiny_bert, section=IN_RANKER, weight=0.5)


def docs_of(nlp, texts=DEV):
    return [annotated(nlp, text) for text in texts]


def test_a_linker_with_a_cross_encoder_has_rows_without_it(nlp):
    assert rows_of_cross_encoder(find_linker(build()).stages) == {}
    data = examples(nlp, [*DEV, *TRAIN])
    rows = compare_inference(nlp, data, folds=2)
    assert set(rows) == {"names alone", "names + exemplars", "as configured", *EXTRA}
    plain = build_tiny(model_of(nlp), reranker=IN_RANKER["ranker"])
    expected = compare_inference(plain, examples(plain, [*DEV, *TRAIN]), folds=2)
    assert rows["without the cross-encoder"] == expected["as configured"]
    assert rows["names alone"] == expected["names alone"]


def model_of(nlp):
    return find_linker(nlp).model.get_ref("mention").attrs["name"]


def test_oracles_put_the_gold_entity_among_the_candidates(nlp):
    linker, docs = find_linker(nlp), docs_of(nlp)
    own = OracleCandidates.retrieve(linker, docs, 2)
    assert not own.retrieved.all()
    given = own.with_gold()
    assert given.table.correct.any(axis=1).all()
    assert (given.table.candidates[own.retrieved] == own.table.candidates[own.retrieved]).all()
    other = OracleCandidates.retrieve(linker, docs, 3)
    both = own.united([other.within(linker.kb, linker.kb)])
    for row, candidates in enumerate(both.table.candidates.tolist()):
        kept = [c for c in candidates if c >= 0]
        expected = {*own.table.candidates[row].tolist(), *other.table.candidates[row].tolist()}
        gold = set(own.table.gold[row].tolist()) - {-1}
        assert len(kept) == len(set(kept)) and set(kept) == expected | gold
    with pytest.raises(ValueError, match="E880"):
        own.united([OracleCandidates.retrieve(linker, docs[1:], 2)])


def test_the_candidates_of_oracles_have_the_log_odds_of_linking(nlp):
    linker, docs = find_linker(nlp), docs_of(nlp)
    stages, reranker = linker.stages, linker.reranker
    own = OracleCandidates.retrieve(linker, docs, 2)
    batch = stages.encode(stages.reader.read_docs(docs))
    with stages.datastore.reading():
        neighbours = stages.retrieve(batch)
    known = log_odds_by_vectors(neighbours, reranker.vector_curves)
    united = own.united([OracleCandidates.retrieve(linker, docs, 3)])
    for table in (own.table, own.with_gold().table, united.table):
        valid = table.candidates >= 0
        expected = known.scores_or_least(table.candidates)
        np.testing.assert_allclose(table.scores[valid], expected[valid], rtol=1e-4)
    moved = own.within(linker.kb, linker.kb)
    assert (moved.by_vectors.ids == own.by_vectors.ids).all()
    assert (moved.table.gold == own.table.gold).all()


def test_scores_count_mentions_without_an_entity_as_misses(nlp):
    linker = find_linker(nlp)
    docs = [*docs_of(nlp), annotated(nlp, "Nobody saw the [zorb|unknown] again.", label="OTHER")]
    candidates = OracleCandidates.retrieve(linker, docs, 8).with_gold()
    scores = oracle_scores(linker, candidates, docs)
    assert scores.mentions == len(DEV) + 1 and len(candidates.batch) == len(DEV)
    hits = round(scores.unnormalized * scores.mentions)
    assert scores.macro == pytest.approx(hits / len(DEV) / 2)
    # All eight entities are candidates of each mention.
    assert len(ENTITIES) == 8 and scores.normalized == pytest.approx(hits / len(DEV))
    with pytest.raises(ValueError, match="E881"):
        oracle_scores(find_linker(build()), candidates, docs)


def test_repeated_candidates_are_left_out():
    table = np.array([[3, 1, 3, -1, 1, 2], [0, 0, 0, 0, 0, 0], [-1, -1, -1, -1, -1, -1]])
    assert _each_once(table).tolist() == [[3, 1, 2, -1], [0, -1, -1, -1], [-1, -1, -1, -1]]


@pytest.mark.slow
def test_the_commands_print_oracles(nlp, tmp_path):
    save_pipeline(nlp, tmp_path / "model")
    write_docbin(docs_of(nlp), tmp_path / "dev.spacy")
    model, dev = str(tmp_path / "model"), str(tmp_path / "dev.spacy")
    command = ["evaluate", model, dev, "--oracle"]
    result = CliRunner().invoke(arbo_cli, [*command, "self"])
    assert result.exit_code == 0 and "unnormalized" in result.output
    result = CliRunner().invoke(arbo_cli, [*command, "union", "--with", model])
    assert result.exit_code == 0 and "union" in result.output
    for wrong in (["other"], ["union"], ["self", "--with", model]):
        result = CliRunner().invoke(arbo_cli, [*command, *wrong])
        assert result.exit_code == 1 and "E882" in result.output
