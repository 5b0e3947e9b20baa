"""The dual encoder over towers of any kind, with torch and without, and its cache."""

import copy
import os

import numpy as np
import pytest
import threadpoolctl
import torch
from spacy.util import registry
from srsly import pickle_dumps, pickle_loads
from thinc.api import Adam
from thinc.util import to_numpy

from spacy_arbo_el import SpanInputs
from spacy_arbo_el.base.arrays import has_vector
from spacy_arbo_el.encoders.dual import (
    PARALLELISM,
    TOWERS,
    DualEncoder,
    build_dual_encoder,
    one_thread_after_fork,
)
from spacy_arbo_el.encoders.pooling import ClsPooling
from spacy_arbo_el.encoders.shim import shim_of
from spacy_arbo_el.encoders.windows import WindowReader

from ..devices import needs_fork
from ..expecting import raises
from ..floats import assert_same_vectors
from ..threads import forked
from ..tiny import dual_encoder
from .numpy_tower import HashedWords, build_hashed_encoder

TEXTS = ["the cold river bank", "", "a flu virus and the flu"]
TEXT_OF = np.array([0, 0, 2, 2])
OFFSETS = np.array([[4, 8], [9, 19], [2, 11], [20, 23]])
ENTITIES = [("cold", "a virus"), ("flu", ""), ("river bank", "of a river")]


@pytest.fixture
def hashed():
    """An initialized encoder in NumPy."""
    tower = registry.architectures.get("test.HashedEncoder.v1")()
    encoder = DualEncoder(build_dual_encoder(tower))
    encoder.model.initialize()
    return encoder


@pytest.fixture(params=["hashed", "tiny"])
def encoder(request):
    return request.getfixturevalue(request.param)


def test_reads_and_encodes_mentions_and_texts(encoder):
    mentions = encoder.read_mentions(TEXTS, TEXT_OF, OFFSETS)
    texts = encoder.read_texts(ENTITIES)
    assert len(mentions) == 4
    assert len(texts) == 3
    width = encoder.model.get_dim("nO")
    for encode, inputs in ((encoder.encode_mentions, mentions), (encoder.encode_texts, texts)):
        vectors = encode(inputs)
        assert vectors.shape == (len(inputs), width)
        assert vectors.dtype == np.float32
        assert np.isfinite(vectors).all()
        assert len(np.unique(vectors.round(4), axis=0)) == len(inputs)
        assert encode(SpanInputs.empty()).shape == (0, width)
    assert len(encoder.read_mentions(TEXTS, TEXT_OF[:0], OFFSETS[:0])) == 0
    assert len(encoder.read_texts([])) == 0


def test_texts_are_read_in_blocks(encoder, monkeypatch):
    whole = encoder.read_texts(ENTITIES)
    monkeypatch.setattr("spacy_arbo_el.encoders.dual.TEXT_BLOCK", 2)
    blocks = encoder.read_texts(ENTITIES)
    assert all((blocks.to_dict()[name] == array).all() for name, array in whole.to_dict().items())


def test_is_ready_needs_the_weights_of_both_towers(hashed, tiny):
    encoder = DualEncoder(build_dual_encoder(build_hashed_encoder()))
    with raises("'linker' has an encoder.*no weights yet"):
        encoder.require_ready("linker")
    encoder.model.initialize()
    encoder.require_ready("linker")
    towers = hashed.model.get_ref("mention"), build_hashed_encoder()
    assert not DualEncoder(build_dual_encoder(*towers)).is_ready
    assert not DualEncoder(build_dual_encoder(*towers[::-1])).is_ready
    shim_of(tiny.model.get_ref("entity"))._model = None
    assert not tiny.is_ready


def test_fingerprint_changes_with_weights_and_is_cached_until_then(encoder):
    before = encoder.fingerprint
    tower = encoder.model.get_ref("mention")
    inputs = encoder.read_mentions(TEXTS, TEXT_OF, OFFSETS)
    vectors, backprop = tower.begin_update(inputs)
    backprop(vectors)
    tower.finish_update(Adam(0.1))
    assert encoder.fingerprint == before
    encoder.weights_changed()
    assert encoder.fingerprint != before
    assert (encoder.encode_mentions(inputs) != to_numpy(vectors)).any()


def test_fingerprint_is_that_of_the_values_of_weights(tiny):
    """An optimizer's step that changes nothing turns -0.0 into 0.0."""
    transformer = shim_of(tiny.model.get_ref("mention"))._model
    bias = transformer.embeddings.LayerNorm.bias
    fingerprints = []
    with torch.no_grad():
        for value in (0.0, -0.0, 1e-30):
            bias[0] = value
            tiny.weights_changed()
            fingerprints.append(tiny.fingerprint)
    assert fingerprints[0] == fingerprints[1]
    assert fingerprints[1] != fingerprints[2]


def test_fingerprint_depends_on_reader_and_pooling(hashed, tiny):
    fingerprints = {hashed.fingerprint, tiny.fingerprint}
    for encoder, name, value in (
        (hashed, "reader", HashedWords(4095)),
        (tiny, "reader", WindowReader(23)),
        (tiny, "pooling", ClsPooling()),
    ):
        encoder.model.get_ref("mention").attrs[name] = value
        encoder.weights_changed()
        fingerprints.add(encoder.fingerprint)
    assert len(fingerprints) == 5


def test_fingerprint_differs_for_shared_separate_and_swapped_towers(hashed):
    one, other = hashed.model.get_ref("mention"), build_hashed_encoder()
    other.initialize()
    other.set_param("E", one.get_param("E") + 1)
    encoders = [(one,), (one, other), (other, one), (other,)]
    assert len({DualEncoder(build_dual_encoder(*towers)).fingerprint for towers in encoders}) == 4


def test_fingerprint_is_the_same_for_a_copy(tiny_bert):
    encoder = dual_encoder(str(tiny_bert), separate=True)
    for duplicate in (copy.deepcopy, lambda model: pickle_loads(pickle_dumps(model))):
        again = DualEncoder(duplicate(encoder.model))
        assert again.fingerprint == encoder.fingerprint


def test_unreadable_spans_have_no_vector_and_do_not_change_others(bundled):
    texts = ["They saw Paris and ☢ there", "ሰላም"]
    text_of, offsets = np.array([0, 0, 1]), np.array([[9, 14], [19, 20], [0, 3]])
    inputs = bundled.read_mentions(texts, text_of, offsets)
    vectors = bundled.encode_mentions(inputs)
    assert has_vector(vectors).tolist() == [True, False, False]
    alone = bundled.encode_mentions(inputs.take(np.array([0])))
    assert vectors[0].tolist() == alone[0].tolist()
    nothing = bundled.encode_mentions(inputs.take(np.array([1, 2])))
    assert nothing.shape == (2, 384)
    assert not nothing.any()
    entities = [("Paris", ""), ("ሰላም", ""), ("☢", "a symbol"), ("", "")]
    encoded = bundled.encode_texts(bundled.read_texts(entities))
    assert has_vector(encoded).tolist() == [True, False, True, False]


def test_training_takes_unreadable_spans(tiny):
    """They give zeros, and their gradients change no weights."""
    tower = tiny.model.get_ref("mention")
    texts, offsets = ["the flu ☢ virus"], np.array([[4, 7], [8, 9]])
    inputs = tiny.read_mentions(texts, np.zeros(2, np.int64), offsets)
    gradients = []
    for spans, d_unreadable in ([0], []), ([0, 1], [1e6]):
        vectors, backprop = tower.begin_update(inputs.take(np.array(spans)))
        d_rows = np.array([0.5, *d_unreadable], dtype=np.float32)
        backprop(np.repeat(d_rows[:, None], vectors.shape[1], axis=1))
        module = shim_of(tower)._model
        gradients.append([p.grad.clone() for p in module.parameters() if p.grad is not None])
        module.zero_grad()
    assert not vectors[1].any()
    for alone, together in zip(*gradients):
        assert alone.equal(together)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
def test_vectors_that_are_not_finite_are_refused(hashed, value):
    inputs = hashed.read_mentions(["flu"], np.array([0]), np.array([[0, 3]]))
    hashed.model.get_ref("mention").get_param("E")[:] = value
    with raises("1 of 1 vectors contain NaN"):
        hashed.encode_mentions(inputs)


@pytest.mark.parametrize("name", TOWERS)
def test_what_reads_alike_is_encoded_once(encoder, name):
    tower, sizes = encoder.model.get_ref(name), []
    forward = tower._func
    tower._func = lambda model, X, is_train: (sizes.append(len(X)), forward(model, X, is_train))[1]
    strings = ["Cold", "flu", "cold", "FLU", "cold"]

    def read(strings):
        if name == "entity":
            return encoder.read_texts([(string, "") for string in strings])
        offsets = np.array([[0, len(string)] for string in strings])
        return encoder.read_mentions(strings, np.arange(len(strings)), offsets)

    encode = {"entity": encoder.encode_texts, "mention": encoder.encode_mentions}[name]
    vectors = encode(read(strings))
    distinct = len(set(read(strings).keys()))
    assert sizes == [distinct]
    assert distinct < 5
    assert_same_vectors(vectors, np.concatenate([encode(read([string])) for string in strings]))


@needs_fork
@pytest.mark.parametrize("own, in_child", [(None, "false"), ("true", "true")])
def test_children_tokenize_with_one_thread_without_a_warning(monkeypatch, own, in_child):
    monkeypatch.delenv(PARALLELISM, raising=False)
    if own is not None:
        monkeypatch.setenv(PARALLELISM, own)
    assert forked(lambda: os.environ.get(PARALLELISM) == in_child)
    assert os.environ.get(PARALLELISM) == own, "as it was"


def threads_of_pools():
    return [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]


@needs_fork
def test_children_compute_with_one_thread_each():
    np.ones((2, 2)) @ np.ones((2, 2))
    before = threads_of_pools()
    assert forked(lambda: one_thread_after_fork() or set(threads_of_pools()) == {1})
    assert threads_of_pools() == before
