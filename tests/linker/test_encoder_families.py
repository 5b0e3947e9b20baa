"""``encoder = NAME`` works for the common families of transformers: read, train, save."""

import numpy as np
import pytest
import spacy
from thinc.api import Adam

from ..floats import assert_same_vectors
from ..tiny import KINDS, save_tiny
from .conftest import build_tiny
from .world import TRAIN, examples


def links(nlp):
    linker = nlp.get_pipe("arbo_linker")
    docs = (linker(example.reference) for example in examples(nlp, TRAIN))
    return [span.kb_id_ for doc in docs for span in linker.reader.all_mentions(doc)]


@pytest.mark.parametrize("kind", KINDS)
def test_an_encoder_of_each_family_links_trains_and_is_saved(tmp_path, kind):
    nlp = build_tiny(save_tiny(tmp_path / kind, kind))
    linker = nlp.get_pipe("arbo_linker")
    linker.datastore.refresh()
    vectors, losses = linker.exemplars.vectors.copy(), {}
    assert np.isfinite(vectors).all() and len(np.unique(vectors.round(4), axis=0)) > 1
    for _ in range(2):
        nlp.update(examples(nlp, TRAIN), sgd=Adam(0.01), losses=losses)
    assert 0 < losses["arbo_linker"] < np.inf
    before = links(nlp)
    assert np.abs(linker.exemplars.vectors - vectors).max() > 1e-3
    nlp.to_disk(tmp_path / "model")
    again = spacy.load(tmp_path / "model")
    loaded = again.get_pipe("arbo_linker")
    assert links(again) == before and any(before)
    assert_same_vectors(loaded.exemplars.vectors, linker.exemplars.vectors)
