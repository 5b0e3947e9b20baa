"""The learning rate, counted on the corpus or too high, and refreshes of vectors."""

import io
from itertools import islice
from types import SimpleNamespace

import numpy as np
import pytest
import spacy
from scipy.sparse import csr_matrix
from spacy.training.initialize import init_nlp
from spacy.training.loop import train as spacy_train
from spacy.util import registry
from thinc.api import Adam, Model

from spacy_arbo_el import ArboLinker
from spacy_arbo_el.retrieval.similarity import Cosine
from spacy_arbo_el.runs.loop import train as arbo_train
from spacy_arbo_el.training.cache import EmbeddingCache
from spacy_arbo_el.training.refresh import refresh_texts
from spacy_arbo_el.training.trainer import warn_of_high_rate

from ..cases import cases
from ..expecting import no_warnings, raises, warns
from ..linker.conftest import build_tiny
from ..linker.world import TRAIN, examples, write_corpus
from ..systems import load_system

NLP = spacy.blank("xx")
NAME = "spacy-arbo-el.WarmupLinear.v1"


def rates(documents=100, size=5, read=None, **settings):
    """The rates of a training on so many documents."""

    def corpus(nlp):
        for number in range(documents):
            if read is not None:
                read.append(number)
            yield number

    batcher = registry.batchers.get("spacy.batch_by_sequence.v1")(size=size)
    settings = {"max_epochs": 4, "max_steps": 0, **settings}
    return registry.schedules.get(NAME)(0.5, corpus, batcher, **settings)


def counted(values):
    """The step with the highest rate, and the last one with a rate above 0."""
    first = np.array(list(islice(values, 2000)))
    top = int(first.argmax())
    assert first[0] == 0
    assert first[top] == 0.5
    assert (np.diff(first[: top + 1]) > 0).all()
    assert (np.diff(first[top:]) <= 0).all()
    return top, int(np.flatnonzero(first)[-1])


@pytest.mark.parametrize("settings, rising, steps", cases("schedules"))
def test_it_rises_over_a_tenth_of_the_steps_and_falls_until_their_end(settings, rising, steps):
    assert counted(rates(**settings)) == (rising, steps)


def test_the_corpus_is_read_when_training_begins_and_no_further_than_needed():
    read = []
    values = rates(read=read)
    assert next(values) == 0
    assert not read
    next(values)
    assert read == list(range(100))
    read.clear()
    list(islice(rates(read=read, max_steps=20), 2))
    assert len(read) <= 30, "5 batches of an epoch of 20"
    read.clear()
    list(islice(rates(read=read, max_epochs=0, max_steps=20), 2))
    assert not read


def test_a_training_without_an_end_is_refused():
    with raises("max_epochs and max_steps are both 0"):
        rates(max_epochs=0)


@pytest.mark.slow
@pytest.mark.parametrize("train", [spacy_train, arbo_train])
def test_trainings_of_spacy_and_of_this_package_follow_it(tiny_bert, tmp_path, monkeypatch, train):
    """Four epochs of three batches: the rate of the last step is that before 0."""
    seen = []
    finish = ArboLinker.finish_update
    monkeypatch.setattr(
        ArboLinker,
        "finish_update",
        lambda self, sgd: (seen.append(sgd.learn_rate), finish(self, sgd)),
    )
    paths = {**write_corpus(tmp_path), "paths.encoder": str(tiny_bert)}
    settings = {"training.eval_frequency": 100, "training.max_epochs": 4}
    config = load_system("linker", {**paths, **settings})
    config["training"]["before_to_disk"] = None
    (tmp_path / "out").mkdir()
    train(init_nlp(config), tmp_path / "out", stdout=io.StringIO(), stderr=io.StringIO())
    assert len(seen) == 12
    np.testing.assert_allclose(seen, 1e-4 * np.array([0, 1, *np.arange(11, 1, -1) / 12]))


TEXTS, MENTIONS, WIDTH = 4000, 6, 16


def refreshed(change):
    """Refresh after the vectors of texts and mentions have changed. RETURNS: What was encoded."""
    rng = np.random.default_rng(0)
    texts = rng.standard_normal((TEXTS, WIDTH)).astype(np.float32)
    mentions = texts[:MENTIONS] + np.float32(0.1)
    gold = csr_matrix((np.ones(MENTIONS), (range(MENTIONS), range(MENTIONS))), (MENTIONS, TEXTS))
    cluster = np.arange(MENTIONS)
    cluster[-1] = -1
    table = SimpleNamespace(n_texts=TEXTS, cluster=cluster, mention_texts=gold)
    cache, encoded = EmbeddingCache(Cosine(), texts, mentions), []

    def encode(rows):
        encoded.append(rows)
        return change(texts)[rows]

    count = refresh_texts(cache, table, change(mentions), encode, np.random.default_rng(1))
    rows = np.concatenate(encoded)
    assert count == len(rows), "nothing is encoded twice"
    assert len(rows) == len(np.unique(rows))
    expected = Cosine().prepare(change(texts))
    np.testing.assert_array_equal(cache.texts[rows], expected[rows])
    np.testing.assert_array_equal(cache.mentions, Cosine().prepare(change(mentions)))
    nearest = np.argsort(-cache.mentions[:-1] @ expected.T, axis=1)[:, :10]
    return rows, nearest


def test_texts_near_mentions_and_some_others_are_encoded_again():
    rows, nearest = refreshed(lambda vectors: vectors * np.float32(1.01) + np.float32(0.01))
    assert np.isin(nearest, rows).all()
    assert np.isin(np.arange(MENTIONS), rows).all()
    assert len(rows) > 100
    assert len(rows) < TEXTS / 3


def test_all_texts_are_encoded_where_others_are_near_mentions_now():
    rng = np.random.default_rng(2)
    turn = np.linalg.qr(rng.standard_normal((WIDTH, WIDTH)))[0].astype(np.float32)
    rows, _ = refreshed(lambda vectors: np.abs(vectors @ turn))
    assert len(rows) == TEXTS


@pytest.fixture(autouse=True)
def nobody_is_warned_yet(monkeypatch):
    monkeypatch.setattr("spacy_arbo_el.training.trainer._warned_of", set())


def encoder(pretrained):
    tower = Model("tower", lambda model, X, is_train: (X, lambda d: d))
    tower.attrs["pretrained"] = pretrained
    both = Model("dual", lambda model, X, is_train: (X, lambda d: d), layers=[tower])
    both.set_ref("mention", tower)
    both.set_ref("entity", tower)
    return both


def test_the_default_rate_of_spacy_is_warned_of_once_per_optimizer():
    sgd, model = Adam(0.001), encoder(True)
    with warns("learning rate of 'linker' is 0.001.*init-config"):
        warn_of_high_rate("linker", model, sgd)
    before = model.to_bytes()
    with no_warnings():
        warn_of_high_rate("linker", model, sgd)
        warn_of_high_rate("linker", model, Adam(1e-4))
        warn_of_high_rate("linker", encoder(False), Adam(0.01))
    assert model.to_bytes() == before


def test_update_of_the_linker_warns(tiny_bert):
    nlp = build_tiny(tiny_bert)
    sgd = nlp.create_optimizer()
    assert sgd.learn_rate == 0.001, "what spacy init config gives"
    with warns("learning rate"):
        nlp.update(examples(nlp, TRAIN[:2]), sgd=sgd)
