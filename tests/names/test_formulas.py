"""Formulas among names, and words that tell names apart."""

import pytest

from spacy_arbo_el.names.formulas import atoms_of
from spacy_arbo_el.names.opposites import are_opposed
from spacy_arbo_el.names.words import words_of


@pytest.mark.parametrize("same", [("C2H5OH", "C2H6O"), ("H\u2082O", "H2O"), ("CO", "OC")])
def test_formulas_with_the_same_atoms_are_equal(same):
    assert atoms_of(same[0]) == atoms_of(same[1]) != frozenset()


@pytest.mark.parametrize("other", [("CO", "CO2"), ("CO", "Co"), ("NaCl", "NaClO"), ("Pb", "PB")])
def test_formulas_with_other_atoms_differ(other):
    assert atoms_of(other[0]) != atoms_of(other[1])


@pytest.mark.parametrize("name", ["", "March", "BRCA1", "IL-2", "water", "C-3", "C2H5 OH"])
def test_other_names_are_no_formulas(name):
    assert atoms_of(name) is None


@pytest.mark.parametrize(
    "pair, opposed",
    [
        (("acute fever", "chronic fever"), True),
        (("fever", "acute fever"), False),
        (("type 1 fever", "type 2 fever"), True),
        (("fever", "type 2 fever"), False),
        (("fever", "non fever"), True),
        (("left vein", "left right vein"), False),
    ],
)
def test_names_are_opposed_by_words_that_only_they_have(pair, opposed):
    words = [words_of(name) for name in pair]
    assert are_opposed(*words) is are_opposed(*words[::-1]) is opposed
