"""Baselines against slow procedures written from their formulas, and their rows of scores."""

import importlib.util
import math
import re
from collections import Counter, defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.evaluation import baselines
from spacy_arbo_el.evaluation.baselines import (
    AliasTable,
    NameTfidf,
    TitleBm25,
    baseline_scores,
    best_of_rows,
)
from spacy_arbo_el.evaluation.report import MOST_CANDIDATES, compare_inference
from spacy_arbo_el.kb.entity import Entity

from ..linker.conftest import build
from ..linker.world import DEV, ENTITIES, TRAIN, annotated, examples

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
    check(NameTfidf.build(entities)(queries), expected)


def test_tfidf_in_blocks_is_tfidf_at_once(monkeypatch):
    rng = np.random.default_rng(0)
    groups = [["".join(rng.choice(list("abcdef "), 8))] for _ in range(300)]
    queries = ["".join(rng.choice(list("abcdef "), 5)) for _ in range(40)]
    at_once = NameTfidf.build(items(groups))(queries)
    monkeypatch.setattr(baselines, "BLOCK", 700)
    in_blocks = NameTfidf.build(items(groups))(queries)
    assert at_once.width == MOST_CANDIDATES
    assert np.array_equal(at_once.ids, in_blocks.ids)


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
    texts = [text for text, _ in mentions]
    table = AliasTable.build(texts, [np.array(p, dtype=np.int64) for _, p in mentions], parts)
    check(table(queries), expected)


def test_parts_of_training_mentions_are_aliases():
    positions = [np.array([0]), np.array([1]), np.array([0])]
    mentions = ["Barack Obama", "Michelle Obama", "Barack Hussein Obama"]
    assert AliasTable.build(mentions, positions)(["obama"]).ids[0, 0] == -1
    found = AliasTable.build(mentions, positions, parts=True)(["Obama", "hussein  obama", "x"])
    assert found.ids[:, :3].tolist() == [[0, 1, -1], [0, -1, -1], [-1, -1, -1]]
    assert found.scores[0, :2] == pytest.approx([2 / 3, 1 / 3])


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
    pytest.importorskip("bm25s")
    found = TitleBm25.build(items([[" ".join(title), "alias"] for title in titles]))
    lowered = [[word.lower() for word in title] for title in titles]
    expected = []
    for query in queries:
        scores = bm25(lowered, [word.lower() for word in query])
        expected.append({2 * i: score for i, score in enumerate(scores)})
    check(found([", ".join(query) for query in queries]), expected)


entries = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 150), st.integers(0, 5)), max_size=8)


@given(entries, st.integers(1, 3))
def test_best_of_rows_sorts_by_score_and_id(some, repeat):
    unique = list({(row, id_): (row, id_, score) for row, id_, score in some * repeat}.values())
    unique += [(3, 1000 + i, 2.0) for i in range(MOST_CANDIDATES)]
    rows, ids, scores = (np.array(column) for column in zip(*unique))
    found = best_of_rows(rows, ids, scores, 4)
    for row in range(4):
        expected = sorted((-score, id_) for r, id_, score in unique if r == row)[:MOST_CANDIDATES]
        valid = found.valid[row]
        pairs = list(zip((-found.scores[row][valid]).tolist(), found.ids[row][valid].tolist()))
        assert pairs == [(float(score), id_) for score, id_ in expected]


@pytest.mark.parametrize("entities", [[], [Entity("Q1", meta={"unnamed": True})]])
def test_entities_without_names_are_no_candidates(entities):
    numbered = list(enumerate(entities))
    rankers = [NameTfidf.build(numbered), AliasTable.build([], [])]
    if baselines.has_bm25():
        rankers.append(TitleBm25.build(numbered))
    for ranker in rankers:
        assert not ranker(["Q1", "q"]).valid.any()
        assert not len(ranker([]))


def test_names_without_words_have_no_bm25():
    pytest.importorskip("bm25s")
    assert TitleBm25.build(items([["!!"], ["a!"]]))(["a ?", "!!"]).ids[:, 0].tolist() == [2, -1]


def right(nlp, predict):
    """The share of mentions of DEV for which a function from text to ids gives the gold id."""
    spans = [span for text in DEV for span in annotated(nlp, text).ents]
    return sum(span.kb_id_ in predict(span.text)[:1] for span in spans) / len(spans)


def test_rows_of_a_pipeline(shared_nlp):
    linker = shared_nlp.get_pipe("arbo_linker")
    rows = baseline_scores(linker, examples(shared_nlp, DEV))
    tfidf = ["TF-IDF", "TF-IDF + training mentions"]
    assert list(rows)[:4] == [*tfidf, "alias table", "alias table + parts"]
    trained = [span for text in TRAIN for span in annotated(shared_nlp, text).ents]

    def most_frequent(text):
        counts = Counter(s.kb_id_ for s in trained if s.text.casefold() == text.casefold())
        order = {entity.id: i for i, entity in enumerate(ENTITIES)}
        return sorted(counts, key=lambda kb_id: (-counts[kb_id], order[kb_id]))

    assert rows["alias table"]["arbo_acc"] == right(shared_nlp, most_frequent)
    pipeline = next(iter(compare_inference(shared_nlp, examples(shared_nlp, DEV)).values()))
    assert set(pipeline) == set(rows["TF-IDF"]), "the same keys, for one table"
    assert pipeline["arbo_mentions"] == rows["TF-IDF"]["arbo_mentions"] == len(DEV)
    assert rows["TF-IDF"]["arbo_recall_at_8"] == rows["TF-IDF"]["arbo_recall_at_100"] == 1.0
    assert rows["TF-IDF"]["arbo_acc_unseen"] is None


def test_recall_at_100_of_a_pipeline_needs_100_candidates():
    nlp = build()
    data = examples(nlp, DEV)
    assert compare_inference(nlp, data)["as configured"]["arbo_recall_at_100"] is None
    nlp = build(retriever={"n_candidates": 100})
    assert compare_inference(nlp, data)["as configured"]["arbo_recall_at_100"] == 1.0


def test_training_mentions_of_documents_take_the_place_of_exemplars(shared_nlp):
    linker = shared_nlp.get_pipe("arbo_linker")
    data = examples(shared_nlp, DEV)
    train = [annotated(shared_nlp, "Boats on the [Amazon|river] and [nothing|NIL].")]
    rows = baseline_scores(linker, data, train)
    river, shop = data[2:3], data[3:4]
    assert baseline_scores(linker, river, train)["alias table"]["arbo_acc_seen"] == 1.0
    assert baseline_scores(linker, shop, train)["alias table"]["arbo_acc_unseen"] == 0.0
    assert rows["alias table"]["arbo_acc"] == 1 / len(DEV)
    assert "alias table" not in baseline_scores(linker, data, [])


def test_training_mentions_are_further_names_of_tfidf(shared_nlp):
    linker = shared_nlp.get_pipe("arbo_linker")
    data = examples(shared_nlp, ["He read of the [007|river] there."])
    train = [annotated(shared_nlp, "Boats on the [007|river].")]
    rows = baseline_scores(linker, data, train)
    assert rows["TF-IDF + training mentions"]["arbo_acc"] == 1.0
    assert rows["TF-IDF"]["arbo_acc"] == 0.0


def test_mentions_without_candidates_are_nil(shared_nlp):
    linker = shared_nlp.get_pipe("arbo_linker")
    data = examples(shared_nlp, ["They saw [Kathmandu|NIL] and the [Amazon|river]."])
    scores = baseline_scores(linker, data)["alias table"]
    assert (scores["arbo_nil_p"], scores["arbo_nil_r"], scores["arbo_acc"]) == (1.0, 1.0, 1.0)


def test_bm25_is_left_out_where_it_is_not_installed(shared_nlp, monkeypatch):
    monkeypatch.setattr(baselines, "find_spec", lambda name: None)
    linker = shared_nlp.get_pipe("arbo_linker")
    assert "BM25" not in baseline_scores(linker, examples(shared_nlp, DEV))
    with pytest.raises(ImportError, match=r"E830.*spacy_arbo_el\[baselines\]"):
        TitleBm25.build([])


def test_bm25_is_installed_for_these_tests():
    assert importlib.util.find_spec("bm25s"), "part of the extra 'dev'"
