"""Ragged arrays against plain loops over lists."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.encoders.sequences import (
    Sequences,
    assemble,
    length_batches,
    offsets_of,
    ragged_ranges,
)

from .strategies import lists_of, ragged, sequences_of


@given(ragged, st.data())
def test_take(lists, data):
    sequences = sequences_of(lists)
    positions = st.integers(0, max(len(lists) - 1, 0))
    indices = data.draw(st.lists(positions, max_size=10 if lists else 0))
    taken = sequences.take(np.array(indices, dtype=np.int64))
    assert len(taken) == len(indices)
    assert lists_of(taken) == [lists[i] for i in indices]
    assert taken.lengths.tolist() == [len(lists[i]) for i in indices]
    for name in ("first", "last", "anchor"):
        all_of_them = getattr(sequences, name)
        assert getattr(taken, name).tolist() == [all_of_them[i] for i in indices]


@given(st.lists(ragged, max_size=4))
def test_concat(parts):
    sequences = [sequences_of(lists, seed) for seed, lists in enumerate(parts)]
    together = Sequences.concat(iter(sequences))
    assert lists_of(together) == [ids for lists in parts for ids in lists]
    for name in ("first", "last", "anchor"):
        expected = [x for part in sequences for x in getattr(part, name).tolist()]
        assert getattr(together, name).tolist() == expected


@given(ragged, st.integers(-5, 5))
def test_padded(lists, fill):
    padded = sequences_of(lists).padded(fill)
    longest = max(map(len, lists), default=0)
    assert padded.shape == (len(lists), longest) and padded.dtype == np.int64
    assert padded.tolist() == [ids + [fill] * (longest - len(ids)) for ids in lists]


@given(ragged)
def test_as_arrays_and_back(lists):
    sequences = sequences_of(lists)
    again = Sequences.from_dict(sequences.to_dict())
    assert lists_of(again) == lists
    assert again.anchor.tolist() == sequences.anchor.tolist()


def test_empty():
    none = Sequences.empty()
    assert len(none) == 0 and none.padded(0).shape == (0, 0)
    assert lists_of(Sequences.concat([none, sequences_of([[1, 2]]), none])) == [[1, 2]]
    assert len(Sequences.concat([])) == 0


@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(0, 5)), max_size=10))
def test_ragged_ranges(pairs):
    starts, lengths = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    expected = [x for start, length in pairs for x in range(start, start + length)]
    assert ragged_ranges(starts, lengths).tolist() == expected
    assert offsets_of(lengths).tolist() == [sum(lengths[:i]) for i in range(len(lengths) + 1)]


@given(st.integers(0, 5), st.integers(1, 4), st.integers(0, 2**16))
def test_assemble(count, segments, seed):
    rng = np.random.default_rng(seed)
    flat = rng.integers(0, 99, size=20)
    starts = rng.integers(0, 15, size=(segments, count))
    lengths = rng.integers(0, 5, size=(segments, count))
    ids, offsets = assemble(flat, list(starts), list(lengths))
    for i in range(count):
        parts = [flat[s : s + n].tolist() for s, n in zip(starts[:, i], lengths[:, i])]
        assert ids[offsets[i] : offsets[i + 1]].tolist() == sum(parts, [])
    assert offsets[-1] == len(ids)


@given(st.lists(st.integers(0, 9), max_size=20), st.integers(1, 30), st.booleans())
def test_batches_hold_everything_once_within_the_limit(lengths, limit, mixed):
    lengths = np.array(lengths, dtype=np.int64)
    batches = length_batches(lengths, limit, mixed)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    longest = [max(lengths[batch].tolist()) for batch in batches]
    assert longest == sorted(longest, reverse=True)
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[batch].max(), 1) <= limit
        assert mixed or len(set(lengths[batch].tolist())) == 1


@given(st.lists(st.integers(1, 9), max_size=20), st.integers(9, 30), st.booleans())
def test_no_batch_could_take_the_next_sequence_too(lengths, limit, mixed):
    lengths = np.array(lengths, dtype=np.int64)
    batches = length_batches(lengths, limit, mixed)
    for batch, following in zip(batches, batches[1:]):
        width, next_width = lengths[batch].max(), lengths[following[0]]
        full = (len(batch) + 1) * width > limit
        assert full or (not mixed and next_width != width)


@pytest.mark.parametrize("mixed", [True, False])
def test_batches_are_the_same_every_time(mixed):
    lengths = np.array([3, 5, 3, 5, 3, 1])
    batches = [batch.tolist() for batch in length_batches(lengths, 10, mixed)]
    expected = [[1, 3], [0, 2, 4], [5]]
    assert batches == expected
