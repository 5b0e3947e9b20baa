"""The candidates that a cross-encoder learns from: without exemplars of the mention's document."""

import numpy as np
import pytest

from spacy_arbo_el import find_linker
from spacy_arbo_el.contrib.papers.cross_encoder.candidates import (
    ExemplarDocuments,
    TrainingCandidates,
    neighbours_for_training,
)
from spacy_arbo_el.contrib.papers.cross_encoder.reranker import labelled_mentions

from ...linker.conftest import build_tiny
from ...linker.world import docs_of


@pytest.fixture(scope="module")
def nlp(tiny_bert):
    """Don't change it."""
    return build_tiny(tiny_bert)


def test_neighbours_have_no_exemplars_of_their_document(nlp, linker):
    stages, store = linker.stages, linker.exemplars
    batch = stages.encode(stages.reader.read_docs(docs_of(nlp)))
    documents = ExemplarDocuments.of(store)
    neighbours = neighbours_for_training(stages, batch, documents)
    count = stages.inference.n_exemplars
    vectors = batch.encoded @ stages.datastore.settings.similarity.prepare(store.vectors).T
    for row, record in enumerate(batch.records):
        nearest = neighbours.exemplars.ids[row].tolist()
        # By brute force: the nearest of other documents, with their entities.
        others = [i for i, r in enumerate(store.records) if r.key[0] != record.key[0]]
        expected = sorted(others, key=lambda i: -vectors[row, i])[:count]
        np.testing.assert_allclose(
            neighbours.exemplars.scores[row], vectors[row, expected], atol=1e-5
        )
        assert set(nearest) <= set(others)
        owners = [store.records[number].kb_ids[0] for number in nearest]
        assert linker.kb.entities.ids_of(neighbours.exemplar_entities[row]).tolist() == owners


def table_of(gold, gold_scores):
    """Three candidates of four mentions, of which the third has one."""
    return TrainingCandidates(
        np.array([[5, 6, 7], [5, 6, 7], [5, -1, -1], [5, 6, 7]]),
        np.array([[3, 2, 1], [3, 2, 1], [3, -np.inf, -np.inf], [3, 2, 1]], dtype=np.float32),
        np.array(gold),
        np.array(gold_scores, dtype=np.float32),
    )


def test_a_missing_gold_entity_takes_the_place_of_the_last_candidate():
    scores = [[2, 0], [-4, -5], [-6, 0], [0, 0]]
    table = table_of([[6, -1], [9, 8], [3, -1], [-1, -1]], scores)
    rows, ready = table.with_gold()
    assert rows.tolist() == [0, 1, 2], "the last has no gold entity in the knowledge base"
    assert ready.candidates.tolist() == [[5, 6, 7], [5, 6, 9], [5, 3, -1]]
    assert ready.scores.tolist() == [[3, 2, 1], [3, 2, -4], [3, -6, -np.inf]]
    assert ready.correct.sum(axis=1).tolist() == [1, 1, 1]
    assert table.candidates[1].tolist() == [5, 6, 7], "the table itself stays"


def test_the_probability_of_gold_entities_is_that_of_a_softmax():
    table = table_of([[6, 7], [9, -1], [5, -1], [5, -1]], np.zeros((4, 2)))
    odds = np.exp([1.5, 1.0, 0.5])
    expected = [odds[1:].sum() / odds.sum(), 0.0, 1.0, odds[0] / odds.sum()]
    np.testing.assert_allclose(table.gold_probability(0.5), expected)


def test_a_mention_without_entities_has_no_candidates(tiny_bert):
    nlp = build_tiny(tiny_bert, [])
    table = labelled_mentions(find_linker(nlp).stages, docs_of(nlp), 4).table
    assert (table.candidates == -1).all()
    assert table.with_gold()[0].tolist() == []
