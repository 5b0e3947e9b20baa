"""Memory that is given back, and what a process says of its own."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from benchmarks.memory import peak_megabytes, resident_megabytes
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


PEAK = "from benchmarks.memory import *; print(peak_megabytes())"
FREED = """
import ctypes
from spacy_arbo_el.base.memory import release_memory
# Small blocks, of which every 2,000th stays: what is between them goes back only when asked to.
malloc, free = ctypes.CDLL(None).malloc, ctypes.CDLL(None).free
malloc.restype, free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
blocks = [malloc(16_000) for _ in range(20_000)]
for block in blocks:
    ctypes.memset(block, 1, 16_000)
for number, block in enumerate(blocks):
    if number % 2000:
        free(block)
before = resident_megabytes()
release_memory()
print(before - resident_megabytes())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not say")
def test_the_peak_is_that_of_the_process_itself_and_free_memory_goes_back_to_the_system():
    def numbers(code):
        return list(map(int, subprocess.check_output([sys.executable, "-c", code]).split()))

    alone, freed = numbers(PEAK + FREED)
    if "glibc" in os.confstr("CS_GNU_LIBC_VERSION").lower():
        assert freed > 200
    # More than this process has ever had.
    large = torch.ones(peak_megabytes() - resident_megabytes() + 512, (1 << 20) // 4)
    assert numbers(PEAK)[0] < alone + 64
    del large


def test_a_factory_imports_no_module_that_models_rarely_call():
    subprocess.check_call(
        [
            sys.executable,
            "-c",
            """
import sys
import spacy_arbo_el.factory
from spacy_arbo_el.base.extras import OnFirstUse
assert not {"sklearn", "torch._dynamo"} & sys.modules.keys()
assert OnFirstUse("math").sqrt(4) == 2
""",
        ]
    )
