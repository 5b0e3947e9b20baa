"""Other spellings of names: accents, numbers, headings, and forms of Unicode."""

import unicodedata

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


def share(one, other):
    """Return whether two names have a common spelling that is no bare name of both."""
    first, second = all_spellings([one]), all_spellings([other])
    return any(first[form] != BARE or second[form] != BARE for form in first.keys() & second.keys())


@pytest.mark.parametrize(
    "one, other",
    [
        ("Žižkov", "Zizkov"),
        ("Müller", "Mueller"),
        ("MÜLLER", "muller"),
        ("Weiß GmbH", "Weiss GmbH"),
        ("Ørsted", "Oersted"),
        ("Ørsted", "Orsted"),
        ("Łódź", "Lodz"),
        ("İzmit", "izmit"),
        ("DİYARBAKIR", "Diyarbakır"),
        ("Đorđe", "Djordje"),
        ("Þórr", "Thorr"),
        ("Зельмоград", "Zelmograd"),
        ("type two", "type II"),
        ("factor eight", "factor VIII"),
        ("Fifth Avenue", "5th Avenue"),
        ("Twenty-first Cavalry", "21st Cavalry"),
        ("Second World War", "World War II"),
        ("Henrik the Fourth", "Henrik IV"),
        ("stage IIIb", "stage 3B"),
        ("Zelm 1,500", "Zelm 1500"),
        ("Zelm 1,5", "Zelm 1.5"),
        ("Tarnow, Peter, 1901-1967", "Peter Tarnow"),
        ("Tarnow, Peter, 1901-1967", "Peter Tarnow (1901–1967)"),
        ("Tarnow, Peter, 1901-", "Tarnow, Peter"),
        ("Tarnow, Peter, approximately 1520-", "Peter Tarnow"),
        ("Tarnow, Péter, active 16th century", "Peter Tarnow"),
        ("Okoro, J. T. (James Tunde), 1888-1950", "James Tunde Okoro"),
        ("Okoro, J. T. (James Tunde), 1888-1950", "J. T. Okoro"),
        ("Marwick, Jon, Sir, 1799-1860", "Sir Jon Marwick"),
        ("Smith, John, Jr., 1901-1950", "John Smith Jr."),
        ("Plato, approximately 428-348 BC", "Plato"),
        (unicodedata.normalize("NFD", "한빛전자"), "한빛전자"),
        ("ｶﾞﾙﾄﾞ銀行", "ガルド銀行"),
        ("5 µg", "5 μg"),
        ("heart–lung", "heart-lung"),
    ],
)
def test_names_that_are_the_same(one, other):
    assert share(one, other) and share(other, one)


@pytest.mark.parametrize(
    "one, other",
    [
        ("type 1", "type two"),
        ("Zelm 1.5", "Zelm 15"),
        ("chromosome X", "chromosome 10"),
        ("World War I", "Second World War"),
        ("5 µg", "5 mg"),
        ("β-cell", "b-cell"),
        ("Mueller", "Muller"),
        ("東海大学", "东海大学"),
        ("Velm, Ruth, 1850-1912", "Velm, Ruth, 1931-"),
        ("Smith, John, Jr., 1901-1950", "John Smith"),
        ("Summer Cup, 2012", "Summer Cup"),
        ("Velm, Ruth, arcade 1850", "Ruth Velm"),
        ("C", "C++"),
    ],
)
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
