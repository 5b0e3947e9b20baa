"""Weights between those before and after training: in the saved pipeline, not in training."""

import numpy as np
import pytest
import spacy
from spacy.util import registry

from spacy_arbo_el.corpora.docbin import write_docbin
from spacy_arbo_el.runs.averaging import averaged, averaged_copy

from ..encoders import numpy_tower  # noqa: F401  registers the architecture
from ..linker.conftest import build, build_tiny
from ..linker.world import DEV, TRAIN, annotated, examples

CALLBACK = "spacy-arbo-el.Calibrate.v1"


def weights(nlp):
    shim = nlp.get_pipe("arbo_linker").model.get_ref("mention").shims[0]
    return [parameter.detach().numpy().copy() for parameter in shim._model.parameters()]


def test_what_is_saved_has_weights_in_between_and_their_vectors(tiny_bert, tmp_path):
    nlp = build_tiny(tiny_bert)
    write_docbin([annotated(nlp, text) for text in DEV * 10], tmp_path / "dev.spacy")
    start = weights(nlp)
    nlp.update(examples(nlp, TRAIN), sgd=nlp.create_optimizer())
    trained = weights(nlp)
    assert max(np.abs(a - b).max() for a, b in zip(start, trained)) > 1e-4
    settings = {"@callbacks": CALLBACK, "path": tmp_path / "dev.spacy", "start_share": 0.25}
    before_to_disk = registry.resolve({"callback": settings})["callback"]
    before_to_disk(nlp).to_disk(tmp_path / "model")
    saved = spacy.load(tmp_path / "model")
    for one, other, mean in zip(start, trained, weights(saved)):
        np.testing.assert_allclose(mean, 0.25 * one + 0.75 * other, rtol=1e-5, atol=1e-7)
    linker = saved.get_pipe("arbo_linker")
    assert linker.kb.fingerprint == linker.encoder.text_fingerprint
    assert linker.calibration != nlp.get_pipe("arbo_linker").calibration
    for one, other in zip(trained, weights(nlp)):
        np.testing.assert_array_equal(one, other)


def test_weights_are_in_between_in_the_block_alone(tiny_bert):
    """Vectors too: what is linked in the block is what a saved pipeline links."""
    nlp = build_tiny(tiny_bert)
    linker = nlp.get_pipe("arbo_linker")
    start, before = weights(nlp), linker.encoder.fingerprint
    with averaged(nlp, 0.25):
        assert linker.encoder.fingerprint == before, "nothing is trained yet"
    nlp.update(examples(nlp, TRAIN), sgd=nlp.create_optimizer())
    trained, fingerprint = weights(nlp), linker.encoder.fingerprint
    with pytest.raises(KeyError), averaged(nlp, 0.25):
        for one, other, mean in zip(start, trained, weights(nlp)):
            np.testing.assert_allclose(mean, 0.25 * one + 0.75 * other, rtol=1e-5, atol=1e-7)
        assert linker.encoder.fingerprint not in (before, fingerprint)
        raise KeyError
    assert all(map(np.array_equal, weights(nlp), trained))
    assert linker.encoder.fingerprint == fingerprint and linker.encoder.is_trained


def test_an_encoder_without_a_transformer_is_an_error():
    nlp = build(model={"mention": {"@architectures": "test.HashedEncoder.v1"}})
    with pytest.raises(ValueError, match="start_share averages transformers"):
        averaged_copy(nlp, 0.5)


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan"), "half"])
def test_bad_shares(share):
    with pytest.raises(ValueError, match="training.before_to_disk.start_share"):
        registry.callbacks.get(CALLBACK)(path="dev", start_share=share)
