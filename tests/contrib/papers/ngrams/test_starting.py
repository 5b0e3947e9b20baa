import json
import shutil

import numpy as np
import pytest
import safetensors.numpy

from spacy_arbo_el.base.arrays import unit
from spacy_arbo_el.contrib.papers.ngrams.starting import (
    SETTINGS,
    WEIGHTS,
    save_encoder,
    word_piece_vectors,
)
from spacy_arbo_el.contrib.papers.ngrams.towers import build_ngram_encoder
from spacy_arbo_el.encoders.sources import BUNDLED

from .world import SMALL, inputs_of, ngram_encoder


@pytest.fixture
def saved(tmp_path):
    encoder = ngram_encoder()
    for node in encoder.model.walk():
        for name in node.param_names:
            node.set_param(name, node.get_param(name) + np.float32(0.25))
    encoder.weights_changed()
    save_encoder(encoder.model, tmp_path / "encoder")
    return encoder, tmp_path / "encoder"


def vector_of(encoder, word):
    return encoder.encode_texts(encoder.read_texts([(word, "")]))[0]


@pytest.mark.parametrize("vectors", [64, 384])
def test_words_begin_with_the_vectors_of_word_pieces(vectors):
    found, table = word_piece_vectors(BUNDLED, vectors)
    assert table.shape == (len(found), vectors) and len(found) > 20_000
    place = {word: row for row, word in enumerate(found)}
    table = unit(table)

    def similarity(left, right):
        return table[place[left]] @ table[place[right]]

    assert similarity("doctor", "physician") > similarity("doctor", "river") + 0.1
    settings = {"width": 96, "vectors": vectors, "rows": 65536, "hidden": 96, "subwords": 0}
    encoder = ngram_encoder(**settings, start=BUNDLED)
    vector = unit(np.stack([vector_of(encoder, w) for w in ("doctor", "physician", "river")]))
    assert vector[0] @ vector[1] > vector[0] @ vector[2]


def test_projection_keeps_the_largest_directions():
    _, whole = word_piece_vectors(BUNDLED, 384)
    _, part = word_piece_vectors(BUNDLED, 96)
    spread = np.sort(np.linalg.eigvalsh(whole.T @ whole))[::-1]
    assert (part**2).sum() == pytest.approx(spread[:96].sum(), rel=1e-3)


def test_wider_than_the_word_pieces_is_refused():
    with pytest.raises(ValueError, match="arbo-E851.*384"):
        ngram_encoder(vectors=385, start=BUNDLED)


def test_folder_without_word_pieces_is_refused(tmp_path):
    with pytest.raises(ValueError, match="arbo-E850.*vocab.txt"):
        ngram_encoder(start=str(tmp_path))
    (tmp_path / "vocab.txt").write_text("a\nb")
    safetensors.numpy.save_file({"x": np.zeros(2)}, str(tmp_path / "model.safetensors"))
    with pytest.raises(ValueError, match="arbo-E850.*word_embeddings"):
        ngram_encoder(start=str(tmp_path))


def test_saved_encoder_is_read_as_a_start(saved):
    encoder, folder = saved
    read = ngram_encoder(start=str(folder))
    assert read.fingerprint == encoder.fingerprint != ngram_encoder().fingerprint
    inputs = inputs_of(encoder)["mention"]
    assert np.array_equal(read.encode_mentions(inputs), encoder.encode_mentions(inputs))


def test_start_with_other_settings_names_them(saved):
    _, folder = saved
    with pytest.raises(ValueError, match="arbo-E853.*rows = 61, window = 4"):
        ngram_encoder(start=str(folder), rows=60, window=3)


@pytest.mark.parametrize("damage", ["missing", "shape", "infinite", "bytes", "settings"])
def test_damaged_start_is_an_error_with_its_path(saved, damage):
    _, folder = saved
    arrays = safetensors.numpy.load_file(str(folder / WEIGHTS))
    name = sorted(arrays)[0]
    if damage == "missing":
        del arrays[name]
    elif damage == "shape":
        arrays[name] = arrays[name][:-1]
    elif damage == "infinite":
        arrays[name].flat[0] = np.inf
    safetensors.numpy.save_file(arrays, str(folder / WEIGHTS))
    if damage == "bytes":
        (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:-9])
    elif damage == "settings":
        (folder / SETTINGS).write_text("{")
    with pytest.raises(ValueError, match="arbo-E852.*encoder"):
        ngram_encoder(start=str(folder))


def test_a_folder_of_something_else_is_not_replaced(saved):
    encoder, folder = saved
    (folder / "notes.txt").write_text("mine")
    with pytest.raises((ValueError, OSError)):
        save_encoder(encoder.model, folder)
    assert (folder / "notes.txt").read_text() == "mine"
    shutil.rmtree(folder)
    save_encoder(encoder.model, folder)
    assert json.loads((folder / SETTINGS).read_text())["rows"] == SMALL["rows"]
    assert build_ngram_encoder(**SMALL).attrs["start"] is None
