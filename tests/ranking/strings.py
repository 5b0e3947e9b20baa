"""Indices of strings for tests, made of lists."""

from types import SimpleNamespace

import numpy as np
from spacy.vocab import Vocab

from spacy_arbo_el import ArboKB, SpanInputs
from spacy_arbo_el.ranking.entity_strings import StringIndex
from spacy_arbo_el.retrieval.exemplars import ExemplarStore


def index_of(names, surface_forms=None):
    """An index in which all names are counted. ``names`` may change: see ``forget_names``."""

    def read_names(entities):
        return [names[e] if e < len(names) else [] for e in entities.tolist()]

    index = StringIndex(read_names)
    forms = [[] for _ in names] if surface_forms is None else surface_forms
    index.replace_surface_forms(np.arange(len(forms)), forms)
    index.count_names(np.arange(len(names)))
    return index


def datastore_of(*entities):
    """What ``EntityStrings`` reads of a datastore, without an encoder."""
    return SimpleNamespace(kb=ArboKB(Vocab(), entities), exemplars=ExemplarStore(), normalizer=None)


def inputs(count):
    """So many spans of one word piece."""
    zeros = np.zeros(count, dtype=np.int32)
    offsets = np.arange(count + 1, dtype=np.int64)
    return SpanInputs(zeros, offsets, np.arange(count), zeros, zeros, zeros)
