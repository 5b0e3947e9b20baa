"""Devices and threads of searches. Torch need not be installed.

``torch`` is None where it isn't: linking with an encoder that is no transformer needs none.
"""

import os
import sys
from contextlib import AbstractContextManager
from typing import Any

from spacy.vocab import Vocab
from thinc.api import get_torch_default_device, use_ops
from thinc.backends import get_array_ops
from thinc.compat import torch

__all__ = ["default_device", "device_of_vectors", "n_threads", "on_gpu", "torch"]


def default_device() -> Any:
    """Thinc's device, as torch names it."""
    return get_torch_default_device()


def on_gpu() -> bool:
    """Return whether thinc's device is a torch GPU."""
    return torch is not None and default_device().type == "cuda"


def device_of_vectors(vocab: Vocab) -> AbstractContextManager:
    """Makes thinc's device that of a vocabulary's vectors, through which spaCy saves them.

    A thread has the CPU, whatever device its program has chosen, and could not save those of a GPU.
    """
    return use_ops(get_array_ops(vocab.vectors.data).name)


def n_threads() -> int:
    """The number of threads that a computation may use: torch's, or that of OpenMP."""
    if torch is not None:
        return torch.get_num_threads()
    faiss: Any = sys.modules.get("faiss")
    if faiss is not None:
        return faiss.omp_get_max_threads()
    threads = os.environ.get("OMP_NUM_THREADS", "")
    return int(threads) if threads.isdecimal() and int(threads) else os.cpu_count() or 1
