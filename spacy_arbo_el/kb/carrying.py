"""Vectors of a folder that another one replaces: the texts of both may be the same."""

import sys
from contextlib import suppress
from pathlib import Path

import numpy as np

from ..storage.folders import link
from .texts import TextRows
from .vector_cache import VectorCache
from .vector_files import VectorFolder, read_header

# A file with more rows for each text than so many is written anew without those of older lists.
MOST_ROWS = 2
# The number of rows copied at a time.
STEP = 65536


def carry_over(path: Path, folder: Path) -> None:
    """Move the vectors in a folder to the one that replaces it.

    Rows that are damaged are left out, and where most are of texts that the replaced list had no
    more, these are, too.
    """
    keys_in_use = _keys_of_texts(path)
    target_folder = VectorFolder(folder)
    for file in path.glob("vectors-*.keys"):
        parsed = read_header(file)
        if (
            parsed is None
            or parsed[0].name != file.stem
            or target_folder.has(parsed[0])
        ):
            continue
        cache = VectorCache(parsed[0], VectorFolder(path), most_checked=sys.maxsize)
        is_small = not len(keys_in_use) or len(cache) <= MOST_ROWS * len(keys_in_use)
        if is_small and not cache.damage:
            for suffix in (".bin", ".keys"):
                link(file.with_suffix(suffix), folder / f"{file.stem}{suffix}")
            continue
        keys = cache.keys if is_small else np.intersect1d(cache.keys, keys_in_use)
        target = VectorCache(cache.about, target_folder)
        for start in range(0, len(keys), STEP):
            target.take_over(cache, keys[start : start + STEP])


def _keys_of_texts(path: Path) -> np.ndarray:
    """The keys of the texts that pipelines have of the list in a folder, each once."""
    keys = [np.zeros(0, dtype=np.int64)]
    for file in path.glob("texts-*"):
        with suppress(OSError, ValueError):
            texts = TextRows.from_bytes(file.read_bytes())
            keys.append(texts.keys[texts.live])
    return np.unique(np.concatenate(keys))
