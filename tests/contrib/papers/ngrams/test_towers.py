import pickle

import numpy as np
import pytest
from thinc.api import Adam

from spacy_arbo_el.base.arrays import unit
from spacy_arbo_el.contrib.papers.ngrams import towers
from spacy_arbo_el.contrib.papers.ngrams.towers import build_ngram_encoder
from spacy_arbo_el.encoders.dual import TOWERS, DualEncoder

from ....floats import assert_same_vectors
from .world import ENTITIES, OFFSETS, SMALL, TEXT_OF, TEXTS, inputs_of, ngram_encoder


def parameters(model):
    return [(node, name) for node in model.walk() for name in node.param_names]


@pytest.mark.parametrize("tower", TOWERS)
def test_gradients_equal_finite_differences(tower):
    encoder = ngram_encoder()
    model, rng = encoder.model, np.random.default_rng(0)

    def normal(shape, scale=1.0):
        return model.ops.asarray(rng.normal(scale=scale, size=shape).astype(np.float32))

    for node, name in parameters(model):
        node.set_param(name, normal(node.get_param(name).shape, scale=0.7))
    inputs = inputs_of(encoder)[tower]
    vectors, backprop = model.get_ref(tower).begin_update(inputs)
    weights = normal(vectors.shape)
    backprop(weights)

    def loss():
        return float((model.get_ref(tower).predict(inputs) * weights).sum(dtype=np.float64))

    checked = 0
    for node, name in parameters(model.get_ref(tower)):
        gradient, before = node.get_grad(name), node.get_param(name).copy()
        direction = normal(before.shape)
        step = np.float32(1e-3)
        losses = []
        for sign in (1, -1):
            node.set_param(name, before + sign * step * direction)
            losses.append(loss())
        node.set_param(name, before)
        numeric = (losses[0] - losses[1]) / (2 * step)
        assert numeric == pytest.approx(float((gradient * direction).sum()), rel=0.03, abs=0.02)
        checked += abs(numeric) > 0.1
    assert checked > 5


def test_untrained_encoder_finds_the_name_that_is_written():
    encoder = ngram_encoder(width=64, vectors=64, rows=4096, hidden=64)
    names = ["common cold", "influenza virus", "heart failure", "lung cancer", "broken leg"]
    entities = encoder.encode_texts(encoder.read_texts([(name, "") for name in names]))
    texts = [f"We saw {name} in one patient." for name in names]
    offsets = np.array([[7, 7 + len(name)] for name in names])
    mentions = encoder.encode_mentions(encoder.read_mentions(texts, np.arange(5), offsets))
    assert (unit(mentions) @ unit(entities).T).argmax(axis=1).tolist() == [0, 1, 2, 3, 4]


def test_vectors_do_not_depend_on_the_batch_or_its_blocks(monkeypatch):
    encoder = ngram_encoder()
    for name, encode in (("mention", encoder.encode_mentions), ("entity", encoder.encode_texts)):
        inputs = inputs_of(encoder)[name]
        together = encode(inputs)
        for row in range(len(together)):
            assert_same_vectors(encode(inputs.take(np.array([row])))[0], together[row])
        with monkeypatch.context() as patch:
            patch.setattr(towers, "PREDICTED", 3)
            assert_same_vectors(encode(inputs), together)


def test_unreadable_spans_have_zeros_and_no_gradient():
    encoder = ngram_encoder()
    inputs = encoder.read_texts([("", ""), ("cold", ""), ("", "\nDisease")])
    vectors = encoder.encode_texts(inputs)
    assert vectors[1].any()
    assert not vectors[0].any()
    assert not vectors[2].any()
    tower = encoder.model.get_ref("entity")
    vectors, backprop = tower.begin_update(inputs.take(np.array([0, 2])))
    backprop(np.ones_like(vectors))
    assert all(not node.get_grad(name).any() for node, name in parameters(tower))


def test_empty_fields_give_finite_vectors_and_gradients():
    encoder = ngram_encoder()
    inputs = encoder.read_texts([("cold", ""), ("", "described")])
    vectors, backprop = encoder.model.get_ref("entity").begin_update(inputs)
    backprop(vectors)
    assert np.isfinite(vectors).all()
    assert vectors.any(axis=1).all()
    for node, name in parameters(encoder.model.get_ref("entity")):
        assert np.isfinite(node.get_grad(name)).all()


def test_weights_survive_bytes_and_pickle():
    encoder = ngram_encoder()
    for _ in range(2):
        inputs = inputs_of(encoder)["mention"]
        vectors, backprop = encoder.model.get_ref("mention").begin_update(inputs)
        backprop(vectors)
        encoder.model.finish_update(Adam(0.1))
    encoder.weights_changed()
    read = build_ngram_encoder(**SMALL).from_bytes(encoder.model.to_bytes())
    for model in (read, pickle.loads(pickle.dumps(encoder.model))):
        other = DualEncoder(model)
        assert other.is_ready
        assert other.fingerprint == encoder.fingerprint
        inputs = other.read_mentions(TEXTS, TEXT_OF, OFFSETS)
        assert np.array_equal(other.encode_mentions(inputs), encoder.encode_mentions(inputs))
        tables = {model.get_ref(tower).get_ref("table").id for tower in TOWERS}
        assert len(tables) == 1


def test_settings_that_change_what_is_read_change_the_fingerprint():
    settings = [{}, {"near": 3}, {"window": 5}]
    prints = {ngram_encoder(**changed).fingerprint for changed in settings}
    assert len(prints) == len(settings)
    assert ngram_encoder().fingerprint == ngram_encoder().fingerprint


def test_all_fields_take_part_in_the_vector():
    encoder = ngram_encoder(near=1)
    base = ("He has a bad cold in winter", 13, 17)
    others = [
        ("He has a bad flu in winter", 13, 16),
        ("He has a good cold in winter", 14, 18),
        ("He has a bad cold of winter", 13, 17),
        ("He had a bad cold in winter", 13, 17),
    ]
    texts, *offsets = zip(base, *others)
    inputs = encoder.read_mentions(texts, np.arange(5), np.stack(offsets, axis=1))
    vectors = encoder.encode_mentions(inputs)
    assert (np.abs(vectors[1:] - vectors[0]).max(axis=1) > 1e-4).all()
    texts = [("cold", "illness\nDisease"), ("cold", "illness\nState"), ("cold", "pain\nDisease")]
    vectors = encoder.encode_texts(encoder.read_texts([*texts, *ENTITIES]))
    assert (np.abs(vectors[1:3] - vectors[0]).max(axis=1) > 1e-4).all()
