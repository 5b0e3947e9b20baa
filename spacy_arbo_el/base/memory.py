"""The memory of a process: what bounds it."""

import ctypes
import mmap
import os
import sys
from pathlib import Path

import numpy as np

# What Linux says of each page: bytes, whether it is in memory or swapped, and whether of a file.
_PAGES = Path("/proc/self/pagemap")
_PAGE_ENTRY = 8
_IN_USE = np.uint64(3 << 62)
_OF_A_FILE = np.uint64(1 << 61)
# oneDNN compiles a program for each shape of its inputs, and keeps a thousand of them by default.
# The shapes of training hardly ever come again, so that these took 20 MB a step, gigabytes in the
# end. The second name is that of the cache in ideep, through which torch calls oneDNN.
_CAPACITIES = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "16", "LRU_CACHE_CAPACITY": "8"}


def bound_caches() -> None:
    """Limit compiler caches, unless the environment does, before a transformer runs."""
    for name, capacity in _CAPACITIES.items():
        os.environ.setdefault(name, capacity)


def release_memory() -> None:
    """Return free memory to the system, where possible: glibc keeps it for blocks of its size."""
    if sys.platform == "linux":
        # musl has no such function.
        getattr(ctypes.CDLL(None), "malloc_trim", int)(0)


def release_mapped(address: int, size: int) -> None:
    """Return memory (in bytes) that was read from a mapped file to the system, where possible.

    It is read from the file again if needed. All stays where a part was changed, or is of no file.
    """
    first = -(-address // mmap.PAGESIZE)
    count = (address + size) // mmap.PAGESIZE - first
    if count > 0 and _is_unchanged(first, count):
        start = first * mmap.PAGESIZE
        length = count * mmap.PAGESIZE
        # A system that can't do it says so by a number: nothing has changed then.
        advise = ctypes.CDLL(None).madvise
        advise(ctypes.c_void_p(start), ctypes.c_size_t(length), mmap.MADV_DONTNEED)


def _is_unchanged(first: int, count: int) -> bool:
    """Return whether all pages are those of a mapped file. False where the system does not say."""
    try:
        with _PAGES.open("rb", buffering=0) as file:
            file.seek(first * _PAGE_ENTRY)
            pages = np.frombuffer(file.read(count * _PAGE_ENTRY), dtype=np.uint64)
    except OSError:
        return False
    changed = ((pages & _IN_USE) > 0) & ((pages & _OF_A_FILE) == 0)
    return len(pages) == count and not changed.any()
