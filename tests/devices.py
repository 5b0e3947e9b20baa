"""Marks of tests that a machine may be unable to run.

For test modules: while a ``conftest.py`` is imported, the device is not chosen yet.
"""

import os

import pytest

from spacy_arbo_el.base.devices import on_gpu
from spacy_arbo_el.retrieval.index.faiss_index import faiss_has_gpu

needs_fork = pytest.mark.skipif(
    on_gpu() or not hasattr(os, "fork"), reason="needs fork, after which CUDA does not work"
)
needs_index = pytest.mark.skipif(
    on_gpu() and not faiss_has_gpu(), reason="without faiss-gpu, search on a GPU is exact"
)
