"""Baselines of experiments against slow procedures written from their formulas."""

import math
from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.util import import_file

from spacy_arbo_el.kb.entity import Entity

from ..evaluation.test_baselines import QUERIES, TEXT, check, items
from ..linker.conftest import build
from ..linker.world import annotated

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
baselines = import_file("baselines", EXPERIMENTS / "baselines.py")


@given(
    st.lists(st.tuples(TEXT, st.lists(st.integers(-1, 4), max_size=2)), max_size=12),
    QUERIES,
    st.booleans(),
)
def test_alias_table_has_shares_of_mentions(mentions, queries, parts):
    counts = defaultdict(Counter)
    for text, positions in mentions:
        tokens = text.casefold().split()
        aliases = {" ".join(tokens)}
        if parts:
            aliases |= set(tokens) | {f"{a} {b}" for a, b in zip(tokens, tokens[1:])}
        for alias in aliases:
            counts[alias].update(set(positions) - {-1})
    expected = []
    for query in queries:
        of = counts[" ".join(query.casefold().split())]
        expected.append({p: float(Fraction(c, sum(of.values()))) for p, c in of.items()})
    check(baselines.alias_table(mentions, parts)(queries), expected)


def bm25(titles, query, k1=1.5, b=0.75):
    """The scores of titles (lists of words), with Lucene's idf."""
    mean = sum(map(len, titles)) / len(titles)
    scores = []
    for title in titles:
        score = 0.0
        for word in query:
            having = sum(word in other for other in titles)
            idf = math.log(1 + (len(titles) - having + 0.5) / (having + 0.5))
            count = title.count(word)
            score += idf * count / (count + k1 * (1 - b + b * len(title) / mean))
        scores.append(score)
    return scores


WORDS = st.lists(st.sampled_from(["a", "B", "b", "cc", "d1", "é"]), min_size=1, max_size=5)


@given(st.lists(WORDS, min_size=1, max_size=6), st.lists(WORDS, min_size=1, max_size=4))
def test_bm25_is_the_formula_over_words_of_titles(titles, queries):
    rank = baselines.bm25(items([[" ".join(title), "alias"] for title in titles]))
    lowered = [[word.lower() for word in title] for title in titles]
    expected = []
    for query in queries:
        scores = bm25(lowered, [word.lower() for word in query])
        expected.append({2 * i: score for i, score in enumerate(scores)})
    check(rank([", ".join(query) for query in queries]), expected)


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


@pytest.mark.parametrize("text, words", [("A  b", "a b"), ("Straße ", "strasse")])
def test_surface_forms_are_folded(text, words):
    assert baselines.folded(text) == words
