"""Entities and exemplars for tests, and their strings."""

from types import SimpleNamespace

import numpy as np
from spacy.vocab import Vocab

from spacy_arbo_el import ArboKB, SpanInputs
from spacy_arbo_el.retrieval.entity_strings import EntityStrings
from spacy_arbo_el.retrieval.exemplars import ExemplarStore


def datastore_of(*entities):
    """Entities without exemplars, and without an encoder."""
    return SimpleNamespace(kb=ArboKB(Vocab(), entities), exemplars=ExemplarStore())


def strings_of(datastore, earlier=None):
    return EntityStrings(datastore.kb, datastore.exemplars, None, earlier)


def inputs(count):
    """So many spans of one word piece."""
    zeros = np.zeros(count, dtype=np.int32)
    offsets = np.arange(count + 1, dtype=np.int64)
    return SpanInputs(zeros, offsets, np.arange(count), zeros, zeros, zeros)
