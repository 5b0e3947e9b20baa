"""Several spans in a passage get the vectors and gradients of windows; poolings."""

import time

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el import SpanInputs
from spacy_arbo_el.base.devices import on_gpu
from spacy_arbo_el.encoders.pooling import (
    ClsPooling,
    FirstLastPooling,
    SpanMeanPooling,
    SpanStates,
    StartPooling,
    pooled_width,
)
from spacy_arbo_el.encoders.shim import shim_of
from spacy_arbo_el.encoders.word_pieces import END_PLACE, TITLE_PLACE

from ..floats import assert_same_gradients, assert_same_vectors
from ..tiny import dual_encoder, save_tiny
from .strategies import build_inputs, passages_of

POOLINGS = [ClsPooling(), StartPooling(), SpanMeanPooling(), FirstLastPooling()]
# Two spans in the first passage, one in the second, none in the third, three in the fourth.
PLACES = [(3, 1, 2, 1), (0, 2, 4, 1), (1, 0, 0, 0), (0, 5, 6, 5), (3, 0, 4, 0), (3, 1, 2, 1)]


def documents():
    rng = np.random.default_rng(0)
    return build_inputs([rng.integers(5, 40, size=n).tolist() for n in (9, 1, 7, 5)], PLACES)


def windows_of(inputs):
    """The same spans, each in a copy of its passage."""
    passages = passages_of(inputs)
    places = zip(inputs.first, inputs.last, inputs.marker)
    return build_inputs(
        [passages[p] for p in inputs.passage], [(i, *place) for i, place in enumerate(places)]
    )


def tower_of(tiny_bert, **settings):
    return dual_encoder(str(tiny_bert), **settings).model.get_ref("mention")


def train(tower, inputs, d_vectors):
    """Vectors in training, and the gradient of each parameter."""
    module = shim_of(tower)._model
    module.zero_grad(set_to_none=True)
    vectors, backprop = tower.begin_update(inputs)
    backprop(tower.ops.asarray2f(d_vectors))
    named = module.named_parameters()
    return tower.ops.to_numpy(vectors), {
        name: p.grad.clone() for name, p in named if p.grad is not None
    }


@pytest.fixture
def word_pieces_run(monkeypatch):
    """The sizes of all forward passes."""
    sizes = []
    forward = torch.nn.Module.__call__

    def count(self, *args, **kwargs):
        if "input_ids" in kwargs and type(self).__name__ == "BertModel":
            sizes.append(tuple(kwargs["input_ids"].shape))
        return forward(self, *args, **kwargs)

    monkeypatch.setattr(torch.nn.Module, "__call__", count)
    return sizes


@pytest.mark.parametrize("pooling", POOLINGS, ids=lambda pooling: type(pooling).__name__)
@pytest.mark.parametrize("predict_tokens", [1, 14, 1000])
def test_spans_of_a_passage_get_the_vectors_of_windows(
    tiny_bert, pooling, predict_tokens, word_pieces_run
):
    tower = tower_of(tiny_bert, pooling=pooling, predict_tokens=predict_tokens)
    vectors = tower.ops.to_numpy(tower.predict(documents()))
    # On a GPU, nothing is padded.
    padded = {14: [(1, 9), (2, 5)], 1000: [(3, 9)]}.get(0 if on_gpu() else predict_tokens)
    assert sorted(word_pieces_run) == (padded or [(1, 1), (1, 5), (1, 9)])
    expected = tower.ops.to_numpy(tower.predict(windows_of(documents())))
    assert_same_vectors(vectors, expected)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(PLACES), pooled_width(pooling, 16))


@pytest.mark.parametrize("pooling", POOLINGS, ids=lambda pooling: type(pooling).__name__)
@pytest.mark.parametrize("kept_tokens", [1, 10_000], ids=["recomputed", "kept"])
@pytest.mark.parametrize("train_tokens", [9, 18, 1000])
def test_spans_of_a_passage_bring_back_the_gradients_of_windows(
    tiny_bert, pooling, kept_tokens, train_tokens, word_pieces_run
):
    settings = {"pooling": pooling, "kept_tokens": kept_tokens, "train_tokens": train_tokens}
    tower = tower_of(tiny_bert, **settings)
    d_vectors = (
        np.random.default_rng(1).normal(size=(len(PLACES), pooled_width(pooling, 16))).astype("f")
    )
    vectors, gradients = train(tower, documents(), d_vectors)
    expected = {9: [(1, 9), (1, 5), (1, 1)], 18: [(2, 9), (1, 1)], 1000: [(3, 9)]}[train_tokens]
    assert word_pieces_run == expected * (1 if kept_tokens > 1 else 2)
    window_vectors, window_gradients = train(tower, windows_of(documents()), d_vectors)
    assert_same_vectors(vectors, window_vectors)
    assert len(gradients) > 20
    assert_same_gradients(gradients, window_gradients)


def test_recomputed_gradients_are_those_of_the_same_dropout(tiny_bert):
    d_vectors = np.random.default_rng(1).normal(size=(len(PLACES), 16)).astype(np.float32)
    results = []
    for kept_tokens in (1, 10_000):
        tower = tower_of(tiny_bert, kept_tokens=kept_tokens)
        tower.attrs["dropout_rate"] = 0.3
        torch.manual_seed(5)
        results.append(train(tower, documents(), d_vectors))
    (vectors, gradients), (kept_vectors, kept_gradients) = results
    assert_same_vectors(vectors, kept_vectors)
    assert_same_gradients(gradients, kept_gradients)


@pytest.mark.parametrize("n_threads", [2], indirect=True)
def test_threads_predict_when_training_has_ended(tiny_bert, n_threads, monkeypatch):
    tower = tower_of(tiny_bert, predict_tokens=10)
    tower.attrs["dropout_rate"] = 0.5
    vectors = tower.predict(documents())
    encoder = shim_of(tower)._model.encoder
    set_mode = encoder.train
    monkeypatch.setattr(encoder, "train", lambda mode: [time.sleep(0.2), set_mode(mode)])
    tower.begin_update(documents())
    assert_same_vectors(tower.predict(documents()), vectors)


def test_no_spans(tiny):
    tower = tiny.model.get_ref("mention")
    for inputs in (SpanInputs.empty(), documents().take(np.zeros(0, dtype=np.int64))):
        assert tower.predict(inputs).shape == (0, 16)
    vectors, backprop = tower.begin_update(build_inputs([[5, 6]], []))
    backprop(vectors)
    assert vectors.shape == (0, 16)


TEXTS, TEXT_OF = ["the cold flu of a river"], np.array([0, 0])
OFFSETS = np.array([[4, 8], [9, 12]])


def test_texts_of_entities_have_a_type_of_their_own(tiny_bert):
    plain, typed = (dual_encoder(str(tiny_bert), text_type=value) for value in (False, True))
    mentions = plain.read_mentions(TEXTS, TEXT_OF, OFFSETS)
    texts = plain.read_texts([("cold", ""), ("flu", "the virus")])
    assert np.array_equal(plain.encode_mentions(mentions), typed.encode_mentions(mentions))
    assert not np.allclose(plain.encode_texts(texts), typed.encode_texts(texts), atol=1e-3)
    assert plain.fingerprint != typed.fingerprint


@pytest.mark.parametrize("kind", ["roberta", "xlm-roberta", "mpnet", "deberta-v2"])
def test_without_token_types_the_markers_tell_the_two_apart(kind, tmp_path):
    encoder = dual_encoder(str(save_tiny(tmp_path / kind, kind)), text_type=True)
    mentions = encoder.read_mentions(TEXTS, TEXT_OF, OFFSETS)
    texts = encoder.read_texts([("cold", ""), ("flu", "the virus")])
    tower = encoder.model.get_ref("mention")
    specials = shim_of(tower).word_pieces.specials.tolist()
    assert specials[TITLE_PLACE] in texts.ids
    assert specials[END_PLACE] in mentions.ids
    for inputs in (mentions, texts):
        vectors, backprop = tower.begin_update(inputs)
        assert vectors.shape == (2, 16)
        assert np.isfinite(vectors).all()
        assert np.linalg.norm(vectors[0] - vectors[1]) > 1e-3
        backprop(np.ones_like(vectors))


NAIVE = {
    ClsPooling: lambda hidden, first, last, marker: hidden[0],
    StartPooling: lambda hidden, first, last, marker: hidden[marker],
    SpanMeanPooling: lambda hidden, first, last, marker: hidden[first : last + 1].mean(axis=0),
    FirstLastPooling: lambda hidden, first, last, marker: np.append(hidden[first], hidden[last]),
}


@pytest.mark.parametrize("pooling", NAIVE, ids=lambda pooling: pooling.__name__)
@given(st.integers(1, 4), st.integers(0, 12), st.integers(1, 6), st.integers(0, 2**16))
def test_poolings_equal_numpy(pooling, n_passages, n_spans, longest, seed):
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n_passages, longest, 3)).astype(np.float32)
    lengths = rng.integers(1, longest + 1, size=n_passages)
    passage = rng.integers(0, n_passages, size=n_spans)
    places = [np.sort(rng.integers(0, lengths[p], size=2)) for p in passage]
    places = np.array(places, dtype=np.int64).reshape(-1, 2)
    marker = np.array([rng.integers(0, lengths[p]) for p in passage], dtype=np.int64)
    mask = np.arange(longest) < lengths[:, None]
    # What stands past a passage's end must not count.
    hidden[~mask] = 1e6
    arrays = (hidden, passage, *places.T.copy(), marker)
    vectors = pooling()(SpanStates(*map(torch.from_numpy, arrays))).numpy()
    expected = [NAIVE[pooling](hidden[p], *places[i], marker[i]) for i, p in enumerate(passage)]
    expected = np.array(expected, dtype=np.float32)
    expected = expected.reshape(-1, pooled_width(pooling(), 3))
    assert_same_vectors(vectors, expected)


def test_mean_pooling_is_not_rounded_under_autocast():
    hidden = torch.rand(2, 9, 4)
    passage, first, last = torch.tensor([[0, 1], [1, 1], [7, 8]])
    states = SpanStates(hidden, passage, first, last, first)
    plain = SpanMeanPooling()(states)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(SpanMeanPooling()(states), plain)
