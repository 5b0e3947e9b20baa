"""Similarity of strings by n-grams, words and numbers, against comparing pair by pair."""

import itertools
import os
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from spacy_arbo_el.names import string_features
from spacy_arbo_el.names.comparison import is_one_edit
from spacy_arbo_el.names.string_features import count_ngrams
from spacy_arbo_el.names.words import NEGATING, numbers_among, words_of
from spacy_arbo_el.ranking import entity_strings as strings_module

from ..cases import cases
from ..ranking.strings import index_of

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


@given(groups, st.data())
def test_the_most_similar_string_of_each_entity(names, data):
    surface_forms = [data.draw(st.lists(words, max_size=2)) for _ in names]
    mentions = data.draw(st.lists(words, min_size=1, max_size=4))
    three = st.lists(st.integers(-1, len(names) - 1), min_size=3, max_size=3)
    entities = np.array([data.draw(three) for _ in mentions])
    index = index_of(names, surface_forms)
    similarity = index.similarity(mentions, entities)

    distinct = [list(dict.fromkeys(s.lower() for s in g)) for g in [*names, *surface_forms]]
    corpus = [s for g in distinct for s in g]
    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 3), sublinear_tf=True)
    vectorizer.fit(corpus if any(s.strip() for s in corpus) else ["?"])

    def ngrams(a, b):
        pair = vectorizer.transform([a.lower(), b.lower()])
        return pair[0].multiply(pair[1]).sum()

    def common(a, b):
        a, b = set(words_of(a)), set(words_of(b))
        return len(a & b) / max(len(a | b), 1)

    def same_numbers(a, b):
        return float(numbers_among(words_of(a)) == numbers_among(words_of(b)))

    for view, measure in zip(similarity, (ngrams, common, same_numbers)):
        for scores, strings in zip(view, (names, surface_forms)):
            assert scores.shape == entities.shape
            for i, mention in enumerate(mentions):
                for j, entity in enumerate(entities[i]):
                    best = max((measure(mention, s) for s in strings[entity]), default=0.0)
                    best = best if entity >= 0 else 0.0
                    assert scores[i, j] == pytest.approx(best, abs=1e-5)
    nearest = index.nearest_names(mentions, entities)
    for i, j in np.ndindex(entities.shape):
        own = index.names_of(entities[i, j]) if entities[i, j] >= 0 else []
        found = [
            view[0, i, j] for view in (similarity.extra, similarity.missing, similarity.opposed)
        ]
        if not own:
            assert nearest[i, j] == 0
            assert not any(found)
            continue
        score = ngrams(mentions[i], own[nearest[i, j]])
        assert score == pytest.approx(similarity.ngrams[0, i, j], abs=1e-5)
        # Of names without a common n-gram, none is nearer than another.
        if score > 0:
            expected = differences(mentions[i], own[nearest[i, j]], standing_for_each_other(names))
            assert found == pytest.approx(expected, abs=1e-5)


def shared(one, other):
    """How many letters two words have in common at their beginning."""
    return len(os.path.commonprefix([one, other]))


def standing_for_each_other(names):
    """In the names of how many entities each two words stand for each other, by comparing all."""
    counts = Counter()
    for own in names:
        found = set()
        for one, other in itertools.permutations([frozenset(words_of(name)) for name in own], 2):
            word, another = one - other, other - one
            if one & other and len(word) == len(another) == 1:
                found.add((*word, *another))
        counts.update(found)
    numbers = {word for pair in counts for word in pair if word.isdigit()}
    return Counter({p: n for p, n in counts.items() if not (numbers | NEGATING) & {*p}})


def differences(mention, name, interchanged=None):
    """What ``compare_words`` gives, written for reading."""
    interchanged = interchanged or {}
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
        known = [other for other in other_left if interchanged.get((word, other))]
        if known:
            other = max(known, key=lambda other: interchanged[word, other])
            left.remove(word)
            other_left.remove(other)
            rest = 1 / (1 + interchanged[word, other])
            remaining += rest * len(word)
            other_remaining += rest * len(other)
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
    similarity = index_of([[name]]).similarity([mention], np.array([[0]]))
    found = [view[0, 0, 0] for view in (similarity.extra, similarity.missing, similarity.opposed)]
    assert found == pytest.approx(differences(mention, name))
    assert found[2] == opposed


def test_words_that_a_list_has_for_each_other_differ_less():
    """Tumour and neoplasm are names of one entity twice; acute and chronic tell entities apart."""
    index = index_of(
        [
            ["lung tumour", "neoplasm, lung"],
            ["skin tumour", "skin neoplasm"],
            ["acute hepatitis"],
            ["chronic hepatitis"],
            ["bone neoplasm", "acute pain"],
        ]
    )
    mentions = ["bone tumour", "chronic pain"]
    similarity = index.similarity(mentions, np.array([[4], [4]]))
    assert similarity.extra[0, :, 0] == pytest.approx([6 / 10 / 3, 7 / 11])
    assert similarity.missing[0, :, 0] == pytest.approx([8 / 12 / 3, 5 / 9])


@given(groups, st.data())
def test_an_index_that_was_edited_is_equal_to_one_that_is_built_anew(names, data):
    names = list(names)
    surface_forms = [data.draw(st.lists(words, max_size=2)) for _ in names]
    index = index_of(names, surface_forms)
    mentions = data.draw(st.lists(words, min_size=1, max_size=4))
    for _ in range(data.draw(st.integers(1, 4))):
        positions = data.draw(st.sets(st.integers(0, len(names) + 1), max_size=3))
        positions = sorted(positions)
        groups_of = [[data.draw(st.lists(words, max_size=3)) for _ in positions] for _ in range(2)]
        for position, *both in zip(positions, *groups_of):
            for kind, strings in zip((names, surface_forms), both):
                kind += [[] for _ in range(position + 1 - len(kind))]
                kind[position] = strings
        changed = np.array(positions, dtype=np.int64)
        index.replace_surface_forms(changed, groups_of[1])
        index.forget_names(changed)
        index.count_names(changed)
        some = data.draw(st.lists(st.integers(-1, len(names)), min_size=1, max_size=3))
        index.similarity(mentions[:1], np.array([some]))
    surface_forms += [[] for _ in range(len(names) - len(surface_forms))]
    names += [[] for _ in range(len(surface_forms) - len(names))]
    anew = index_of(names, surface_forms)
    entities = np.tile(np.arange(-1, len(names) + 2), (len(mentions), 1))
    for mention in mentions:
        assert index.with_surface_form(mention) == anew.with_surface_form(mention)
    for left, right in zip(
        index.similarity(mentions, entities), anew.similarity(mentions, entities)
    ):
        np.testing.assert_allclose(left, right, atol=1e-6)


def test_replacing_again_and_again_leaves_garbage_that_is_measured():
    names, every = [["a"], ["b"]], np.array([[0, 1]])
    index = index_of(names)
    for number in range(6):
        index.similarity(["a"], every)
        names[0] = [f"a {number}"]
        index.forget_names(np.array([0]))
        index.count_names(np.array([0]))
    index.similarity(["a"], every)
    assert index.garbage == pytest.approx(6 / 8)


@given(groups, st.data())
def test_names_need_not_be_counted_nor_kept(names, data):
    """Weights come from what is counted, in whatever order the names are read."""
    counted = np.array(sorted(data.draw(st.sets(st.integers(0, len(names) - 1)))), dtype=np.int64)
    mentions = data.draw(st.lists(words, min_size=1, max_size=3))
    everything = np.tile(np.arange(-1, len(names)), (len(mentions), 1))

    def similarities(order, limit):
        index = index_of([])
        index._read_names = lambda entities: [names[e] for e in entities.tolist()]
        index.count_names(counted)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(strings_module, "MAX_NAMES", limit)
            for entity in order:
                index.similarity(mentions, np.full((len(mentions), 1), entity))
            return np.stack(index.similarity(mentions, everything))

    order = data.draw(st.permutations(range(len(names))))
    together = similarities([], 100)
    np.testing.assert_allclose(similarities(order, 100), together, atol=1e-6)
    np.testing.assert_allclose(similarities(order, 2), together, atol=1e-6)


def test_only_the_names_of_candidates_are_read():
    read = []
    index = index_of([])
    index._read_names = lambda entities: read.append(entities.tolist()) or [["x"] for _ in entities]
    index.similarity(["x", "y"], np.array([[5, -1], [2, 5]]))
    index.similarity(["x"], np.array([[2, 7]]))
    assert index.names_of(5) == ["x"]
    assert index.names_of(9) == ["x"]
    assert read == [[2, 5], [7], [9]]


@pytest.mark.parametrize("block", [1, 3])
def test_strings_may_be_read_in_blocks(block, monkeypatch):
    names = [[f"name {i} of {'abc'[i % 3]}", f"{i}th"] for i in range(10)] + [[]]
    forms = [[] for _ in names]
    whole = index_of(names, forms)
    monkeypatch.setattr(string_features, "BLOCK", block)
    in_blocks = index_of(names, forms)
    mentions, entities = ["name 7", "3th of b", ""], np.arange(11)[None].repeat(3, axis=0)
    for one, other in zip(*(index.similarity(mentions, entities) for index in (whole, in_blocks))):
        assert one.tolist() == other.tolist()


texts = st.text(alphabet=st.sampled_from("abc é\n\t\u3000\U00020000🙂ab "), max_size=12)


def counted(strings, shortest, longest):
    """For each string the counts of its n-grams, by key."""
    found = count_ngrams(strings, shortest, longest)
    assert (np.diff(found.keys.astype(object)) > 0).all()
    spans = zip(found.bounds[:-1].tolist(), found.bounds[1:].tolist())
    return [
        dict(zip(found.keys[found.ngrams[a:b]].tolist(), found.counts[a:b].tolist()))
        for a, b in spans
    ]


@given(st.lists(texts, max_size=5), st.integers(1, 6), st.integers(0, 3))
@example(["a", "", "  "], 6, 0)
def test_ngrams_are_those_of_scikit_learn(strings, shortest, more):
    lengths = shortest, shortest + more
    analyze = CountVectorizer(
        analyzer="char_wb", ngram_range=lengths, lowercase=False
    ).build_analyzer()
    expected = [Counter(analyze(string)) for string in strings]
    key_of = {}
    for ngrams, keys in zip(expected, counted(strings, *lengths)):
        assert sorted(ngrams.values()) == sorted(keys.values())
        # Alone, an n-gram has the same key as anywhere.
        for ngram in ngrams:
            if ngram not in key_of:
                (only,) = (
                    counted([ngram.strip()], len(ngram), len(ngram)) if is_word(ngram) else [{}]
                )
                key_of[ngram] = next(iter(only), None)
            if key_of[ngram] is not None:
                assert keys[key_of[ngram]] == ngrams[ngram]
    distinct = {ngram for ngrams in expected for ngram in ngrams}
    assert len(count_ngrams(strings, *lengths).keys) == len(distinct)


def is_word(ngram):
    """Whether an n-gram is a whole word with its two spaces."""
    return len(ngram) > 2 and ngram[0] == ngram[-1] == " "
