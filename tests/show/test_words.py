"""Why a candidate is before another, in words."""

import pytest

from spacy_arbo_el.ranking.features import FEATURES
from spacy_arbo_el.show.words import Compared, in_words


def compared(kb_id, *names, **features):
    return Compared(kb_id, names, {**dict.fromkeys(FEATURES, 0.0), **features})


CASES = {
    "A before B: the name is the same, letter for letter": (
        {"exact": 1.0},
        compared("A", "Halix", exact=1.0),
        compared("B", "HALIX"),
    ),
    "A before B: the name is the same": (
        {"ngrams": 1.0},
        compared("A", "Halix", ngrams=1.0),
        compared("B", "Halex", ngrams=0.8),
    ),
    "A before B: the name is more similar (0.90 against 0.40)": (
        {"nearest": 1.0},
        compared("A", "Halux", nearest=0.9),
        compared("B", "Halex", nearest=0.4),
    ),
    'A before B: B has "Oil Gas" besides': (
        {"missing": 1.0},
        compared("A", "Halix"),
        compared("B", "Bo", "Halix Oil & Gas", "Halix Oil & Gas Ltd"),
    ),
    "A before B: B has no word of the mention": (
        {"extra": 1.0},
        compared("A", "Halix"),
        compared("B", "Bo"),
    ),
    "A before B: the context fits better by 0.41": (
        {"shared_lead": 1.0},
        compared("A", fit=0.7, described=1.0),
        compared("B", fit=0.29, described=1.0),
    ),
    "A before B: the context fits its description (0.70)": (
        {"shared_lead": 1.0},
        compared("A", fit=0.7, described=1.0),
        compared("B"),
    ),
    "A before B: it is meant more often. For B: labelled mentions of these words are of it": (
        {"frequency": 2.0, "attested": -1.0},
        compared("A"),
        compared("B", attested=1.0, has_exemplar=1.0),
    ),
    "A before B: many small things": ({"title": 0.1}, compared("A", title=1.0), compared("B")),
}


@pytest.mark.parametrize("text", CASES)
def test_what_puts_a_candidate_before_another(text):
    contributions, first, second = CASES[text]
    assert in_words("Halix", contributions, first, second) == text


def test_three_things_are_named_at_most():
    contributions = {"frequency": 4.0, "title": 3.0, "contains": 2.0, "numbers": 1.0}
    text = in_words("Halix", contributions, compared("A"), compared("B"))
    expected = "it is meant more often; the mention is its title; the mention can be a part"
    assert text == f"A before B: {expected} of its name"
