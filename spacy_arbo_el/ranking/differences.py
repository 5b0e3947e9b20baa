"""Differences of two names, word by word.

Names of different entities may differ in a word, a number or a prefix: type 1 and type 2, hyper-
and hypothyroidism, John and Jane Smith. Their similarity is high all the same. Variants of one
name differ in the ending of a word, or in words that add little.
"""

import numpy as np

from ..base.compiling import jit_helper

# Words are variants of each other if they share so much of their beginning and their end.
ALIKE = 0.6
# Variants with a common ending of so many letters, and another beginning, are opposed.
ENDING = 4
# Code points of digits.
ZERO, NINE = 48, 57
# No name has more words that count.
MOST_WORDS = 32


@jit_helper
def is_spelled_together(  # pragma: no cover - compiled
    left: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    letters: np.ndarray,
    other_left: np.ndarray,
    other_starts: np.ndarray,
    other_ends: np.ndarray,
    other_letters: np.ndarray,
) -> bool:
    """Return whether words have the same letters in a row, such as quick silver and quicksilver.

    left, other_left: Which words of each side count.
    starts, ends: Where the letters of each word begin and end.
    """
    n, at = 0, 0
    for k in range(len(left)):
        if not left[k]:
            continue
        for letter in letters[starts[k] : ends[k]]:
            while n < len(other_left) and (
                not other_left[n] or other_starts[n] + at >= other_ends[n]
            ):
                n, at = n + 1, 0
            if n >= len(other_left) or abs(other_letters[other_starts[n] + at]) != abs(letter):
                return False
            at += 1
    while n < len(other_left) and (not other_left[n] or other_starts[n] + at >= other_ends[n]):
        n, at = n + 1, 0
    return n >= len(other_left)


@jit_helper
def compare_words(  # pragma: no cover - compiled
    start: int,
    end: int,
    words: np.ndarray,
    bounds: np.ndarray,
    letters: np.ndarray,
    other_start: int,
    other_end: int,
    other_words: np.ndarray,
    other_spans: np.ndarray,
    other_letters: np.ndarray,
) -> tuple[float, float, float]:
    """Compare the words of a mention with those of a name.

    start, end: The words of the mention are ``words[start:end]``, numbers of words.
    bounds: The letters of word k are ``letters[bounds[k]:bounds[k + 1]]``.
    other_start, other_end, other_words: The same for the name.
    other_spans: The letters of word k are ``other_letters[spans[k, 0]:spans[k, 1]]``.
    RETURNS: The share of the mention's letters that are in words which the name lacks; the share
        of the name's letters that are in words which the mention lacks; and 1 where numbers or
        beginnings are opposed, or one is negated.
    """
    end, other_end = min(end, start + MOST_WORDS), min(other_end, other_start + MOST_WORDS)
    left = np.ones(MOST_WORDS, dtype=np.bool_)
    other_left = np.ones(MOST_WORDS, dtype=np.bool_)
    total, other_total = 0, 0
    for k in range(start, end):
        total += bounds[k + 1] - bounds[k]
    for n in range(other_start, other_end):
        other_total += other_spans[n, 1] - other_spans[n, 0]
        for k in range(start, end):
            if left[k - start] and words[k] >= 0 and words[k] == other_words[n]:
                left[k - start] = other_left[n - other_start] = False
    if is_spelled_together(
        left[: end - start],
        bounds[start:end],
        bounds[start + 1 : end + 1],
        letters,
        other_left[: other_end - other_start],
        other_spans[other_start:other_end, 0],
        other_spans[other_start:other_end, 1],
        other_letters,
    ):
        return 0.0, 0.0, 0.0
    opposed, number, other_number = 0.0, False, False
    for k in range(start, end):
        if not left[k - start]:
            continue
        low, length = bounds[k], bounds[k + 1] - bounds[k]
        if ZERO <= letters[low] <= NINE:
            number, left[k - start] = True, False
            total -= length
            continue
        best, best_n, best_opposed = 0.0, -1, 0.0
        for n in range(other_start, other_end):
            other_low = other_spans[n, 0]
            other_length = other_spans[n, 1] - other_low
            if not other_left[n - other_start] or ZERO <= other_letters[other_low] <= NINE:
                continue
            shorter, longer = min(length, other_length), max(length, other_length)
            same, same_end = 0, 0
            while same < shorter and letters[low + same] == other_letters[other_low + same]:
                same += 1
            while (
                same_end < shorter - same
                and letters[low + length - 1 - same_end]
                == other_letters[other_low + other_length - 1 - same_end]
            ):
                same_end += 1
            alike = (same + same_end) / longer
            if shorter == 1:
                # An initial stands for a name.
                alike = float(same)
            if alike >= ALIKE and alike > best:
                best, best_n = alike, n
                begins_alike = same >= max(3.0, longer / 2)
                is_opposed = shorter > 1 and same_end >= ENDING and not begins_alike
                best_opposed = 1.0 if is_opposed else 0.0
        if best_n >= 0:
            left[k - start] = other_left[best_n - other_start] = False
            opposed = max(opposed, best_opposed)
    extra, missing = 0, 0
    for k in range(start, end):
        if left[k - start]:
            extra += bounds[k + 1] - bounds[k]
            if letters[bounds[k]] < 0:
                opposed = 1.0
    for n in range(other_start, other_end):
        if not other_left[n - other_start]:
            continue
        other_low = other_spans[n, 0]
        if ZERO <= other_letters[other_low] <= NINE:
            other_number = True
            continue
        missing += other_spans[n, 1] - other_low
        if other_letters[other_low] < 0:
            opposed = 1.0
    if number and other_number:
        opposed = 1.0
    return extra / max(total, 1), missing / max(other_total, 1), opposed
