"""Passages and spans against plain loops over lists."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el import SpanInputs
from spacy_arbo_el.encoders.inputs import EncodingCache, assemble, length_batches

from .strategies import passages_of, passages_of_ids, span_inputs, spans_of, windows_of

FIELDS = ("ids", "offsets", "passage", "first", "last", "marker")


def numbers_below(count):
    return st.lists(st.integers(0, max(count - 1, 0)), max_size=10 if count else 0)


def check_types(inputs, like):
    for name in FIELDS:
        assert getattr(inputs, name).dtype == getattr(like, name).dtype
    assert len(inputs) == len(inputs.passage)
    assert inputs.passages == len(inputs.lengths)


@given(span_inputs(), st.data())
def test_take_gives_the_spans_and_each_of_their_passages_once(inputs, data):
    indices = data.draw(numbers_below(len(inputs)))
    taken = inputs.take(np.array(indices, dtype=np.int64))
    check_types(taken, inputs)
    assert spans_of(taken) == [spans_of(inputs)[i] for i in indices]
    passages = list(dict.fromkeys(inputs.passage[i] for i in indices))
    assert passages_of(taken) == [passages_of(inputs)[p] for p in passages]
    assert taken.lengths.tolist() == [len(passages_of(inputs)[p]) for p in passages]


@given(st.lists(span_inputs(), max_size=4))
def test_concat_gives_all_passages_and_spans_in_order(parts):
    joined = SpanInputs.concat(iter(parts))
    check_types(joined, SpanInputs.empty())
    assert passages_of(joined) == [ids for part in parts for ids in passages_of(part)]
    assert spans_of(joined) == [span for part in parts for span in spans_of(part)]


@given(span_inputs(), st.data())
def test_spans_in_gives_the_spans_of_each_passage_in_order(inputs, data):
    passages = data.draw(numbers_below(inputs.passages))
    expected = [i for p in passages for i in range(len(inputs)) if inputs.passage[i] == p]
    assert inputs.spans_in(np.array(passages, dtype=np.int64)).tolist() == expected


@given(passages_of_ids, st.integers(-5, 5))
def test_padded(lists, fill):
    padded = windows_of(lists).padded(fill)
    longest = max(map(len, lists), default=0)
    assert padded.shape == (len(lists), longest)
    assert padded.dtype == np.int64
    assert padded.tolist() == [ids + [fill] * (longest - len(ids)) for ids in lists]


@given(span_inputs())
def test_keys_are_equal_for_equal_spans_of_equal_passages(inputs):
    keys, spans = inputs.keys(), spans_of(inputs)
    assert len(keys) == len(inputs)
    for i in range(len(inputs)):
        assert [key == keys[i] for key in keys] == [span == spans[i] for span in spans]


@given(span_inputs())
def test_to_dict_and_from_dict_keep_everything(inputs):
    again = SpanInputs.from_dict(inputs.to_dict())
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(again, name), getattr(inputs, name))


@given(st.integers(0, 5), st.integers(1, 4), st.integers(0, 2**16))
def test_assemble(count, segments, seed):
    rng = np.random.default_rng(seed)
    flat = rng.integers(0, 99, size=20)
    starts = rng.integers(0, 15, size=(segments, count))
    lengths = rng.integers(0, 5, size=(segments, count))
    ids, offsets = assemble(flat, *zip(starts, lengths))
    for i in range(count):
        parts = [flat[s : s + n].tolist() for s, n in zip(starts[:, i], lengths[:, i])]
        assert ids[offsets[i] : offsets[i + 1]].tolist() == sum(parts, [])
    assert offsets[-1] == len(ids)


@given(st.lists(st.integers(0, 9), max_size=20), st.integers(1, 30), st.integers(0, 9))
def test_batches_hold_every_passage_once_and_are_full(lengths, limit, max_padding):
    lengths = np.array(lengths, dtype=np.int64)
    batches = length_batches(lengths, limit, max_padding)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    longest = [lengths[batch].max() for batch in batches]
    assert longest == sorted(longest, reverse=True)
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[batch].max(), 1) <= limit
        assert (lengths[batch].max() - lengths[batch]).sum() <= max_padding
    for batch, following in zip(batches, batches[1:]):
        longer = lengths[[*batch, following[0]]]
        padding = (longer.max() - longer).sum()
        assert len(longer) * max(longer.max(), 1) > limit or padding > max_padding


CALLS = st.lists(st.tuples(st.sampled_from("ab"), st.lists(st.integers(0, 4), max_size=5)))


@given(CALLS)
def test_each_key_is_computed_once_for_each_kind(calls):
    kept, computed = EncodingCache(), []
    for kind, keys in calls:

        def compute(places, kind=kind, keys=keys):
            some = [keys[place] for place in places]
            computed.extend((kind, key) for key in some)
            return np.array([[key, ord(kind)] for key in some], dtype=float).reshape(-1, 2)

        expected = np.array([[key, ord(kind)] for key in keys], dtype=float).reshape(-1, 2)
        np.testing.assert_array_equal(kept.of(kind, keys, compute), expected)
    assert len(computed) == len(set(computed))
    assert set(computed) == {(kind, key) for kind, keys in calls for key in keys}
