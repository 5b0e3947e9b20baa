"""British spellings in mentions."""

import numpy as np
import pytest

from spacy_arbo_el.mentions.normalization.text import AmericanSpelling


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
def test_british_spellings_become_american_ones(british, american):
    text = f"With {british} and anaemia."
    offsets = np.array([[5, 5 + len(british)]])
    new, moved = AmericanSpelling()(text, offsets)
    assert new == f"With {american} and anaemia."
    assert new[slice(*moved[0])] == american
