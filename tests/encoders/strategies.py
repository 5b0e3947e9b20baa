"""Ragged sequences at random."""

import numpy as np
from hypothesis import strategies as st

from spacy_arbo_el.encoders.sequences import Sequences, offsets_of


def sequences_of(lists, seed=0):
    """``Sequences`` of the given lists of ids, with names at random places."""
    rng = np.random.default_rng(seed)
    lengths = np.array([len(x) for x in lists], dtype=np.int64)
    places = [np.sort(rng.integers(0, max(n, 1), size=3)) for n in lengths]
    first, anchor, last = np.array(places, dtype=np.int32).reshape(-1, 3).T
    flat = np.array([i for x in lists for i in x], dtype=np.int32)
    return Sequences(flat, offsets_of(lengths), first, last, anchor)


def lists_of(sequences):
    """The ids of each sequence, as lists."""
    bounds = zip(sequences.offsets[:-1], sequences.offsets[1:])
    return [sequences.ids[a:b].tolist() for a, b in bounds]


ragged = st.lists(st.lists(st.integers(0, 99), max_size=6), max_size=8)
