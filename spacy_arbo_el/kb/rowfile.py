"""Reading rows from anywhere in a file of vectors, without one Python call per row."""

import ctypes
import os
import weakref
from pathlib import Path
from typing import Any, Callable, Optional

import numpy as np
from numba import njit

from ..errors import Errors

# Rows in so few runs of neighbours are read run by run. More are read by a compiled loop, which
# takes half a second to compile.
MAX_RUNS = 256
# A file's header takes so many bytes, so that the rows after it are aligned to a page.
HEADER = 4096

_read_rows: Optional[Callable[..., int]] = None


def can_read_rows() -> bool:
    """Whether the system has ``pread``. Files are mapped where it has not."""
    return os.name == "posix"


def _compiled() -> Callable[..., int]:
    """The loop over ``pread``, compiled on first use."""
    global _read_rows
    if _read_rows is None:
        pread: Any = ctypes.CDLL(None).pread
        pread.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_longlong]
        pread.restype = ctypes.c_ssize_t

        @njit(nogil=True)
        def read_rows(
            file: int, stride: int, rows: np.ndarray, out: np.ndarray
        ) -> int:  # pragma: no cover - compiled
            for i in range(len(rows)):
                if pread(file, out[i].ctypes, stride, HEADER + rows[i] * stride) != stride:
                    return rows[i]
            return -1

        _read_rows = read_rows
    return _read_rows


class RowFile:
    """A file of rows of equal length after a header, held open.

    path: The file.
    stride: Bytes per row.
    """

    def __init__(self, path: Path, stride: int):
        self.path, self.stride = path, stride
        self._file = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._file)

    def read(self, rows: np.ndarray, out: np.ndarray) -> None:
        """Read rows; ValueError where the file ends before one of them.

        rows: (k,) int64.
        out: (k, width), contiguous, which is filled.
        """
        view = out.view(np.uint8).reshape(len(rows), self.stride)
        starts = np.flatnonzero(np.diff(rows, prepend=-2) != 1)
        if len(starts) > MAX_RUNS:
            failed = _compiled()(self._file, self.stride, rows, view)
        else:
            failed = self._read_runs(rows, starts, view)
        if failed >= 0:
            problem = f"{self.path.name} ends before row {failed}"
            raise ValueError(Errors.E013.format(where=self.path.parent, problem=problem))

    def _read_runs(self, rows: np.ndarray, starts: np.ndarray, view: np.ndarray) -> int:
        """Read rows of which those from one of ``starts`` to the next are neighbours.

        RETURNS: The first row that is not in the file, or -1.
        """
        for start, stop in zip(starts, [*starts[1:], len(rows)]):
            first, n_bytes, done = int(rows[start]), (stop - start) * self.stride, 0
            run = view[start:stop].data.cast("B")
            while done < n_bytes:
                # The system reads at most 2 GiB at a time.
                part = os.preadv(self._file, [run[done:]], HEADER + first * self.stride + done)
                if not part:
                    return first + done // self.stride
                done += part
        return -1
