"""Reading rows of a file of vectors, against an array of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.kb import rowfile
from spacy_arbo_el.kb.rowfile import HEADER, RowFile


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A file of 50 rows, and the rows."""
    rows = np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32)
    path = tmp_path_factory.mktemp("rows") / "rows.bin"
    path.write_bytes(b"\0" * HEADER + rows.tobytes())
    return RowFile(path, rows.strides[0]), rows


@pytest.mark.skipif(not rowfile.can_read_rows(), reason="needs pread")
@given(numbers=st.lists(st.integers(0, 49)), max_runs=st.sampled_from([0, 3, 256]))
def test_rows_in_any_order(saved, numbers, max_runs):
    file, rows = saved
    numbers = np.array(numbers, dtype=np.int64)
    out = np.empty((len(numbers), 3), dtype=np.float32)
    before, rowfile.MAX_RUNS = rowfile.MAX_RUNS, max_runs
    try:
        file.read(numbers, out)
    finally:
        rowfile.MAX_RUNS = before
    np.testing.assert_array_equal(out, rows[numbers])


@pytest.mark.skipif(not rowfile.can_read_rows(), reason="needs pread")
@pytest.mark.parametrize("max_runs", [0, 256])
def test_the_first_row_behind_the_end_is_named(saved, max_runs, monkeypatch):
    file, _ = saved
    monkeypatch.setattr(rowfile, "MAX_RUNS", max_runs)
    with pytest.raises(ValueError, match="ends before row 50"):
        file.read(np.arange(47, 53), np.empty((6, 3), dtype=np.float32))
