"""British spellings in mentions."""

import numpy as np
import pytest

from spacy_arbo_el.mentions.normalization.text import AmericanSpelling

from ...cases import cases


@pytest.mark.parametrize("british, american", cases("american_spellings"))
def test_british_spellings_become_american_ones(british, american):
    text = f"With {british} and anaemia."
    offsets = np.array([[5, 5 + len(british)]])
    new, moved = AmericanSpelling()(text, offsets)
    assert new == f"With {american} and anaemia."
    assert new[slice(*moved[0])] == american
