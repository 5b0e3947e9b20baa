"""Token types of texts, of MOLEMAN."""

import numpy as np
import pytest

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


@pytest.mark.parametrize("kind", ["distilbert", "mpnet"])
def test_a_transformer_without_types_is_refused(kind, tmp_path):
    with pytest.raises(ValueError, match="no second token type"):
        dual_encoder(str(save_tiny(tmp_path / kind, kind)), text_type=True)
