"""Normalizers of texts: the edits they make, plain characters, American spelling."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from spacy.util import registry

from ...base.arrays import int_array
from ...encoders.stretches import UNCUT, stretches_of
from ...names.characters import TYPOGRAPHY, plain_characters
from ...names.words import BRITISH, american_stem

# Function from a text and the offsets of its mentions, (n, 2) int64 start and end character with
# the end exclusive, to the text to read instead and the offsets there. A normalizer changes
# nothing outside of mentions. It is a frozen dataclass. One that looks no further than at the words
# around a mention has ``is_local = True`` as an attribute: it gets stretches of long texts.
Normalizer = Callable[[str, np.ndarray], tuple[str, np.ndarray]]

# Characters of the longest mentions that are changed.
MAX_LENGTH = 1000


@dataclass(frozen=True)
class NormalizerChain:
    """One normalizer after the other, in the order given."""

    normalizers: tuple[Normalizer, ...]

    def __call__(self, text: str, offsets: np.ndarray) -> tuple[str, np.ndarray]:
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


def normalized(
    normalizer: Normalizer, text: str, offsets: np.ndarray
) -> tuple[str, np.ndarray]:
    """Apply a normalizer. A local one gets stretches of a long text."""
    if (
        len(text) <= UNCUT
        or not len(offsets)
        or not getattr(normalizer, "is_local", False)
    ):
        return normalizer(text, offsets)
    none = np.zeros(len(offsets), dtype=np.int64)
    cut = stretches_of([text], none, offsets, none)
    order = np.argsort(cut.text_of, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(cut.text_of[order])) + 1)
    pieces = []
    at = 0
    length = 0
    moved = np.empty_like(offsets)
    for of_stretch, (start, end), rows in zip(cut.texts, cut.places.tolist(), groups):
        before, (stretch, places) = (
            text[at:start],
            normalizer(of_stretch, cut.offsets[rows]),
        )
        moved[rows] = places + length + len(before)
        pieces += [before, stretch]
        at = end
        length += len(before) + len(stretch)
    return "".join([*pieces, text[at:]]), moved


def keep(
    normalizer: Normalizer, text: str, offsets: np.ndarray, unchanged: np.ndarray
) -> tuple[str, np.ndarray]:
    """Normalize a text, but for some of its mentions.

    offsets: (n, 2) int64 start and end character of all mentions.
    unchanged: (n,) bool, those that stay unchanged, unless they overlap with others.
    """
    # Their ends are mentions without a character, which move with the text.
    ends = [
        np.repeat(offsets[unchanged, column], 2).reshape(-1, 2) for column in (0, 1)
    ]
    text, moved = normalizer(text, np.concatenate([offsets[~unchanged], *ends]))
    others_moved, starts, stops = np.split(
        moved, np.cumsum([(~unchanged).sum(), unchanged.sum()])
    )
    result = np.empty_like(offsets)
    result[~unchanged] = others_moved
    result[unchanged] = np.stack([starts[:, 0], stops[:, 1]], axis=1)
    return text, result


def normalized_names(normalizer: Normalizer | None, names: Sequence[str]) -> list[str]:
    """Normalize names as mentions are, so that both stay comparable; None without a normalizer."""
    if normalizer is None:
        return []
    spans = (int_array([[0, len(name)]]) for name in names)
    return [normalizer(name, span)[0] for name, span in zip(names, spans)]


def with_names(
    text: str, offsets: np.ndarray, names: Sequence[str]
) -> tuple[str, np.ndarray]:
    """Write names in the places of mentions. Those that overlap with others stay.

    offsets: (n, 2) int64 start and end character, end exclusive.
    names: One for each mention, "" for those that stay.
    """
    starts, ends = offsets.T
    places = list(zip(starts.tolist(), ends.tolist()))
    # Those that begin before the end of a mention, but for those that end before it begins.
    overlapping = np.searchsorted(np.sort(starts), ends)
    overlapping -= np.searchsorted(np.sort(ends), starts, side="right")
    copies = Counter(places)
    edits = {
        place: name
        for place, name, count in zip(places, names, overlapping.tolist())
        if name and count == copies[place]
    }
    return replace(
        text, offsets, [(*place, name) for place, name in sorted(edits.items())]
    )


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
    text: str, offsets: np.ndarray, edits: list[tuple[int, int, str]]
) -> tuple[str, np.ndarray]:
    """Replace parts of a text, moving mention offsets along.

    An offset inside a replaced part moves to the border of the replacement: a start to its start,
    an end to its end. Text inserted at the border of a mention is outside of it.

    offsets: (n, 2) int64 start and end character.
    edits: (start, end, replacement) in order, not overlapping.
    """
    pieces = []
    at = 0
    for start, end, replacement in edits:
        pieces += [text[at:start], replacement]
        at = end
    starts = int_array([start for start, _, _ in edits])
    ends = int_array([end for _, end, _ in edits])
    growth = int_array([len(new) for _, _, new in edits]) - (ends - starts)
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
            moved[:, 0] = (
                np.where(within, np.append(starts, 0)[done], position) + before[done]
            )
        else:
            end = np.append(ends, 0)[done] + np.append(growth, 0)[done]
            moved[:, 1] = np.where(within, end, position) + before[done]
    return "".join([*pieces, text[at:]]), moved


@registry.misc("spacy-arbo-el.PlainCharacters.v1")
@dataclass(frozen=True)
class PlainCharacters:
    """Read typography in mentions as plain characters: "β-cell" as "beta-cell".

    Greek letters that are symbols get their names; Greek words stay. Words that are divided at the
    end of a line are joined, line breaks are spaces, dashes are hyphens, and compatibility
    characters such as ligatures are what they stand for (NFKC). Put it first in a chain::

        [components.arbo_linker.mentions.normalizer]
        @misc = "spacy-arbo-el.PlainCharacters.v1"
    """

    is_local: ClassVar[bool] = True

    def __call__(self, text: str, offsets: np.ndarray) -> tuple[str, np.ndarray]:
        return _rewritten(text, offsets, TYPOGRAPHY, plain_characters)


@registry.misc("spacy-arbo-el.AmericanSpelling.v1")
@dataclass(frozen=True)
class AmericanSpelling:
    """Normalizes British spellings in mentions: "anaemia" to "anemia".

    Use it where texts have both and the knowledge base has one, in biomedicine above all::

        [components.arbo_linker.mentions.normalizer]
        @misc = "spacy-arbo-el.AmericanSpelling.v1"
    """

    is_local: ClassVar[bool] = True

    def __call__(self, text: str, offsets: np.ndarray) -> tuple[str, np.ndarray]:
        return _rewritten(text, offsets, BRITISH, lambda m: american_stem(m.group()))


def _rewritten(
    text: str,
    offsets: np.ndarray,
    pattern: re.Pattern[str],
    rewrite: Callable[[re.Match[str]], str],
) -> tuple[str, np.ndarray]:
    """Rewrite what a pattern finds in mentions."""
    matches = list(pattern.finditer(text)) if len(offsets) else []
    if not matches:
        return text, offsets
    inside = inside_of(text, offsets)
    edits = [
        (*match.span(), rewrite(match))
        for match in matches
        if inside[slice(*match.span())].all()
    ]
    changes = [edit for edit in edits if text[edit[0] : edit[1]] != edit[2]]
    return replace(text, offsets, changes) if changes else (text, offsets)
