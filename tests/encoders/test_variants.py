"""Texts and mentions are told apart by token types, or by markers (MOLEMAN)."""

import numpy as np
import pytest

from spacy_arbo_el.encoders.shim import shim_of
from spacy_arbo_el.encoders.word_pieces import END_PLACE, TITLE_PLACE

from ..tiny import dual_encoder, save_tiny

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
    assert specials[TITLE_PLACE] in texts.ids and specials[END_PLACE] in mentions.ids
    for inputs in (mentions, texts):
        vectors, backprop = tower.begin_update(inputs)
        assert vectors.shape == (2, 16) and np.isfinite(vectors).all()
        assert np.linalg.norm(vectors[0] - vectors[1]) > 1e-3
        backprop(np.ones_like(vectors))
