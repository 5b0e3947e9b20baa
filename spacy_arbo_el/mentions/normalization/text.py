"""Normalizers, and text edits that keep mention offsets."""

from dataclasses import dataclass
from typing import Callable, List, Tuple

import numpy as np
from spacy.util import registry

from ...encoders.stretches import UNCUT, stretches_of

# Function from a text and the offsets of its mentions, (n, 2) int64 start and end character with
# the end exclusive, to the text to read instead and the offsets there. A normalizer changes
# nothing outside of mentions. It is a frozen dataclass. One that looks no further than at the words
# around a mention has ``is_local = True`` as an attribute: it gets stretches of long texts.
Normalizer = Callable[[str, np.ndarray], Tuple[str, np.ndarray]]

# Characters of the longest mentions that are changed.
MAX_LENGTH = 1000


@dataclass(frozen=True)
class NormalizerChain:
    """One normalizer after the other, in the order given."""

    normalizers: Tuple[Normalizer, ...]

    def __call__(self, text: str, offsets: np.ndarray) -> Tuple[str, np.ndarray]:
        for normalizer in self.normalizers:
            text, offsets = normalized(normalizer, text, offsets)
        return text, offsets


@registry.misc("spacy-arbo-el.NormalizerChain.v1")
def normalizer_chain(*normalizers: Normalizer) -> NormalizerChain:
    """One normalizer after the other, in the order given::

    [components.arbo_linker.mentions.normalizer]
    @misc = "spacy-arbo-el.NormalizerChain.v1"

    [components.arbo_linker.mentions.normalizer.*.abbreviations]
    @misc = "spacy-arbo-el.ExpandAbbreviations.v1"

    [components.arbo_linker.mentions.normalizer.*.spelling]
    @misc = "spacy-arbo-el.AmericanSpelling.v1"
    """
    return NormalizerChain(normalizers)


def normalized(normalizer: Normalizer, text: str, offsets: np.ndarray) -> Tuple[str, np.ndarray]:
    """Apply a normalizer. A local one gets stretches of a long text."""
    if len(text) <= UNCUT or not len(offsets) or not getattr(normalizer, "is_local", False):
        return normalizer(text, offsets)
    none = np.zeros(len(offsets), dtype=np.int64)
    cut = stretches_of([text], none, offsets, none)
    parts, at, length = [], 0, 0
    moved = np.empty_like(offsets)
    for number, (start, end) in enumerate(cut.places.tolist()):
        rows = np.flatnonzero(cut.text_of == number)
        before, (stretch, places) = text[at:start], normalizer(cut.texts[number], cut.offsets[rows])
        moved[rows] = places + length + len(before)
        parts += [before, stretch]
        at, length = end, length + len(before) + len(stretch)
    return "".join([*parts, text[at:]]), moved


def keep(
    normalizer: Normalizer, text: str, offsets: np.ndarray, kept: np.ndarray
) -> Tuple[str, np.ndarray]:
    """Normalize a text, but for some of its mentions.

    offsets: (n, 2) int64 start and end character of all mentions.
    kept: (n,) bool, those that stay unchanged, unless they overlap with others.
    """
    # Their ends are mentions without a character, which move with the text.
    ends = [np.repeat(offsets[kept, column], 2).reshape(-1, 2) for column in (0, 1)]
    text, moved = normalizer(text, np.concatenate([offsets[~kept], *ends]))
    rest, starts, stops = np.split(moved, np.cumsum([(~kept).sum(), kept.sum()]))
    result = np.empty_like(offsets)
    result[~kept] = rest
    result[kept] = np.stack([starts[:, 0], stops[:, 1]], axis=1)
    return text, result


def inside_of(text: str, offsets: np.ndarray) -> np.ndarray:
    """Mark characters inside a mention: (len(text) + 1,) bool.

    Mentions of more than ``MAX_LENGTH`` characters are no names, so they are left unchanged: the
    text does not grow without bound.

    offsets: (n, 2) int64 start and end character, end exclusive.
    """
    offsets = offsets[offsets[:, 1] - offsets[:, 0] <= MAX_LENGTH]
    depth = np.zeros(len(text) + 1, dtype=np.int64)
    np.add.at(depth, offsets[:, 0], 1)
    np.add.at(depth, offsets[:, 1], -1)
    return np.cumsum(depth) > 0


def replace(
    text: str, offsets: np.ndarray, edits: List[Tuple[int, int, str]]
) -> Tuple[str, np.ndarray]:
    """Replace parts of a text, moving mention offsets along.

    An offset inside a replaced part moves to the border of the replacement: a start to its start,
    an end to its end. Text inserted at the border of a mention is outside of it.

    offsets: (n, 2) int64 start and end character.
    edits: (start, end, replacement) in order, not overlapping.
    """
    parts, at = [], 0
    for start, end, replacement in edits:
        parts += [text[at:start], replacement]
        at = end
    starts = np.array([start for start, _, _ in edits], dtype=np.int64)
    ends = np.array([end for _, end, _ in edits], dtype=np.int64)
    growth = np.array([len(new) for _, _, new in edits], dtype=np.int64) - (ends - starts)
    before = np.concatenate([[0], np.cumsum(growth)])
    insertions = starts[starts == ends]
    moved = offsets.copy()
    for column in (0, 1):
        position = offsets[:, column]
        done = np.searchsorted(ends, position, side="right")
        if column == 1:
            done -= np.searchsorted(insertions, position, side="right")
            done += np.searchsorted(insertions, position, side="left")
        within = np.searchsorted(starts, position, side="left") > done
        if column == 0:
            moved[:, 0] = np.where(within, np.append(starts, 0)[done], position) + before[done]
        else:
            end = np.append(ends, 0)[done] + np.append(growth, 0)[done]
            moved[:, 1] = np.where(within, end, position) + before[done]
    return "".join([*parts, text[at:]]), moved
