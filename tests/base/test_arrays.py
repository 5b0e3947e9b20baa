"""``TopK`` and the array helpers, against slow and obvious versions of them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el import TopK
from spacy_arbo_el.base.arrays import (
    AppendOnly,
    concat_tables,
    first_of_each,
    numbered,
    offsets_of,
    ragged_ranges,
    resized_table,
    take_or,
)

# An id and its score. Few different values, so that ids occur again and scores are equal.
pairs = st.tuples(st.integers(-1, 4), st.sampled_from([-1.5, 0.0, 0.5, 2.0]))


@st.composite
def tables(draw):
    """Rows of (id, score) as arrays (m, k), not sorted; -1 has the score -inf."""
    width = draw(st.integers(0, 5))
    rows = draw(st.lists(st.lists(pairs, min_size=width, max_size=width), max_size=4))
    ids = np.array([[i for i, _ in row] for row in rows], dtype=np.int64)
    scores = np.array(
        [[score if i >= 0 else -np.inf for i, score in row] for row in rows], dtype=np.float32
    )
    return ids.reshape(len(rows), width), scores.reshape(len(rows), width)


top_ks = tables().map(lambda table: TopK(*table))


def rows_of(top):
    """Each row as a list of (id, score)."""
    return [list(zip(*row)) for row in zip(top.ids.tolist(), top.scores.tolist())]


def padded(row, width):
    return row[:width] + [(-1, -np.inf)] * (width - len(row))


@given(st.lists(top_ks, max_size=3))
def test_concat_pads_all_rows_to_the_widest_table(parts):
    width = max((part.width for part in parts), default=0)
    actual = TopK.concat(parts)
    assert actual.width == width
    assert rows_of(actual) == [padded(row, width) for part in parts for row in rows_of(part)]


@given(top_ks, st.data())
def test_take_gives_rows_in_the_order_asked_for(top, data):
    numbers = st.integers(0, max(len(top) - 1, 0))
    rows = np.array(data.draw(st.lists(numbers, max_size=5 if len(top) else 0)), dtype=np.int64)
    assert rows_of(top.take(rows)) == [rows_of(top)[row] for row in rows]
    assert len(top.take(rows)) == len(rows)


@given(top_ks, st.integers(0, 7))
def test_first_cuts_and_resized_cuts_or_pads(top, count):
    assert rows_of(top.first(count)) == [row[:count] for row in rows_of(top)]
    assert top.resized(count).width == count
    assert rows_of(top.resized(count)) == [padded(row, count) for row in rows_of(top)]


@given(top_ks, st.data())
def test_where_removes_entries_and_moves_the_others_up(top, data):
    keep = data.draw(st.lists(st.booleans(), min_size=top.ids.size, max_size=top.ids.size))
    keep = np.array(keep, dtype=bool).reshape(top.ids.shape)
    expected = []
    for row, kept in zip(rows_of(top), keep.tolist()):
        left = [pair for pair, is_kept in zip(row, kept) if is_kept and pair[0] >= 0]
        expected.append(padded(left, top.width))
    assert rows_of(top.where(keep)) == expected


@given(top_ks, st.data())
def test_columns_and_scores_of_ids_are_those_of_their_first_occurrence(top, data):
    count = data.draw(st.integers(0, 3))
    asked = st.lists(st.integers(-1, 5), min_size=count, max_size=count)
    ids = [data.draw(asked) for _ in range(len(top))]
    ids = np.array(ids, dtype=np.int64).reshape(len(top), count)
    columns, scores = [], []
    for row, wanted in zip(rows_of(top), ids.tolist()):
        present = [i for i, _ in row]
        places = [present.index(i) if i >= 0 and i in present else -1 for i in wanted]
        columns.append(places)
        scores.append([row[place][1] if place >= 0 else -np.inf for place in places])
    assert top.columns_of(ids).tolist() == columns
    least = [min((score for i, score in row if i >= 0), default=0.0) for row in rows_of(top)]
    assert top.least.tolist() == [[low] for low in least]
    filled = [
        [low if place < 0 else score for score, place in zip(row, places)]
        for row, places, low in zip(scores, columns, least)
    ]
    assert top.scores_or_least(ids).tolist() == filled


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=20), st.integers(0, 4))
def test_first_of_each_finds_first_occurrences_within_rows(entries, count):
    entries = sorted(entries, key=lambda entry: entry[0])
    row, value = (np.array([entry[i] for entry in entries], dtype=np.int64) for i in (0, 1))
    expected = []
    for r in range(4):
        seen = {}
        for place, entry in enumerate(entries):
            if entry[0] == r:
                seen.setdefault(entry[1], place)
        places = list(seen.values())[:count]
        expected.append(places + [-1] * (count - len(places)))
    assert first_of_each(row, value, 4, count).tolist() == expected


@given(st.lists(st.sampled_from(["a", "b", ("a", 1), 2])))
def test_values_are_numbered_by_their_first_occurrence(values):
    numbers = numbered(values).tolist()
    assert numbers == [list(dict.fromkeys(values)).index(value) for value in values]


def test_take_or_fills_missing_places():
    values = np.array([1.5, 2.5], dtype=np.float32)
    taken = take_or(values, np.array([[1, -1], [0, 1]]), -np.inf)
    assert taken.tolist() == [[2.5, -np.inf], [1.5, 2.5]]
    assert taken.dtype == np.float32
    none = take_or(np.zeros(0, dtype=np.int64), np.array([[-1]]), -1)
    assert none.tolist() == [[-1]]
    assert none.dtype == np.int64


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5)), max_size=8))
def test_ragged_ranges_and_offsets(ranges):
    starts, lengths = (np.array([pair[i] for pair in ranges], dtype=np.int64) for i in (0, 1))
    expected = [at for start, length in ranges for at in range(start, start + length)]
    assert ragged_ranges(starts, lengths).tolist() == expected
    assert offsets_of(lengths).tolist() == [sum(lengths[:i]) for i in range(len(ranges) + 1)]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=8),
    st.sampled_from(["float32", "float16"]),
)
def test_each_version_of_an_append_only_array_keeps_its_rows(appends, dtype):
    """Each step appends to any of the versions so far, not only to the last one."""
    versions, expected = [AppendOnly.empty(dtype)], [np.zeros((0, 2), dtype=dtype)]
    for step, (of, count) in enumerate(appends):
        of %= len(versions)
        rows = np.full((count, 2), step, dtype="float32")
        versions.append(versions[of].with_rows(rows))
        expected.append(np.concatenate([expected[of], rows.astype(dtype)]))
    for version, rows in zip(versions, expected):
        assert version.rows.dtype == dtype
        assert len(version.rows) == version.length
        assert version.length == len(rows)
        assert not len(rows) or np.array_equal(version.rows, rows)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=4),
    st.integers(0, 4),
)
def test_tables_are_padded_or_cut(shapes, width):
    tables = [np.full(shape, i + 1) for i, shape in enumerate(shapes)]
    widest = max(table.shape[1] for table in tables)
    rows = [row + [0] * (widest - len(row)) for table in tables for row in table.tolist()]
    assert concat_tables(tables, 0).tolist() == rows
    resized = [row[:width] + [0] * (width - len(row)) for row in tables[0].tolist()]
    assert resized_table(tables[0], width, 0).tolist() == resized
