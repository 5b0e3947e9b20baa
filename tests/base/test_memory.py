"""Memory that is given back stays readable."""

import sys

import numpy as np
import pytest

from benchmarks.memory import resident_megabytes
from spacy_arbo_el.base.memory import release_mapped

VALUES = 4_000_000


@pytest.mark.parametrize("is_changed", [False, True])
def test_pages_of_a_file_are_read_again_and_changes_stay(tmp_path, is_changed):
    np.arange(VALUES, dtype=np.int64).tofile(tmp_path / "values")
    mapped = np.memmap(tmp_path / "values", dtype=np.int64, mode="c")
    expected = mapped.sum()
    if is_changed:
        mapped += 1
        expected += VALUES
    before = resident_megabytes()
    release_mapped(mapped.ctypes.data, mapped.nbytes)
    after = resident_megabytes()
    assert mapped.sum() == expected
    if sys.platform == "linux" and not is_changed:
        assert after in range(before + 1)


def test_memory_below_a_page_is_left_alone():
    values = np.arange(4)
    release_mapped(values.ctypes.data, values.nbytes)
    assert values.tolist() == [0, 1, 2, 3]
