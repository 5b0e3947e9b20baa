"""Strings compared by character n-grams, against scikit-learn pair by pair."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from spacy_arbo_el.retrieval.lexical import character_ngrams, numbers_of, words_of

words = st.text(alphabet="abcXY 67", max_size=8)
groups = st.lists(st.lists(words, max_size=3), min_size=1, max_size=5)


@settings(max_examples=150, deadline=None)
@given(groups, st.data())
def test_the_most_similar_string_of_each_entity(names, data):
    forms = [data.draw(st.lists(words, max_size=2)) for _ in names]
    mentions = data.draw(st.lists(words, min_size=1, max_size=4))
    three = st.lists(st.integers(-1, len(names) - 1), min_size=3, max_size=3)
    entities = np.array([data.draw(three) for _ in mentions])
    lexicon = character_ngrams()(names, forms)
    found = lexicon.likeness(mentions, entities)

    distinct = [list(dict.fromkeys(s.lower() for s in g)) for g in [*names, *forms]]
    corpus = [s for g in distinct for s in g]
    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 3), sublinear_tf=True)
    vectorizer.fit(corpus if any(s.strip() for s in corpus) else ["?"])

    def alike(a, b):
        pair = vectorizer.transform([a.lower(), b.lower()])
        return pair[0].multiply(pair[1]).sum()

    def common(a, b):
        a, b = set(words_of(a)), set(words_of(b))
        return len(a & b) / max(len(a | b), 1)

    def same_numbers(a, b):
        return float(numbers_of(a) == numbers_of(b))

    for likeness, measure in zip(found, (alike, common, same_numbers)):
        for similarity, strings in zip(likeness, (names, forms)):
            assert similarity.shape == entities.shape
            for i, mention in enumerate(mentions):
                for j, entity in enumerate(entities[i]):
                    best = max((measure(mention, s) for s in strings[entity]), default=0.0)
                    best = best if entity >= 0 else 0.0
                    assert similarity[i, j] == pytest.approx(best, abs=1e-5)


def test_letters_tell_apart_what_differs_by_one():
    lexicon = character_ngrams()([["C6 deficiency"], ["C7 deficiency"]], [[], ["C7-deficient"]])
    names, forms = lexicon.likeness(["C7-deficient"], np.array([[0, 1]])).letters
    assert names[0, 1] > names[0, 0] and forms[0].tolist() == pytest.approx([0, 1])


def test_words_and_numbers():
    assert words_of("Factor V, type IIa; X-linked 2q") == [
        "factor", "5", "type", "iia", "x", "linked", "2", "q"
    ]  # fmt: skip
    assert numbers_of("MEN 2, type ii") == {"2"}
    lexicon = character_ngrams()(
        [["neoplasia, multiple endocrine"], ["multiple endocrine neoplasms type 1"]],
        [["MEN"], []],
    )
    found = lexicon.likeness(["multiple endocrine neoplasia 1"], np.array([[0, 1]]))
    assert found.numbers.tolist() == [[[0, 1]], [[0, 0]]]
    assert found.words[0, 0].tolist() == pytest.approx([3 / 4, 3 / 6])


def test_blocks_do_not_matter():
    names = [[f"name {i}"] for i in range(40)]
    lexicon = character_ngrams()(names, [[] for _ in names])
    mentions = [f"name {i % 40}" for i in range(600)]
    entities = np.array([[i % 40] for i in range(600)])
    assert lexicon.likeness(mentions, entities).letters[0] == pytest.approx(np.ones((600, 1)))


def test_no_strings_at_all():
    lexicon = character_ngrams()([[]], [[]])
    assert lexicon.likeness(["a"], np.array([[0, -1]])).words[0].tolist() == [[0, 0]]
