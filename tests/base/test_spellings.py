"""Other spellings of names: accents, numbers, headings, and forms of Unicode."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.base.spellings import (
    BARE,
    OTHER,
    OWN,
    all_spellings,
    compared_forms,
    folded,
    other_spellings,
    without_accents,
)
from spacy_arbo_el.base.words import ORDINALS, roman_value, with_plain_numbers

from ..cases import cases


def share(one, other):
    """Return whether two names have a common spelling that is no bare name of both."""
    first, second = all_spellings([one]), all_spellings([other])
    return any(first[form] != BARE or second[form] != BARE for form in first.keys() & second.keys())


@pytest.mark.parametrize("one, other", cases("same_names"))
def test_names_that_are_the_same(one, other):
    assert share(one, other) and share(other, one)


@pytest.mark.parametrize("one, other", cases("different_names"))
def test_names_that_are_different(one, other):
    assert not share(one, other) and not share(other, one)


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
    assert folded(own) == own and own not in other_spellings(text)
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
