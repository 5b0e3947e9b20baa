"""Similarity of strings by n-grams, words and numbers, against comparing pair by pair."""

import os
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from spacy_arbo_el.base.arrays import int_array, mix
from spacy_arbo_el.names import string_features
from spacy_arbo_el.names.comparison import (
    EXTRA,
    MISSING,
    NGRAMS,
    NUMBERS,
    OPPOSED,
    WORDS,
    is_one_edit,
)
from spacy_arbo_el.names.string_features import (
    FACTOR,
    INTERCHANGED,
    N_NGRAMS,
    FeatureReader,
    StringTable,
    count_ngrams,
    ngram_weights,
)
from spacy_arbo_el.names.words import NEGATING, numbers_among, words_of

from ..cases import cases

words = st.text(alphabet="abcXY 67", max_size=8) | st.sampled_from(
    [
        "non abc",
        "nonabc",
        "abc XY",
        "abcXY",
        "hyperbola",
        "hypobola",
        "no",
        "anti",
        "abcabcab",
        "xbcabcab",
    ]
)
groups = st.lists(st.lists(words, max_size=3), min_size=1, max_size=5)


# How many entities have two words for each other.
INTERCHANGED_IN = {
    frozenset([word, other]): int(count)
    for word, other, count in map(str.split, INTERCHANGED.read_text("utf8").splitlines())
}


def table_of(groups):
    """The strings of each entity."""
    table = StringTable(FeatureReader())
    table.replace(np.arange(len(groups)), groups)
    return table


def compared(table, mentions, entities):
    """The similarity with one table, and the number of the nearest string."""
    return table.compared(table._reader.read(mentions), np.array(entities))


def ngram_number(ngram):
    """The number of an n-gram, letter by letter."""
    key = np.zeros(1, dtype=np.uint64)
    for letter in ngram:
        key = mix(key + np.array([ord(letter) + 1], dtype=np.uint64) * FACTOR)
    return int(key[0] % N_NGRAMS)


def ngram_counts(string, shortest=1, longest=3):
    """How often a string has each n-gram, by number, after scikit-learn."""
    lengths = shortest, longest
    read = CountVectorizer(analyzer="char_wb", ngram_range=lengths, lowercase=False)
    return Counter(map(ngram_number, read.build_analyzer()(string)))


def ngram_cosine(first, second):
    weights = ngram_weights()
    vectors = [
        {n: (1 + np.log(count)) * weights[n] for n, count in ngram_counts(string).items()}
        for string in (first, second)
    ]
    lengths = [np.linalg.norm(list(v.values())) for v in vectors]
    product = sum(weight * vectors[1].get(n, 0) for n, weight in vectors[0].items())
    return product / np.prod(lengths) if product else 0.0


@given(groups, st.data())
def test_the_most_similar_string_of_each_entity(names, data):
    names = [list(dict.fromkeys(group)) for group in names]
    mentions = data.draw(st.lists(words, min_size=1, max_size=4))
    three = st.lists(st.integers(-1, len(names) - 1), min_size=3, max_size=3)
    entities = np.array([data.draw(three) for _ in mentions])
    similarity, nearest = compared(table_of(names), mentions, entities)

    def common(a, b):
        a, b = set(words_of(a)), set(words_of(b))
        return len(a & b) / max(len(a | b), 1)

    def same_numbers(a, b):
        return float(numbers_among(words_of(a)) == numbers_among(words_of(b)))

    measures = {NGRAMS: ngram_cosine, WORDS: common, NUMBERS: same_numbers}
    for field, measure in measures.items():
        for i, mention in enumerate(mentions):
            for j, entity in enumerate(entities[i]):
                best = max((measure(mention, s) for s in names[entity]), default=0.0)
                best = best if entity >= 0 else 0.0
                assert similarity[field][i, j] == pytest.approx(best, abs=1e-5)
    for i, j in np.ndindex(entities.shape):
        strings = names[entities[i, j]] if entities[i, j] >= 0 else []
        fields = similarity[EXTRA : OPPOSED + 1, i, j]
        if not strings:
            assert nearest[i, j] == 0
            assert not fields.any()
            continue
        score = ngram_cosine(mentions[i], strings[nearest[i, j]])
        assert score == pytest.approx(similarity[NGRAMS, i, j], abs=1e-5)
        # Of names without a common n-gram, none is nearer than another.
        if score > 0:
            expected = differences(mentions[i], strings[nearest[i, j]])
            assert fields == pytest.approx(expected, abs=1e-5)


def shared(one, other):
    """How many letters two words have in common at their beginning."""
    return len(os.path.commonprefix([one, other]))


def differences(mention, name):
    """What ``compare_words`` gives, written for reading."""
    own, others = (list(dict.fromkeys(words_of(text))) for text in (mention, name))
    left = [word for word in own if word not in others]
    other_left = [word for word in others if word not in own]
    if "".join(left) == "".join(other_left):
        return 0.0, 0.0, 0.0
    numbers, other_numbers = numbers_among(left), numbers_among(other_left)
    letters = sum(len(word) for word in own) - sum(map(len, numbers))
    opposed = bool(numbers and other_numbers)
    other_left = [word for word in other_left if word not in other_numbers]
    extra = []
    remaining, other_remaining = 0.0, 0.0
    for word in [word for word in left if word not in numbers]:
        interchanged = [
            other for other in other_left if INTERCHANGED_IN.get(frozenset([word, other]))
        ]
        if interchanged:
            other = max(interchanged, key=lambda other: INTERCHANGED_IN[frozenset([word, other])])
            left.remove(word)
            other_left.remove(other)
            share = 1 / (1 + INTERCHANGED_IN[frozenset([word, other])])
            remaining += share * len(word)
            other_remaining += share * len(other)
    for word in left:
        if word in numbers:
            continue
        best, variant = 0.0, None
        for other in other_left:
            if (word in NEGATING) != (other in NEGATING):
                continue  # "a" does not stand for "anti"
            shorter = min(len(word), len(other))
            same = shared(word, other)
            ending = min(shared(word[::-1], other[::-1]), shorter - same)
            alike = same if shorter == 1 else (same + ending) / max(len(word), len(other))
            if alike >= 0.6 and alike > best:
                begins_alike = same >= max(3, max(len(word), len(other)) / 2)
                begins_alike |= shorter > 5 and is_one_edit(word, other)
                best, variant = alike, (other, ending >= 4 and not begins_alike and shorter > 1)
        if variant is None:
            extra.append(word)
        else:
            other_left.remove(variant[0])
            opposed = opposed or variant[1]
    opposed = opposed or bool(NEGATING & {*extra, *other_left})
    other_letters = sum(map(len, others))
    return (
        (remaining + sum(map(len, extra))) / max(letters, 1),
        (other_remaining + sum(map(len, other_left))) / max(other_letters, 1),
        float(opposed),
    )


@pytest.mark.parametrize("mention, name, opposed", cases("siblings"))
def test_what_names_of_siblings_differ_by(mention, name, opposed):
    similarity, _ = compared(table_of([[name]]), [mention], [[0]])
    fields = similarity[EXTRA : OPPOSED + 1, 0, 0]
    assert fields == pytest.approx(differences(mention, name))
    assert fields[2] == opposed


def test_words_that_names_have_for_each_other_differ_less():
    """Tumor and neoplasm are names of one entity often; acute and chronic tell entities apart."""
    names = [["bone neoplasm", "acute pain"]]
    similarity, _ = compared(table_of(names), ["bone tumor", "chronic pain"], [[0]] * 2)
    share = 1 / (1 + INTERCHANGED_IN[frozenset(["neoplasm", "tumor"])])
    assert share < 0.1
    assert similarity[EXTRA, :, 0] == pytest.approx([5 / 9 * share, 7 / 11])
    assert similarity[MISSING, :, 0] == pytest.approx([8 / 12 * share, 5 / 9])


@given(groups, st.data())
def test_a_table_that_was_edited_is_equal_to_one_that_is_built_anew(names, data):
    """Also where strings are read a few at a time."""
    names = list(names)
    mentions = data.draw(st.lists(words, min_size=1, max_size=4))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(string_features, "BLOCK", data.draw(st.integers(1, 3)))
        table = table_of(names)
        for _ in range(data.draw(st.integers(1, 4))):
            positions = sorted(data.draw(st.sets(st.integers(0, len(names) + 1), max_size=3)))
            strings = [data.draw(st.lists(words, max_size=3)) for _ in positions]
            for position, group in zip(positions, strings):
                names += [[] for _ in range(position + 1 - len(names))]
                names[position] = group
            changed = int_array(positions)
            table.forget(changed)
            assert not table.has(changed).any()
            table.replace(changed, strings)
    entities = np.tile(np.arange(-1, len(names) + 2), (len(mentions), 1))
    for left, right in zip(
        compared(table, mentions, entities), compared(table_of(names), mentions, entities)
    ):
        np.testing.assert_allclose(left, right, atol=1e-6)


texts = st.text(alphabet=st.sampled_from("abc é\n\t\u3000\U00020000🙂ab "), max_size=12)


@given(st.lists(texts, max_size=5), st.integers(1, 3), st.integers(0, 3))
@example(["a", "", "  "], 3, 0)
def test_ngrams_are_those_of_scikit_learn(strings, shortest, more):
    lengths = shortest, shortest + more
    counts = count_ngrams(strings, *lengths)
    spans = zip(counts.bounds[:-1].tolist(), counts.bounds[1:].tolist(), strict=True)
    for string, (start, end) in zip(strings, spans, strict=True):
        ngrams = counts.ngrams[start:end]
        assert (np.diff(ngrams) > 0).all()
        by_number = dict(zip(ngrams.tolist(), counts.counts[start:end].tolist()))
        assert by_number == ngram_counts(string, *lengths)
