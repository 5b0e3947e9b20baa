"""Contexts of mentions against descriptions of entities, with an encoder that counts words."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.mentions.record import CONTEXT, MentionRecord
from spacy_arbo_el.ranking.contexts import Descriptions, description_text, fits
from spacy_arbo_el.ranking.features import FEATURES, MOST_LEAD, CandidateFeatures, namesakes
from spacy_arbo_el.storage.locks import RevisionCache

from .strings import datastore_of

WORDS = ("runner", "opera", "ship", "Vey", "race", "aria", "port")
ENTITIES = [
    Entity("R", "Vey", "runner of a race"),
    Entity("O", "Vey", "opera with an aria"),
    Entity("N", "Vey"),
]


class Encoder:
    """Counts some words. It notes what it reads."""

    reads_passages = True

    def __init__(self, fingerprint="one"):
        self.fingerprint, self.read = fingerprint, []

    def encode_passages(self, tower, texts, size):
        self.read += [(tower, text) for text in texts]
        counts = [[text.split().count(word) for word in WORDS] for text in texts]
        return np.array(counts, dtype=np.float32).reshape(len(texts), -1) + 0.01


@pytest.fixture
def datastore():
    store, cache = datastore_of(*ENTITIES), RevisionCache()
    store.encoder, store.content = Encoder(), 0
    store.derived = lambda name, *makers: cache.get(name, store.content, *makers)
    store.vector_cache = lambda kind: store.kb.vectors.caches.of(kind, store.encoder.fingerprint)
    return store


def record(before, after=""):
    return MentionRecord(("d", len(before), len(before) + 3), (), "Vey", before, after)


def test_the_description_that_suits_a_context_fits_best(datastore):
    records = [record("A runner won the race : "), record("She sang an aria of the opera by ")]
    entities = np.array([[0, 1, 2, -1], [2, 1, 0, -1]])
    fit, described = fits(datastore, records, entities)
    assert described.tolist() == [[True, True, False, False], [False, True, True, False]]
    assert fit[0, 0] > fit[0, 1] > 0 and fit[1, 1] > fit[1, 2] > 0
    assert (fit[~described] == 0).all()


def test_each_description_is_encoded_once_and_each_context_of_a_call(datastore):
    one = record("a race of ")
    for _ in range(2):
        fits(datastore, [one, one], np.array([[0, 1], [0, 2]]))
    texts = [text for tower, text in datastore.encoder.read if tower == "entity"]
    assert sorted(texts) == sorted(description_text(entity) for entity in ENTITIES[:2])
    assert [t for tower, t in datastore.encoder.read if tower == "mention"] == 2 * [one.passage]
    assert not fits(datastore, [one], np.array([[2, -1]]))[1].any(), "nothing is described"
    assert len(datastore.encoder.read) == 4, "no context is read where nothing is described"


def test_edits_and_other_weights_are_noticed(datastore):
    entities, records = np.array([[0, 1]]), [record("a ship in port : ")]
    before = fits(datastore, records, entities)[0]
    datastore.kb.update([Entity("R", "Vey", "ship in a port")])
    datastore.content += 1
    after = fits(datastore, records, entities)[0]
    assert after[0, 0] > before[0, 0] and after[0, 1] == before[0, 1]
    datastore.kb.update([Entity("R", "Vey")])
    datastore.content += 1
    assert fits(datastore, records, entities)[1].tolist() == [[False, True]]
    datastore.encoder = Encoder("another")
    fits(datastore, records, entities)
    assert ("entity", description_text(ENTITIES[1])) in datastore.encoder.read
    assert len(Descriptions.of(datastore)._rows) == 3


def test_a_passage_ends_with_whole_words():
    assert record("before ", " behind").passage == "before Vey behind"
    long = "word " * CONTEXT
    cut = record(long[-CONTEXT:], f" {long}"[:CONTEXT]).passage
    assert set(cut.split()) == {"word", "Vey"} and len(cut) > 2 * CONTEXT - 8


def candidates_of(ngrams, valid):
    features = np.zeros((*ngrams.shape, len(FEATURES)), dtype=np.float32)
    features[:, :, FEATURES.index("ngrams")] = ngrams
    entities = np.where(valid, np.arange(ngrams.shape[1]), -1)
    none = np.full(entities.shape, -1)
    return CandidateFeatures(entities, features, none, np.zeros(ngrams.shape, dtype=np.float32))


shares = st.floats(0, 1, width=32)


@given(
    arrays(np.float32, (3, 4), elements=shares),
    arrays(np.float32, (3, 4), elements=shares),
    arrays(bool, (3, 4)),
    arrays(bool, (3, 4)),
)
def test_leads_are_those_of_comparing_one_by_one(ngrams, fit, described, valid):
    candidates = candidates_of(ngrams, valid)
    read = candidates.with_contexts(fit, described)
    same = namesakes(candidates)
    for i, j in np.ndindex(fit.shape):
        is_read = valid[i, j] and described[i, j]
        assert read.column("described")[i, j] == is_read
        assert read.column("fit")[i, j] == (fit[i, j] if is_read else 0)
        best = max((ngrams[i, k] for k in range(4) if valid[i, k]), default=0)
        assert same[i, j] == (valid[i, j] and ngrams[i, j] >= np.float32(0.98) * best)
        for name, among in (("lead", valid), ("lead_of_namesakes", same)):
            others = [fit[i, k] for k in range(4) if k != j and among[i, k] and described[i, k]]
            counts = is_read and among[i, j] and others
            lead = np.clip(fit[i, j] - max(others), -MOST_LEAD, MOST_LEAD) if counts else 0.0
            assert read.column(name)[i, j] == pytest.approx(lead, abs=1e-6)


def test_frequency_is_a_prior_among_entities_of_one_name():
    from spacy_arbo_el.ranking.features import _prior

    same = np.array([[True, True, False, True]])
    prior = _prior(np.array([[1.0, 100.0, 1e6, 0.0]]), same)
    assert prior[0, 1] == prior[0, 2] == 0 and prior[0, 0] == prior[0, 3] < -2
    assert not _prior(np.zeros((1, 4)), same).any(), "where nothing is known"


def test_no_datastore_is_asked_without_candidates():
    fit, described = fits(SimpleNamespace(), [record("a ")], np.array([[-1, -1]]))
    assert not fit.any() and not described.any()
