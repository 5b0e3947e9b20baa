"""Baselines of experiments on examples that are worked out by their formulas."""

import math
from pathlib import Path

import pytest
from spacy.util import import_file

from spacy_arbo_el.evaluation.report import seen_by
from spacy_arbo_el.kb.entity import Entity

from ..linker.conftest import build
from ..linker.world import DEV, annotated, examples
from ..scores import compare_inference

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
baselines = import_file("baselines", EXPERIMENTS / "baselines.py")


def entities(*groups):
    """Entities with these names, at every second position."""
    return [(2 * i, Entity(f"e{i}", names[0], aliases=names[1:])) for i, names in enumerate(groups)]


def check(found, *expected):
    """found: A TopK. expected: For each query, the positions and their scores, best first."""
    assert len(found) == len(expected)
    for ids, scores, row in zip(found.ids, found.scores, expected):
        assert ids[ids >= 0].tolist() == [position for position, _ in row]
        assert scores[ids >= 0].tolist() == pytest.approx([score for _, score in row], abs=1e-5)


def test_tfidf_is_the_cosine_to_the_most_similar_name():
    """BioCoM's baseline. Of five names 2 have "a", 4 have "b" and 2 have "ab"."""
    rank = baselines.NameTfidf.build(entities(["ab", "b"], ["B"], ["c"], ["ab"]))
    a, b = math.log(6 / 3) + 1, math.log(6 / 5) + 1
    cosine = b / math.sqrt(a**2 + b**2 + a**2)
    both = [(0, 1.0), (2, 1.0), (6, cosine)]
    check(rank(["b", "z", "b", "AB"]), both, [], both, [(0, 1.0), (6, 1.0), (2, cosine)])


def test_entities_without_names_are_no_candidates():
    rank = baselines.NameTfidf.build([(0, Entity("Q1", meta={"unnamed": True}))])
    assert not rank(["Q1", "q"]).valid.any() and not len(rank([]))


def scores_of(nlp, data):
    linker = nlp.get_pipe("arbo_linker")
    rank = baselines.NameTfidf.build(linker.kb.entities.items())
    return baselines.baseline_scores(linker, data, rank, seen_by(linker))


def test_row_of_a_pipeline(shared_nlp):
    data = examples(shared_nlp, DEV)
    row = scores_of(shared_nlp, data)
    pipeline = next(iter(compare_inference(shared_nlp, data).values()))
    assert set(pipeline) == set(row), "the same keys, for one table"
    assert pipeline["arbo_mentions"] == row["arbo_mentions"] == len(DEV)
    assert row["arbo_recall_at_8"] == row["arbo_recall_at_100"] == 1.0
    assert row["arbo_acc_unseen"] is None and row["arbo_balanced_acc"] == row["arbo_acc"]


def test_alias_table_has_shares_of_mentions():
    mentions = [("Big Cat", [2]), ("big\tcat", [0, 2]), ("nil", [-1]), ("a big cat", [4])]
    whole = baselines.alias_table(mentions)
    check(whole(["BIG  cat", "cat", "nil"]), [(2, 2 / 3), (0, 1 / 3)], [], [])
    parts = baselines.alias_table(mentions, parts=True)
    shares = [(2, 0.5), (0, 0.25), (4, 0.25)]
    check(parts(["big cat", "cat", "a cat"]), shares, shares, [])


def test_bm25_is_the_formula_over_words_of_titles():
    """Lucene's idf; titles of two words and of one, whose mean is 1.5, with k1 = 1.5, b = 0.75."""
    rank = baselines.bm25(entities(["Cold flu", "alias"], ["cold"], ["flu flu", "x"], ["é", "y"]))
    mean = 6 / 4
    long = 1.5 * (0.25 + 0.75 * 2 / mean)
    short = 1.5 * (0.25 + 0.75 * 1 / mean)
    of_two = math.log(1 + 2.5 / 2.5)
    of_one = math.log(1 + 3.5 / 1.5)
    cold = [(2, of_two / (1 + short)), (0, of_two / (1 + long))]
    flu = [(4, of_two * 2 / (2 + long)), (0, of_two / (1 + long))]
    check(rank(["COLD", "flu", "É!", "alias"]), cold, flu, [(6, of_one / (1 + short))], [])
    check(rank(["cold, flu"]), [(0, 2 * of_two / (1 + long)), flu[0], cold[0]])


def test_rankers_of_a_pipeline_and_of_a_corpus():
    nlp = build([Entity("river", "Amazon River"), Entity("metal", "Mercury")], train=["x"])
    linker = nlp.get_pipe("arbo_linker")
    doc = annotated(nlp, "Boats on the [007|river] and [nothing|NIL].")
    mentions = [(span.text, [span.kb_id_]) for span in doc.ents if span.kb_id_ != "NIL"]
    assert baselines.training_mentions(linker, None) == []
    found = {n: rank(["007"]).ids[0, 0] for n, rank in baselines.rankers(linker, mentions).items()}
    river = linker.kb.entities.position("river")
    known = {"TF-IDF + training mentions", "alias table", "alias table + parts"}
    assert {name for name, position in found.items() if position == river} == known
