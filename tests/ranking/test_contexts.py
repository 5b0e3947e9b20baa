"""Contexts of mentions against descriptions of entities, with an encoder that counts words."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from spacy_arbo_el import Entity, MentionRecord
from spacy_arbo_el.mentions.sentences import contexts_around
from spacy_arbo_el.ranking.contexts import WITHOUT_CONTEXT, fits_of
from spacy_arbo_el.ranking.features import (
    FEATURES,
    MAX_DESCRIBED,
    MOST_LEAD,
    CandidateFeatures,
    ContextFits,
    namesakes,
)
from spacy_arbo_el.retrieval.snapshot import Revision, Snapshot, joined
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
    is_trained = False

    def __init__(self, fingerprint="one"):
        self.text_fingerprint, self.read = fingerprint, []

    def encode_passages(self, tower, texts, size):
        self.read += [(tower, text) for text in texts]
        counts = [[text.split().count(word) for word in WORDS] for text in texts]
        return np.array(counts, dtype=np.float32).reshape(len(texts), -1) + 0.01


@pytest.fixture
def datastore():
    store = datastore_of(*ENTITIES)
    store.encoder, store.cache = Encoder(), RevisionCache()
    return store


def record(before, after=""):
    key = ("d", len(before), len(before) + 3)
    (sentences,) = contexts_around(f"{before}Vey{after}", [key[1:]])
    return MentionRecord(key, (), "Vey", before, after, sentences=sentences)


def fits(datastore, records, entities):
    """How well candidates fit that are looked at in this order."""
    entities = np.array(entities)
    ngrams = np.tile(np.linspace(0.5, 0.4, entities.shape[1], dtype=np.float32), (len(entities), 1))
    candidates = replace(candidates_of(ngrams, entities >= 0), entities=entities)
    kb, encoder = datastore.kb, datastore.encoder
    revision = Revision(kb, kb.edits, None, 0)
    snapshot = Snapshot(revision, None, encoder, None, None, datastore.cache)
    return fits_of(records, candidates, snapshot)


def test_the_description_that_suits_a_context_fits_best(datastore):
    records = [record("A runner won the race : "), record("She sang an aria of the opera by ")]
    found = fits(datastore, records, [[0, 1, 2, -1], [2, 1, 0, -1]])
    assert found.described.tolist() == [[1, 1, 0, -1], [0, 1, 1, -1]]
    assert found.fit[0, 0] > found.fit[0, 2], "its title alone is neither for nor against it"
    assert found.fit[0, 2] > found.fit[0, 1]
    assert found.fit[0, 1] > 0
    assert found.fit[1, 1] > found.fit[1, 2]
    assert found.fit[1, 2] > 0
    assert (found.fit[:, 3] == 0).all()
    assert np.sign(found.beyond[0]).tolist() == [1, -1, 0, 0], "what it adds to the title"


def test_the_sentence_of_a_mention_counts_beside_what_stands_near(datastore):
    near = record("A runner won the race . The opera has an aria of ")
    fit = fits(datastore, [near], [[0, 1]]).fit
    assert fit[0, 1] > fit[0, 0] + 0.1


def test_the_contexts_of_a_string_in_a_document_are_read_together(datastore):
    first, second = record("A runner won the race : "), record("Then : ")
    both = fits(datastore, [first, second], [[0, 1], [0, 1]])
    assert both.shared[0].tolist() == both.shared[1].tolist()
    assert both.shared[1, 0] > both.shared[1, 1]
    elsewhere = replace(second, key=("another", 0, 3))
    apart = fits(datastore, [first, elsewhere], [[0, 1], [0, 1]])
    assert apart.shared[1].tolist() == pytest.approx(apart.fit[1].tolist())


def test_a_mention_without_a_context_counts_half(datastore):
    bare = fits(datastore, [record("")], [[0, 1]])
    assert bare.shared[0].tolist() == pytest.approx((WITHOUT_CONTEXT * bare.fit[0]).tolist())


def test_each_text_is_encoded_once_and_each_context_of_a_call(datastore):
    one = record("a race of ")
    for _ in range(2):
        fits(datastore, [one, one], [[0, 1], [0, 2]])
    texts = [text for tower, text in datastore.encoder.read if tower == "entity"]
    assert sorted(texts) == sorted({"Vey", *(joined(e.title, e.description) for e in ENTITIES)})
    assert [t for tower, t in datastore.encoder.read if tower == "mention"] == 2 * ["a race of Vey"]
    read = len(datastore.encoder.read)
    assert (fits(datastore, [one], [[2, -1]]).described == -1).all(), "nothing is described"
    assert len(datastore.encoder.read) == read, "no context is read where nothing is described"


def test_a_mention_of_many_owners_has_no_part_in_what_others_are_compared_with():
    ngrams = 0.9 * np.random.default_rng(0).random((2, 20), dtype=np.float32)
    ngrams[1] = 1.0
    alone = candidates_of(ngrams[:1], np.ones((1, 20), dtype=bool)).worth_describing()
    both = candidates_of(ngrams, np.ones((2, 20), dtype=bool)).worth_describing()
    assert alone.sum() == MAX_DESCRIBED
    assert both[0].tolist() == alone[0].tolist()
    assert both[1].all()


def test_edits_and_other_weights_are_noticed(datastore):
    entities, records = [[0, 1]], [record("a ship in port : ")]
    before = fits(datastore, records, entities).fit
    datastore.kb.update([Entity("R", "Vey", "ship in a port")])
    after = fits(datastore, records, entities).fit
    assert after[0, 0] > before[0, 0]
    assert after[0, 1] == before[0, 1]
    datastore.kb.update([Entity("R", "Vey")])
    assert fits(datastore, records, entities).described.tolist() == [[0, 1]]
    datastore.encoder = Encoder("another")
    fits(datastore, records, entities)
    assert ("entity", joined(ENTITIES[1].title, ENTITIES[1].description)) in datastore.encoder.read


def candidates_of(ngrams, valid):
    features = np.zeros((*ngrams.shape, len(FEATURES)), dtype=np.float32)
    features[:, :, FEATURES.index("ngrams")] = ngrams
    entities = np.where(valid, np.arange(ngrams.shape[1]), -1)
    none = np.full(entities.shape, -1)
    return CandidateFeatures(entities, features, none, np.zeros(ngrams.shape, dtype=np.float32))


shares = st.floats(0, 1, width=32)
cells = arrays(np.float32, (3, 4), elements=shares)


@given(
    cells,
    cells,
    cells,
    arrays(np.float32, (3, 4), elements=st.sampled_from([-1.0, 0.0, 1.0])),
    arrays(bool, (3, 4)),
)
def test_features_of_contexts_are_those_of_comparing_one_by_one(
    ngrams, fit, shared, described, valid
):
    candidates = candidates_of(ngrams, valid)
    read = candidates.with_contexts(ContextFits(fit, fit / 2, shared, described))
    same = namesakes(candidates)
    compared = valid & (described >= 0)
    for i, j in np.ndindex(fit.shape):
        assert read.column("described")[i, j] == (valid[i, j] and described[i, j] == 1)
        assert read.column("beyond")[i, j] == (fit[i, j] / 2 if compared[i, j] else 0)
        mean = np.mean(fit[i, compared[i]]) if compared[i].any() else 0.0
        wanted = fit[i, j] if compared[i, j] else mean
        assert read.column("fit")[i, j] == pytest.approx(wanted if valid[i, j] else 0, abs=1e-6)
        best = max((ngrams[i, k] for k in range(4) if valid[i, k]), default=0)
        assert same[i, j] == (valid[i, j] and ngrams[i, j] >= np.float32(0.98) * best)
        others = [shared[i, k] for k in range(4) if k != j and same[i, k] and compared[i, k]]
        counts = compared[i, j] and same[i, j] and others
        lead = np.clip(shared[i, j] - max(others), -MOST_LEAD, MOST_LEAD) if counts else 0.0
        assert read.column("shared_lead")[i, j] == pytest.approx(lead, abs=1e-6)


def test_frequency_is_a_prior_among_entities_of_one_name():
    from spacy_arbo_el.ranking.features import _prior

    same = np.array([[True, True, False, True]])
    prior = _prior(np.array([[1.0, 100.0, 1e6, 0.0]]), same)
    assert prior[0, 1] == 0
    assert prior[0, 2] == 0
    assert prior[0, 0] == prior[0, 3]
    assert prior[0, 3] < -2
    assert not _prior(np.zeros((1, 4)), same).any(), "where nothing is known"
