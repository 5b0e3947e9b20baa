"""Candidates of oracles, and the accuracy of a cross-encoder on them."""

from pathlib import Path

import pytest
from spacy.util import import_file

from spacy_arbo_el.linker import find_linker

from ..contrib.papers.test_cross_encoder import IN_RANKER, with_scorer
from ..linker.world import DEV, ENTITIES, annotated, docs_of

oracles = import_file("oracles", Path(__file__).parents[2] / "experiments" / "oracles.py")


@pytest.fixture(scope="module")
def nlp(tiny_bert):
    """Don't change it."""
    return with_scorer(tiny_bert, section=IN_RANKER, weight=0.5)


def test_oracles_put_the_gold_entity_among_the_candidates(nlp):
    linker, docs = find_linker(nlp), docs_of(nlp, DEV)
    own, other = (oracles.OracleCandidates.retrieve(linker, docs, count) for count in (2, 3))
    assert not own.retrieved.all()
    given = own.with_gold()
    assert given.table.correct.any(axis=1).all()
    assert (given.table.candidates[own.retrieved] == own.table.candidates[own.retrieved]).all()
    both = own.united([other.within(linker.kb, linker.kb)])
    for row, candidates in enumerate(both.table.candidates.tolist()):
        kept = [c for c in candidates if c >= 0]
        expected = {*own.table.candidates[row].tolist(), *other.table.candidates[row].tolist()}
        gold = set(own.table.gold[row].tolist()) - {-1}
        assert len(kept) == len(set(kept)) and set(kept) == expected | gold


def test_scores_count_mentions_without_an_entity_as_misses(nlp):
    linker = find_linker(nlp)
    unknown = annotated(nlp, "Nobody saw the [zorb|unknown] again.", label="OTHER")
    docs = [*docs_of(nlp, DEV), unknown]
    candidates = oracles.OracleCandidates.retrieve(linker, docs, len(ENTITIES)).with_gold()
    scores = oracles.oracle_scores(linker, candidates, docs)
    assert scores.mentions == len(DEV) + 1 and len(candidates.batch) == len(DEV)
    hits = round(scores.unnormalized * scores.mentions)
    assert scores.macro == pytest.approx(hits / len(DEV) / 2)
    assert scores.normalized == pytest.approx(hits / len(DEV)), "all entities are candidates"
