"""The ranker's weights that come with the package."""

from types import SimpleNamespace

import numpy as np
import pytest
import spacy

from spacy_arbo_el.ranking import feature_ranker
from spacy_arbo_el.ranking.feature_ranker import (
    PRETRAINED,
    PROBES,
    FeatureRanker,
    PretrainedWeights,
    pretrained_weights,
)
from spacy_arbo_el.storage.files import pack_arrays, unpack_arrays

from ..expecting import raises


@pytest.fixture(scope="module")
def linker():
    linker = spacy.blank("en").add_pipe("arbo_linker")
    linker.encoder.require_ready("arbo_linker")
    return linker


def other_encoder(encoder, change, name="changed"):
    """An encoder whose vectors are those of another one, turned by a function."""
    return SimpleNamespace(
        fingerprint=f"{encoder.fingerprint} {name}",
        read_mentions=encoder.read_mentions,
        read_texts=encoder.read_texts,
        encode_texts=lambda inputs: change(encoder.encode_texts(inputs)),
        encode_mentions=lambda inputs: change(encoder.encode_mentions(inputs)),
    )


def test_the_weights_of_the_package_are_for_the_bundled_encoder(linker):
    shipped = pretrained_weights()
    assert shipped.vectors.shape == (2 * len(PROBES), 384)
    assert shipped.suit(linker.encoder)
    assert linker.reranker.weights is None  # nothing was learned yet
    assert linker.reranker.weights_in(linker.stages.context) is shipped.weights


def test_the_weights_do_not_suit_other_encoders(linker):
    noise = np.random.default_rng(0).normal(scale=0.01, size=384).astype(np.float32)
    changes = {
        "trained": lambda vectors: vectors + noise * np.linalg.norm(vectors),
        "narrower": lambda vectors: vectors[:, :100],
        "no vectors": np.zeros_like,
    }
    for change in changes.values():
        assert not pretrained_weights().suit(other_encoder(linker.encoder, change))
    # Rounding, as on a GPU, does not matter.
    rounded = other_encoder(
        linker.encoder, lambda v: v.astype(np.float16).astype(np.float32), "rounded"
    )
    assert pretrained_weights().suit(rounded)


def test_pretrained_weights_need_the_features_that_they_were_fitted_on(linker):
    context = linker.stages.context
    assert FeatureRanker(8).weights_in(context) is pretrained_weights().weights
    assert FeatureRanker(pretrained=False).weights_in(context) is None
    config = {"retriever": {"similarity": {"@misc": "spacy-arbo-el.Dot.v1"}}}
    dot = spacy.blank("en").add_pipe("arbo_linker", config=config)
    dot.encoder.require_ready("arbo_linker")
    assert FeatureRanker().weights_in(dot.stages.context) is None


def test_weights_survive_bytes():
    data = PRETRAINED.read_bytes()
    again = PretrainedWeights.from_bytes(PretrainedWeights.from_bytes(data).to_bytes())
    assert again.weights.to_bytes() == pretrained_weights().weights.to_bytes()
    assert (again.vectors == pretrained_weights().vectors).all()


def test_a_damaged_file_of_weights_is_refused(tmp_path, monkeypatch):
    data = PRETRAINED.read_bytes()
    flipped = bytearray(data)
    flipped[len(data) // 2] ^= 1
    arrays = unpack_arrays(data)
    damaged = {
        "cut": data[: len(data) // 2],
        "flipped": bytes(flipped),
        "empty": b"",
        "no probes": pack_arrays({"weights": arrays["weights"]}),
        "too few probes": pack_arrays({**arrays, "vectors": arrays["vectors"][1:]}),
        "no weights": pack_arrays({**arrays, "weights": np.zeros(9, np.uint8)}),
    }
    pretrained_weights.cache_clear()
    try:
        for name, content in damaged.items():
            path = tmp_path / name
            path.write_bytes(content)
            monkeypatch.setattr(feature_ranker, "PRETRAINED", path)
            with raises(f"{name}, are damaged or missing.*Install"):
                pretrained_weights()
        monkeypatch.setattr(feature_ranker, "PRETRAINED", tmp_path / "nowhere")
        with raises("nowhere, are damaged or missing"):
            pretrained_weights()
    finally:
        pretrained_weights.cache_clear()
