"""Candidates whose names fit a mention equally well share their probability."""

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.ranking.features import FEATURES, CandidateFeatures
from spacy_arbo_el.ranking.ranker_weights import Assessment, equal_to_best, share_among_equals

# Features that tell the best candidate from others, with values that do not and that do.
TELLING = {
    "extra": (0.0, 0.3),
    "exact": (0.0, 1.0),
    "ngrams": (0.7, 1.0),
    "opposed": (0.0, 1.0),
    "has_exemplar": (0.0, 1.0),
    "described": (-1.0, 1.0),
    "words": (0.5, 0.4),
}


def candidates_of(telling, frequent=()):
    """One mention. Of each candidate, the features that tell it from others."""
    features = np.zeros((1, len(telling), len(FEATURES)), np.float32)
    for column, own in enumerate(telling):
        for name, values in TELLING.items():
            features[0, column, FEATURES.index(name)] = values[name in own]
    ids = np.arange(len(telling))[None]
    prior = np.array([[-2.0 * (column in frequent) for column in ids[0]]], np.float32)
    return CandidateFeatures(ids, features, np.full_like(ids, -1), prior)


@given(
    st.lists(st.sets(st.sampled_from(sorted(TELLING)), max_size=1), min_size=1, max_size=6),
    st.data(),
)
def test_candidates_share_what_nothing_but_vectors_tells_apart(telling, data):
    size = len(telling)
    frequent = data.draw(st.sets(st.integers(0, size - 1), max_size=2))
    scores = data.draw(st.lists(st.integers(-5, 5), min_size=size, max_size=size, unique=True))
    log_shares = np.array([scores], float) - np.logaddexp.reduce(scores)
    assessment = Assessment(log_shares, np.array([1.5]))
    candidates = candidates_of(telling, frequent)

    best = int(np.argmax(scores))
    alike = [
        not telling[best] - {"words"}
        and telling[column] == telling[best]
        and (column in frequent) == (best in frequent)
        for column in range(size)
    ]
    assert equal_to_best(candidates, log_shares)[0].tolist() == alike

    shared = share_among_equals(candidates, assessment)
    probabilities, before = np.exp(shared.log_shares[0]), np.exp(log_shares[0])
    if sum(alike) > 1:
        expected = np.where(alike, before[alike].mean(), before)
        np.testing.assert_allclose(probabilities, expected, rtol=0.01)
        own = np.flatnonzero(alike)
        assert (np.argsort(-probabilities[own]) == np.argsort(-before[own])).all()
    else:
        assert probabilities.tolist() == before.tolist()
    assert shared.presence.tolist() == [1.5]


@pytest.mark.bundled
@pytest.mark.parametrize("aliases, expected", [([], "NIL"), (["Smith"], "B")])
def test_a_part_of_two_names_is_no_link(aliases, expected):
    nlp = spacy.blank("en")
    linker = nlp.add_pipe("arbo_linker")
    linker.set_kb(
        [
            {"id": "A", "title": "Carl Smith"},
            {"id": "B", "title": "Bert Smith", "aliases": aliases},
        ]
    )
    doc = nlp.make_doc("The chess master Smith wrote on openings in the north.")
    doc.ents = [doc.char_span(17, 22, label="PERSON")]
    assert linker(doc).ents[0].kb_id_ == expected
