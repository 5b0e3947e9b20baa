"""Words, numbers and other spellings of names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.names.firms import firm_forms, without_legal_form
from spacy_arbo_el.names.spellings import (
    BARE,
    OTHER,
    OWN,
    all_spellings,
    compared_forms,
    folded,
    other_spellings,
    without_accents,
)
from spacy_arbo_el.names.words import (
    ORDINALS,
    numbers_among,
    roman_value,
    with_plain_numbers,
    words_of,
)

from ..cases import cases


def share(one, other):
    """Return whether two names have a common spelling that is no bare name of both."""
    first, second = all_spellings([one]), all_spellings([other])
    return any(first[form] != BARE or second[form] != BARE for form in first.keys() & second.keys())


@pytest.mark.parametrize("one, other", cases("same_names"))
def test_names_that_are_the_same(one, other):
    assert share(one, other)
    assert share(other, one)


@pytest.mark.parametrize("one, other", cases("different_names"))
def test_names_that_are_different(one, other):
    assert not share(one, other)
    assert not share(other, one)


def test_the_own_spelling_comes_first_and_pairs_of_letters_before_plain_ones():
    assert folded("  Müller\u00adAG  Nord") == "müllerag nord"
    assert list(other_spellings("Müller")) == ["mueller", "muller"]
    assert all_spellings(["Müller", "Mueller"])["mueller"] == OWN
    assert other_spellings("Velm, Ruth, 1850-1912")["ruth velm"] == BARE
    assert other_spellings("Velm, Ruth, 1850-1912")["ruth velm, 1850-1912"] == OTHER
    assert compared_forms("Velm, Ruth, 1850-1912") == [
        "Velm, Ruth, 1850-1912",
        "ruth velm",
        "velm, ruth",
    ]


@given(st.text(max_size=12))
def test_any_text_has_spellings_that_are_folded(text):
    own = folded(text)
    assert folded(own) == own
    assert own not in other_spellings(text)
    assert other_spellings(own) == other_spellings(text)
    for form in (*other_spellings(text), without_accents(own)):
        assert form or not own
        assert share(text, text)


@given(st.integers(1, 39))
def test_roman_numerals_are_numbers(number):
    tens, units = divmod(number, 10)
    numeral = "x" * tens + ["", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix"][units]
    assert roman_value(numeral) == number
    expected = "louis x" if numeral == "x" else f"louis {number}"
    assert with_plain_numbers(f"louis {numeral}") == expected
    assert with_plain_numbers(f"louis the {number}th") == f"louis {number}"


def test_ordinals_in_words_are_those_in_digits():
    for word, number in ORDINALS.items():
        assert with_plain_numbers(f"the {word} street") == with_plain_numbers(f"{number}th street")
    assert with_plain_numbers("via vic") == "via vic"


def test_words_and_numbers():
    assert words_of("Factor V, type IIa; X-linked 2q") == [
        "factor", "5", "type", "iia", "x", "linked", "2", "q"
    ]  # fmt: skip
    assert numbers_among(words_of("MEN 2, type ii")) == {"2"}


@pytest.mark.parametrize("plural, singular", cases("plurals"))
def test_words_are_in_the_singular(plural, singular):
    assert words_of(plural) == [singular]
    assert words_of(singular) == [singular]


@pytest.mark.parametrize("word", ["insipidus", "paralysis", "loss", "gas", "als", "virus"])
def test_words_that_only_look_like_plurals(word):
    assert words_of(word) == [word]


@given(st.text())
def test_each_word_is_one_word_in_lower_case(string):
    for word in words_of(string):
        assert len(words_of(word)) == 1
        assert word == word.lower()


@pytest.mark.parametrize(("name", "bare"), cases("legal_forms"))
def test_legal_forms_at_the_end_are_left_out(name, bare):
    assert without_legal_form(name) == bare


@pytest.mark.parametrize(("title", "names"), cases("short_names_of_firms"))
def test_short_names_are_the_beginnings_of_a_title_with_a_legal_form(title, names):
    assert firm_forms(title).short == names
