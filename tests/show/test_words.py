"""Why a candidate is before another, in words."""

import pytest

from spacy_arbo_el.ranking.features import FEATURES
from spacy_arbo_el.show.words import Compared, in_words

from ..cases import cases


def compared(kb_id, names=(), features=()):
    return Compared(kb_id, names, {**dict.fromkeys(FEATURES, 0.0), **dict(features)})


@pytest.mark.parametrize("text, contributions, first, second", cases("explanations"))
def test_what_puts_a_candidate_before_another(text, contributions, first, second):
    assert in_words("Halix", contributions, compared(*first), compared(*second)) == text
