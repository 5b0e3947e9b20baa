"""Arrays of a corpus in a folder, which are mapped."""

from pathlib import Path

import numpy as np

from ..storage.folders import FolderKind

FOLDER = FolderKind("values of a corpus", lambda folder: r"[a-z_]+\.(npy|bin|json|faiss)")


class MappedArrays:
    """The arrays of a folder, mapped. Changes would stay in memory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __getitem__(self, name: str) -> np.ndarray:
        path = self._folder / f"{name}.npy"
        return np.asarray(np.load(path, mmap_mode="c", allow_pickle=False))
