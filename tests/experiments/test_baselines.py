"""Baselines of experiments against slow procedures written from their formulas."""

import math
import re
from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.util import import_file

from spacy_arbo_el.evaluation.report import MOST_CANDIDATES, seen_by
from spacy_arbo_el.kb.entity import Entity

from ..linker.conftest import build
from ..linker.world import DEV, annotated, examples
from ..scores import compare_inference

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
baselines = import_file("baselines", EXPERIMENTS / "baselines.py")

TEXT = st.text("abB c-1é", min_size=1, max_size=6).filter(str.strip)
NAMES = st.lists(TEXT, min_size=1, max_size=3)
QUERIES = st.lists(TEXT, min_size=1, max_size=4)


@pytest.fixture(scope="module")
def shared_nlp():
    """An untrained pipeline over the small world. Don't change it."""
    return build()


def items(groups):
    """Entities with these names, at every second position."""
    return [(2 * i, Entity(f"e{i}", names[0], aliases=names[1:])) for i, names in enumerate(groups)]


def check(found, expected):
    """found: A TopK. expected: For each query, the score of each position."""
    assert len(found) == len(expected)
    for ids, scores, of in zip(found.ids.tolist(), found.scores.tolist(), expected):
        kept = [(position, score) for position, score in zip(ids, scores) if position >= 0]
        best = sorted((score for score in of.values() if score > 0), reverse=True)[:MOST_CANDIDATES]
        assert [score for _, score in kept] == pytest.approx(best, abs=1e-5)
        for position, score in kept:
            assert score == pytest.approx(of[position], abs=1e-5)
        assert len({position for position, _ in kept}) == len(kept)
        for (p, a), (q, b) in zip(kept, kept[1:]):
            assert a > b or (a == b and p < q), "equal scores by position"


def character_ngrams(text):
    text = re.sub(r"\s\s+", " ", text.lower())
    return Counter([*text, *(text[i : i + 2] for i in range(len(text) - 1))])


def tfidf(names, query):
    """The cosine similarity of a text to each name, as BioCoM's baseline has it."""
    documents = [character_ngrams(name) for name in names]
    frequency = Counter(gram for document in documents for gram in document)

    def vector(counts):
        weights = {
            gram: count * (math.log((1 + len(names)) / (1 + frequency[gram])) + 1)
            for gram, count in counts.items()
            if gram in frequency
        }
        length = math.sqrt(sum(weight**2 for weight in weights.values()))
        return {gram: weight / length for gram, weight in weights.items()}

    asked = vector(character_ngrams(query))
    return [
        sum(weight * asked.get(gram, 0.0) for gram, weight in vector(document).items())
        for document in documents
    ]


@given(st.lists(NAMES, min_size=1, max_size=5), QUERIES)
def test_tfidf_is_the_cosine_to_the_most_similar_name(groups, queries):
    entities = items(groups)
    names = [(position, name) for position, entity in entities for name in entity.names]
    expected = []
    for query in queries:
        best = defaultdict(float)
        for (position, _), score in zip(names, tfidf([name for _, name in names], query)):
            best[position] = max(best[position], score)
        expected.append(best)
    check(baselines.NameTfidf.build(entities)(queries), expected)


def test_tfidf_in_blocks_is_tfidf_at_once(monkeypatch):
    rng = np.random.default_rng(0)
    groups = [["".join(rng.choice(list("abcdef "), 8))] for _ in range(300)]
    queries = ["".join(rng.choice(list("abcdef "), 5)) for _ in range(40)]
    at_once = baselines.NameTfidf.build(items(groups))(queries)
    monkeypatch.setattr(baselines, "BLOCK", 700)
    in_blocks = baselines.NameTfidf.build(items(groups))(queries)
    assert at_once.width == MOST_CANDIDATES
    assert np.array_equal(at_once.ids, in_blocks.ids)


entries = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 150), st.integers(0, 5)), max_size=8)


@given(entries, st.integers(1, 3))
def test_best_of_rows_sorts_by_score_and_id(some, repeat):
    unique = list({(row, id_): (row, id_, score) for row, id_, score in some * repeat}.values())
    unique += [(3, 1000 + i, 2.0) for i in range(MOST_CANDIDATES)]
    rows, ids, scores = (np.array(column) for column in zip(*unique))
    found = baselines.best_of_rows(rows, ids, scores, 4)
    for row in range(4):
        expected = sorted((-score, id_) for r, id_, score in unique if r == row)[:MOST_CANDIDATES]
        valid = found.valid[row]
        pairs = list(zip((-found.scores[row][valid]).tolist(), found.ids[row][valid].tolist()))
        assert pairs == [(float(score), id_) for score, id_ in expected]


@pytest.mark.parametrize("entities", [[], [Entity("Q1", meta={"unnamed": True})]])
def test_entities_without_names_are_no_candidates(entities):
    rank = baselines.NameTfidf.build(list(enumerate(entities)))
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


def test_recall_at_100_of_a_pipeline_needs_100_candidates():
    nlp = build()
    data = examples(nlp, DEV)
    assert compare_inference(nlp, data)["as configured"]["arbo_recall_at_100"] is None
    nlp = build(retriever={"n_candidates": 100})
    assert compare_inference(nlp, data)["as configured"]["arbo_recall_at_100"] == 1.0


def test_mentions_without_candidates_are_nil(shared_nlp):
    scores = scores_of(shared_nlp, examples(shared_nlp, ["They saw [7777|NIL] there."]))
    assert (scores["arbo_nil_p"], scores["arbo_nil_r"], scores["arbo_acc"]) == (1.0, 1.0, 1.0)


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
