"""Texts with mentions in them: replace stretches, and keep the mentions' offsets right."""

from typing import Callable, List, Tuple

import numpy as np
from spacy.util import registry

# (text, offsets (n, 2) of its mentions) -> the text to read instead, and their offsets there
Rewrite = Callable[[str, np.ndarray], Tuple[str, np.ndarray]]


@registry.misc("spacy-arbo-el.RewriteChain.v1")
def rewrite_chain(*rewrites: Rewrite) -> Rewrite:
    """One rewrite after the other, in the order they are given."""

    def rewrite_all(text: str, offsets: np.ndarray) -> Tuple[str, np.ndarray]:
        for rewrite in rewrites:
            text, offsets = rewrite(text, offsets)
        return text, offsets

    return rewrite_all


def inside_of(text: str, offsets: np.ndarray) -> np.ndarray:
    """Which characters stand in a mention, (len(text) + 1,) bool.

    offsets: (n, 2) int64 start and end character, end exclusive.
    """
    depth = np.zeros(len(text) + 1, dtype=np.int64)
    np.add.at(depth, offsets[:, 0], 1)
    np.add.at(depth, offsets[:, 1], -1)
    return np.cumsum(depth) > 0


def replace(
    text: str, offsets: np.ndarray, edits: List[Tuple[int, int, str]]
) -> Tuple[str, np.ndarray]:
    """Replace stretches of a text and move offsets (n, 2) along.

    edits: (start, end, new) in order, not overlapping. An offset inside a stretch moves to
        the near side of what replaces it: a start to its start, an end to its end.
    """
    parts, at = [], 0
    for start, end, new in edits:
        parts += [text[at:start], new]
        at = end
    starts = np.array([start for start, _, _ in edits], dtype=np.int64)
    ends = np.array([end for _, end, _ in edits], dtype=np.int64)
    grown = np.array([len(new) for _, _, new in edits], dtype=np.int64) - (ends - starts)
    before = np.concatenate([[0], np.cumsum(grown)])
    moved = offsets.copy()
    for column in (0, 1):
        position = offsets[:, column]
        done = np.searchsorted(ends, position, side="right")
        within = np.searchsorted(starts, position, side="left") > done
        if column == 0:
            moved[:, 0] = np.where(within, np.append(starts, 0)[done], position) + before[done]
        else:
            end = np.append(ends, 0)[done] + np.append(grown, 0)[done]
            moved[:, 1] = np.where(within, end, position) + before[done]
    return "".join([*parts, text[at:]]), moved
