"""Windows of words, the names that they are near, and the best of those that overlap."""

from itertools import combinations
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.find.windows import (
    MOST_WORDS,
    best_without_overlaps,
    near_windows,
    read_units,
)
from spacy_arbo_el.names.comparison import is_one_edit
from spacy_arbo_el.names.word_index import WordIndex, words_to_index

from ..cases import cases

STOP_WORDS = frozenset(("a", "of", "and", "is"))
PLACES = st.lists(
    st.tuples(st.integers(0, 12), st.integers(1, 5)).map(lambda p: (p[0], p[0] + p[1])),
    max_size=8,
    unique=True,
)


@given(PLACES, st.data())
def test_the_best_places_are_those_of_all_choices(places, data):
    weights = [data.draw(st.sampled_from([0.5, 1.0, 2.0, 3.0])) for _ in places]
    chosen = best_without_overlaps(places, weights)

    def is_free(numbers):
        spans = sorted(places[number] for number in numbers)
        return all(one[1] <= other[0] for one, other in zip(spans, spans[1:]))

    assert is_free(chosen)
    assert [places[number] for number in chosen] == sorted(places[number] for number in chosen)
    sets = [n for k in range(len(places) + 1) for n in combinations(range(len(places)), k)]
    free = [
        (sum(weights[n] for n in numbers), -len(numbers)) for numbers in sets if is_free(numbers)
    ]
    assert (sum(weights[n] for n in chosen), -len(chosen)) == max(free)


WORDS = st.sampled_from(["red", "alder", "tree", "trees", "birch", "oak", "of", "and", "oxx"])
NAMES = st.lists(st.lists(WORDS, min_size=1, max_size=4).map(" ".join), min_size=1, max_size=5)


@given(NAMES, st.lists(WORDS, max_size=12), st.sampled_from([0.6, 0.9]))
def test_windows_are_those_that_a_slow_search_finds(names, words, least):
    text = " ".join(words)
    index = WordIndex.of(names, STOP_WORDS)
    units = read_units(text, STOP_WORDS, short=3)
    found = near_windows(units, index, least)
    rounded = {place: (name, round(share, 4)) for place, (name, share) in found.items()}
    assert rounded == slow_windows(units, names, least)


def slow_windows(units, names, least):
    """The same by comparing each window with each name."""
    sets = [set(words_to_index(name, STOP_WORDS)) for name in names]
    every = set().union(*sets)
    windows = {}
    for i, first in enumerate(units):
        for last in units[i : i + MOST_WORDS]:
            inside = units[i : units.index(last) + 1]
            words = [unit.words[0] for unit in inside]
            tells = any(len(word) > 2 for word in words)
            alone = len(inside) == 1 and first.is_short
            ends = {words[0], words[-1]}
            if first.group != last.group or alone or not tells or not ends <= every:
                continue
            shares = [
                (len(own & set(words)) / sqrt(len(words) * len(own)), -number)
                for number, own in enumerate(sets)
                if ends <= own
            ]
            if shares and max(shares)[0] >= least:
                windows[first.start, last.end] = (-max(shares)[1], round(max(shares)[0], 4))
    return windows


@pytest.mark.parametrize(("text", "least", "names"), cases("word_windows"))
def test_windows_end_where_a_name_would(text, least, names):
    index = WordIndex.of(["alder tree", "aldermann tree"], STOP_WORDS)
    found = near_windows(read_units(text, STOP_WORDS, 3), index, least)
    assert [text[slice(*place)] for place in found] == names


def test_equal_misspelled_words_are_searched_once(monkeypatch):
    index = WordIndex.of(["aldermann tree"], STOP_WORDS)
    searched = []
    search = type(index.similar).search
    monkeypatch.setattr(
        type(index.similar),
        "search",
        lambda self, word: searched.append(word) or search(self, word),
    )
    for _ in range(2):
        near_windows(read_units("aldermnn tree, aldermnn trees", STOP_WORDS, 3), index, 0.9)
    assert searched == ["aldermnn"]


LETTERS = st.text("abc", min_size=1, max_size=5)


@given(LETTERS, LETTERS)
def test_one_edit_is_the_distance_of_damerau_but_for_another_prefix(one, other):
    edits = {one[:i] + one[i + 1 :] for i in range(len(one))}
    edits |= {one[:i] + c + one[i:] for i in range(len(one) + 1) for c in "abc"}
    edits |= {one[:i] + c + one[i + 1 :] for i in range(2, len(one)) for c in "abc"}
    edits |= {one[:i] + one[i : i + 2][::-1] + one[i + 2 :] for i in range(len(one))}
    assert is_one_edit(one, other) == (one[0] == other[0] and other in edits | {one})
