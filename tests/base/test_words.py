"""Words and numbers of names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.base.words import numbers_among, without_legal_form, words_of

from ..cases import cases


def test_words_and_numbers():
    assert words_of("Factor V, type IIa; X-linked 2q") == [
        "factor", "5", "type", "iia", "x", "linked", "2", "q"
    ]  # fmt: skip
    assert numbers_among(words_of("MEN 2, type ii")) == {"2"}


@pytest.mark.parametrize("plural, singular", cases("plurals"))
def test_words_are_in_the_singular(plural, singular):
    assert words_of(plural) == words_of(singular) == [singular]


@pytest.mark.parametrize("word", ["insipidus", "paralysis", "loss", "gas", "als", "virus"])
def test_words_that_only_look_like_plurals(word):
    assert words_of(word) == [word]


@given(st.text())
def test_each_word_is_one_word_in_lower_case(string):
    for word in words_of(string):
        assert len(words_of(word)) == 1 and word == word.lower()


@pytest.mark.parametrize(("name", "bare"), cases("legal_forms"))
def test_legal_forms_at_the_end_are_left_out(name, bare):
    assert without_legal_form(name) == bare
