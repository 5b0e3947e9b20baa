"""British spellings in mentions."""

import numpy as np
import pytest

from spacy_arbo_el.rewriting.spelling import american_spelling


@pytest.mark.parametrize(
    "british, american",
    [
        ("anaemia", "anemia"),
        ("Haemolytic ANAEMIA", "Hemolytic ANEMIA"),
        ("lymphoedema", "lymphedema"),
        ("Oedema of the oesophagus", "Edema of the esophagus"),
        ("Wilms tumours", "Wilms tumors"),
        ("angioedema", "angioedema"),
        ("gastroesophageal reflux", "gastroesophageal reflux"),
        ("aerobic exercise", "aerobic exercise"),
        ("Haemophilus influenzae", "Haemophilus influenzae"),
        ("haemophilia", "hemophilia"),
        ("acanthamoeba keratitis", "acanthamoeba keratitis"),
        ("leucovorin", "leucovorin"),
        ("anaem\u0131a \u017fulph", "anaem\u0131a \u017fulph"),
        ("", ""),
    ],
)
def test_spellings(british, american):
    text = f"With {british} and anaemia."
    offsets = np.array([[5, 5 + len(british)]])
    new, moved = american_spelling()(text, offsets)
    assert new == f"With {american} and anaemia."
    assert new[slice(*moved[0])] == american
