"""Windows of a text's words that may be mentions, and the best of those that overlap."""

import re
from bisect import bisect_right
from collections.abc import Container, Sequence
from typing import NamedTuple

import numpy as np

from ..base.arrays import int_array, mix, offsets_of
from ..mentions.normalization.abbreviations import find_abbreviations, occurrences
from ..names.signs import CONJUNCTIONS, Joint, sign_of
from ..names.word_index import (
    WORD,
    WordIndex,
    WordWindows,
    is_stop_word,
    normal_word,
    words_of_name,
)

# The start and the end of a stretch of text, in characters.
Place = tuple[int, int]
# The most words of a window, stop words left out.
MOST_WORDS = 8
# Stop words that may stand within a name whose words are in another order.
_JOINING = "of the in for de la le du des del der von van di da do dos das"
JOINING = frozenset(_JOINING.split())
# What may stand between two words of a name: a dash or an apostrophe, and white space without an
# empty line.
GAP = re.compile(r"[^\S\n]*[-/'\u2019\u2010-\u2014]?[^\S\n]*\n?[^\S\n]*")
# Shorter words do not tell one name from others.
MIN_TELLING = 3
FACTOR = np.uint64(0x9E3779B97F4A7C15)


class Unit(NamedTuple):
    """A word of a text, or an abbreviation that the text defines.

    start, end: Its place in the text.
    words: The words that it stands for, normalized.
    group: Two units may be in one window where these are equal.
    is_short: Whether it is found in its own spelling only.
    joint: The sign before it with the words beside, where a name has these; None for no sign.
    """

    start: int
    end: int
    words: tuple[str, ...]
    group: int
    is_short: bool
    joint: Joint | None = None


def read_units(
    text: str, stop_words: Container[str], short: int, joints: Container[Joint] = ()
) -> list[Unit]:
    """Read the units of a text in order. Stop words are left out.

    short: Words that are no longer are found in their own spelling only.
    joints: The signs that a window may have between two words.
    """
    long_forms = find_abbreviations(text)
    places = occurrences(text, long_forms) if long_forms else ()
    abbreviations = {start: end for start, end, _ in places}
    units: list[Unit] = []
    group = last = 0
    for match in WORD.finditer(text):
        start, end = match.span()
        if start < last:
            continue
        word = match[1] or match[0]
        is_stop = start not in abbreviations and is_stop_word(word, "", stop_words)
        if is_stop and word.lower() in CONJUNCTIONS:
            continue
        joint = None
        if GAP.fullmatch(text, last, start) is None:
            joint = _joint(units, text[last:start], word, joints)
            group += joint is None
        last = abbreviations.get(start, end)
        if start in abbreviations:
            words = tuple(words_of_name(long_forms[text[start:last]], stop_words))
            units.append(Unit(start, last, words, group, False))
            continue
        if is_stop:
            group += word.lower() not in JOINING
            continue
        # The ending of a genitive is no part of a name that ends there.
        end = start + len(word)
        units.append(
            Unit(start, end, (normal_word(word),), group, len(word) <= short, joint)
        )
    return units


def _joint(
    units: Sequence[Unit], gap: str, word: str, joints: Container[Joint]
) -> Joint | None:
    """The joint of the last unit and a word, where it is one of these."""
    sign = sign_of(gap)
    if not units or not sign:
        return None
    joint = (units[-1].words[-1], sign, normal_word(word))
    return joint if joint in joints else None


def near_windows(
    units: Sequence[Unit], index: WordIndex, least: float
) -> dict[tuple[int, int], tuple[int, float]]:
    """Find the windows that are similar to a name of the index.

    RETURNS: By start and end character of each, the name that it is nearest to and the share of
        words in common (cosine).
    """
    kind_of, words = _kinds_of(units, index)
    start, length, key = _candidates(units, kind_of, words, index)
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    bounds = offsets_of(length[first])
    within = np.arange(bounds[-1]) - np.repeat(bounds[:-1], length[first])
    flat = kind_of[np.repeat(start[first], length[first]) + within]
    matches = _nearest(WordWindows(bounds, flat, *words), index, least)
    ends = zip(start.tolist(), (start + length - 1).tolist(), inverse.tolist())
    return {
        (units[first_unit].start, units[last_unit].end): matches[row]
        for first_unit, last_unit, row in ends
        if matches[row][0] >= 0
    }


def nearest_names(
    windows: Sequence[Sequence[Unit]], index: WordIndex, least: float
) -> list[tuple[int, float]]:
    """The name that the words of each window are nearest to, and the similarity; -1 for none."""
    kinds, words = _kinds_of([unit for window in windows for unit in window], index)
    bounds = offsets_of([len(window) for window in windows])
    return _nearest(WordWindows(bounds, kinds, *words), index, least)


def _nearest(
    windows: WordWindows, index: WordIndex, least: float
) -> list[tuple[int, float]]:
    names, similarities = index.nearest(windows, least)
    names[similarities < least] = -1
    return list(zip(names.tolist(), similarities.tolist()))


def _kinds_of(
    units: Sequence[Unit], index: WordIndex
) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """The kinds of units, which are those with the same words.

    RETURNS: (n,) int64, that of each unit; the words of names that each kind stands for, as the
        last fields of ``WordWindows``.
    """
    numbers: dict[tuple[str, ...], int] = {}
    kinds = [numbers.setdefault(unit.words, len(numbers)) for unit in units]
    matches_of_words = [
        [pair for word in words for pair in index.matches(word)] for words in numbers
    ]
    flat = [pair for pairs in matches_of_words for pair in pairs]
    return int_array(kinds), (
        offsets_of([len(pairs) for pairs in matches_of_words]),
        int_array([number for number, _ in flat]),
        np.array([similarity for _, similarity in flat], dtype=np.float32),
        int_array([len(words) for words in numbers]),
    )


def _candidates(
    units: Sequence[Unit],
    kind: np.ndarray,
    words: tuple[np.ndarray, ...],
    index: WordIndex,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The windows that begin and end with a word of a name, and have one that tells.

    kind: (n,) int64, the kind of each unit.
    words: As ``_kinds_of`` gives them.
    RETURNS: (w,) int64 first units, (w,) int64 lengths, and (w,) uint64 keys; windows of the same
        kinds have one key.
    """
    count = len(units)
    in_names = (np.diff(words[0]) > 0)[kind]
    group = int_array([unit.group for unit in units])
    short = np.array([unit.is_short for unit in units], dtype=bool)
    telling = offsets_of([_tells(unit, index) for unit in units])
    first = np.flatnonzero(in_names)
    key = np.zeros(len(first), dtype=np.uint64)
    windows_by_length = []
    for length in range(1, MOST_WORDS + 1):
        last = first + length - 1
        inside = last < count
        inside[inside] = group[first[inside]] == group[last[inside]]
        first = first[inside]
        last = last[inside]
        key = key[inside]
        key = mix(key + (kind[last].astype(np.uint64) + np.uint64(1)) * FACTOR)
        is_window = in_names[last] & (telling[last + 1] > telling[first])
        if length == 1:
            is_window &= ~short[last]
        lengths = np.full(int(is_window.sum()), length, dtype=np.int64)
        windows_by_length.append((first[is_window], lengths, key[is_window]))
    starts, sizes, keys = zip(*windows_by_length)
    return np.concatenate(starts), np.concatenate(sizes), np.concatenate(keys)


def _tells(unit: Unit, index: WordIndex) -> bool:
    """Return whether a unit may tell a name from others: a word that few names have."""
    return any(
        len(word) >= MIN_TELLING and word.isalpha() and word not in index.general
        for word in unit.words
    )


def best_without_overlaps(
    places: Sequence[tuple[int, int]], weights: Sequence[float]
) -> list[int]:
    """Choose the places that do not overlap and have the largest sum of weights.

    This is weighted interval scheduling, by dynamic programming over the ends. Of equal sums the
    one of fewer places counts, then that of earlier ones.

    places: Start and end of each, end exclusive.
    weights: Positive.
    RETURNS: The numbers of those chosen, in order of their places.
    """
    order = sorted(
        range(len(places)), key=lambda number: (places[number][1], places[number][0])
    )
    ends = [places[number][1] for number in order]
    # The best of the first places: the sum, and how few places.
    best: list[tuple[float, int]] = [(0.0, 0)]
    before: list[int] = []
    for row, number in enumerate(order):
        earlier = bisect_right(ends, places[number][0], 0, row)
        total, fewest = best[earlier]
        with_it = (total + weights[number], fewest - 1)
        before.append(earlier if with_it > best[row] else -1)
        best.append(max(with_it, best[row]))
    chosen = []
    row = len(order)
    while row:
        row -= 1
        if before[row] >= 0:
            chosen.append(order[row])
            row = before[row]
    return chosen[::-1]
