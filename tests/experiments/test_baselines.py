"""Baselines of experiments against slow procedures written from their formulas."""

import math
import re
from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path

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
