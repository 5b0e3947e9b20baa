"""Towers of MOLEMAN: fewer layers, token types, a projection."""

import numpy as np
import pytest
import spacy
import transformers
from spacy.tokens import Span

from spacy_arbo_el.encoders.dual import DualEncoder, build_dual_encoder
from spacy_arbo_el.encoders.loading import keep_layers
from spacy_arbo_el.encoders.pooling import SpanMeanPooling
from spacy_arbo_el.encoders.projection import build_projection
from spacy_arbo_el.encoders.shim import shim_of
from spacy_arbo_el.encoders.transformer import build_transformer_encoder
from spacy_arbo_el.kb.entity import Entity

from ..tiny import dual_encoder, projected_tower, save_tiny

TEXTS, TEXT_OF = ["the cold flu of a river"], np.array([0, 0])
OFFSETS = np.array([[4, 8], [9, 12]])


@pytest.mark.parametrize("kind", ["bert", "distilbert", "roberta", "mpnet"])
def test_the_first_layers_are_kept_and_saved(kind, tmp_path):
    folder = str(save_tiny(tmp_path / kind, kind))
    whole, one = (dual_encoder(folder, layers=layers) for layers in (0, 1))
    states = [shim_of(e.model.get_ref("mention"))._model.state_dict() for e in (whole, one)]
    assert states[1].keys() < states[0].keys()
    assert all((states[0][name] == weights).all() for name, weights in states[1].items())
    loaded = dual_encoder(folder, layers=1)
    loaded.model.from_bytes(one.model.to_bytes())
    inputs = one.read_mentions(TEXTS, TEXT_OF, OFFSETS)
    vectors = one.encode_mentions(inputs)
    assert np.array_equal(loaded.encode_mentions(inputs), vectors)
    assert not np.allclose(whole.encode_mentions(inputs), vectors, atol=1e-3)
    with pytest.raises(ValueError, match="Can't keep 3 layers .* which has 2"):
        dual_encoder(folder, layers=3)


def test_texts_of_entities_have_a_type_of_their_own(tiny_bert):
    plain, typed = (dual_encoder(str(tiny_bert), text_type=value) for value in (False, True))
    mentions = plain.read_mentions(TEXTS, TEXT_OF, OFFSETS)
    texts = plain.read_texts([("cold", ""), ("flu", "the virus")])
    assert np.array_equal(plain.encode_mentions(mentions), typed.encode_mentions(mentions))
    assert not np.allclose(plain.encode_texts(texts), typed.encode_texts(texts), atol=1e-3)
    assert plain.fingerprint != typed.fingerprint


@pytest.mark.parametrize("kind", ["distilbert", "mpnet"])
def test_a_transformer_without_types_is_refused(kind, tmp_path):
    with pytest.raises(ValueError, match="no second token type"):
        dual_encoder(str(save_tiny(tmp_path / kind, kind)), text_type=True)


def test_the_type_counts_inside_of_a_projection_too(tiny_bert):
    fingerprints = set()
    for text_type in (False, True):
        tower = build_transformer_encoder(
            str(tiny_bert), 24, SpanMeanPooling(), precision="float32", text_type=text_type
        )
        encoder = DualEncoder(build_dual_encoder(build_projection(tower, 5)))
        encoder.load()
        fingerprints.add(encoder.fingerprint)
    assert len(fingerprints) == 2


def test_two_projections_begin_in_one_space(tiny_bert):
    weights = []
    for _ in range(2):
        tower = build_transformer_encoder(str(tiny_bert), 24, SpanMeanPooling())
        tower = build_projection(tower, 5)
        tower.initialize()
        weights.append(tower.get_param("W"))
    assert np.array_equal(*weights)


def test_shared_layers_can_not_be_separated():
    config = transformers.AlbertConfig(
        vocab_size=40,
        embedding_size=8,
        hidden_size=16,
        num_hidden_layers=4,
        num_attention_heads=2,
        intermediate_size=32,
    )
    with pytest.raises(ValueError, match="shares them"):
        keep_layers(transformers.AutoModel.from_config(config), 2, "albert")


@pytest.fixture
def projected(tiny_bert):
    tower = build_transformer_encoder(str(tiny_bert), 24, SpanMeanPooling(), precision="float32")
    encoder = DualEncoder(build_dual_encoder(build_projection(tower, 5)))
    assert encoder.load()
    return encoder


def test_vectors_are_projected(projected, tiny_bert):
    inputs = projected.read_mentions(TEXTS, TEXT_OF, OFFSETS)
    weights = projected.model.get_ref("mention").get_param("W")
    inside = dual_encoder(str(tiny_bert), precision="float32")
    expected = inside.encode_mentions(inside.read_mentions(TEXTS, TEXT_OF, OFFSETS)) @ weights
    np.testing.assert_allclose(projected.encode_mentions(inputs), expected, atol=1e-5)
    before = projected.fingerprint
    projected.model.get_ref("mention").set_param("W", weights * 2)
    projected.weights_changed()
    assert projected.fingerprint != before


def test_gradients_of_the_projection_by_finite_differences(projected):
    tower = projected.model.get_ref("mention")
    inputs = projected.read_mentions(TEXTS, TEXT_OF, OFFSETS)
    d_vectors = np.random.default_rng(0).normal(size=(2, 5)).astype("f")
    vectors, backprop = tower.begin_update(inputs)
    backprop(d_vectors)
    gradient, weights = tower.get_grad("W"), tower.get_param("W").copy()
    step = np.zeros_like(weights)
    step[3, 2] = 0.1
    tower.set_param("W", weights + step)
    slope = ((tower.predict(inputs) - vectors) * d_vectors).sum() / 0.1
    assert gradient[3, 2] == pytest.approx(slope, rel=1e-3)
    assert any(p.grad is not None for p in shim_of(tower.layers[0])._model.parameters())


def test_a_pipeline_with_a_projection_links_and_comes_back_from_disk(tiny_bert, tmp_path):
    nlp = spacy.blank("en")
    mention = projected_tower(tiny_bert, 5)
    model = {"@architectures": "spacy-arbo-el.DualEncoder.v1", "mention": mention}
    linker = nlp.add_pipe("arbo_linker", config={"model": model, "threshold": 0.0})
    linker.set_kb([Entity("f", "flu"), Entity("r", "river")])
    doc = nlp.make_doc("the flu")
    doc.set_ents([Span(doc, 1, 2, "X")])
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    loaded_doc = loaded(doc.copy())
    assert nlp(doc).ents[0]._.arbo == loaded_doc.ents[0]._.arbo
    assert loaded.get_pipe("arbo_linker").kb.entity_vector_length == 5


def test_settings_are_checked():
    with pytest.raises(ValueError, match="layers"):
        build_transformer_encoder("x", 24, SpanMeanPooling(), layers=-1)
    with pytest.raises(ValueError, match="model.width"):
        build_projection(build_transformer_encoder("x", 24, SpanMeanPooling()), 0)
