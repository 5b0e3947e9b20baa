"""Small n-gram encoders."""

import numpy as np

from spacy_arbo_el.contrib.papers.ngrams.towers import build_ngram_encoder
from spacy_arbo_el.encoders.dual import DualEncoder

SMALL = {"width": 5, "vectors": 6, "rows": 61, "hidden": 8, "near": 2, "window": 4}
TEXTS = ["He has a bad cold in winter. It is", "Flu, or influenza", "cold"]
TEXT_OF = np.array([0, 1, 1, 2], dtype=np.int64)
OFFSETS = np.array([[13, 17], [0, 3], [8, 17], [0, 4]], dtype=np.int64)
ENTITIES = [
    ("cold\ncommon cold", "illness of the nose\nDisease\nState"),
    ("influenza", ""),
    ("", "a description alone"),
    ("flu", "\nDisease"),
]


def ngram_encoder(**settings):
    model = build_ngram_encoder(**{**SMALL, **settings})
    model.initialize()
    return DualEncoder(model)


def inputs_of(encoder):
    """What each tower reads."""
    return {
        "mention": encoder.read_mentions(TEXTS, TEXT_OF, OFFSETS),
        "entity": encoder.read_texts(ENTITIES),
    }
