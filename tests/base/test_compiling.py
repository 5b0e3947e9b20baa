"""Compiled functions where Numba can keep no machine code."""

import os
import subprocess
import sys

import numpy as np
import pytest

from spacy_arbo_el.base import compiling
from spacy_arbo_el.base.compiling import numba_jit

CODE = """
import errno, tempfile
def read_only(*args, **kwargs):
    raise OSError(errno.EROFS, "Read-only file system")
tempfile.TemporaryFile = read_only  # how Numba finds out
import spacy_arbo_el.graph, spacy_arbo_el.retrieval.index.exact
import numpy as np
from spacy_arbo_el.base.arrays import first_of_each
print(first_of_each(np.array([0, 0, 0]), np.array([5, 5, 7]), 1, 3).tolist())
"""


@pytest.mark.slow
def test_a_read_only_system_without_a_home_compiles_without_a_cache(tmp_path):
    environment = {**os.environ, "HOME": "/dev/null/home", "NUMBA_CACHE_DIR": "/dev/null/cache"}
    command = [sys.executable, "-B", "-c", CODE]
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "[[0, 2, -1]]"


def test_machine_code_is_kept_where_it_can_be():
    def plus_one(x):
        return x + 1

    compiled = numba_jit()(plus_one)
    assert compiled(1) == 2
    assert not compiled.overloads
    assert (compiled(np.arange(9000)) == np.arange(1, 9001)).all()
    assert compiled.overloads
    assert compiled._cache.cache_path is not None


def test_a_function_that_gets_many_small_arrays_is_compiled():
    def plus_two(x):
        return x + 2

    compiled = numba_jit()(plus_two)
    array = np.arange(compiling.WORTH_COMPILING)
    calls = compiling.WORTH_COMPILING_IN_ALL // len(array)
    for _ in range(calls):
        assert compiled(array)[0] == 2
    assert not compiled.overloads
    assert compiled(array)[0] == 2
    assert compiled.overloads
