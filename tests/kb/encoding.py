"""Knowledge bases for tests, and vectors of names without an encoder."""

import numpy as np
from spacy.vocab import Vocab

from spacy_arbo_el import ArboKB
from spacy_arbo_el.kb.verbalizations import Names


def kb_of(*entities, **settings):
    """A knowledge base of entities, in memory."""
    return ArboKB(Vocab(), entities, **settings)


def encode(texts):
    """Vectors that depend only on the text."""
    return np.array([[len(a), sum(map(ord, a)) % 97, len(b)] for a, b in texts], np.float32)


def sync(kb, encoder="x", encode=encode, **options):
    """Encode the names that have no vector of an encoder. RETURNS: How many."""
    return kb.encode_missing(Names(), encode, encoder, **options)
