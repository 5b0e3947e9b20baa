"""The comparison of strings by their features: n-grams, words, numbers, and what they differ by.

Names of different entities may differ in a word, a number or a prefix: type 1 and type 2, hyper-
and hypothyroidism, John and Jane Smith. Their similarity is high all the same. Variants of one
name differ in the ending of a word, in words that add little, or in words that other entities of
the list have for each other.
"""

from typing import NamedTuple

import numpy as np

from ..base.compiling import jit_helper, numba_jit

# Words are variants of each other if they share so much of their beginning and their end.
ALIKE = 0.6
# Variants with a common ending of so many letters, and another beginning, are opposed.
ENDING = 4
# Code points of digits.
ZERO, NINE = 48, 57
# No name has more words that count.
MOST_WORDS = 32


class StringFeatures(NamedTuple):
    """The features of ``n`` strings.

    ngram_bounds: (n + 1,) int64, the n-grams of string i are ``ngrams[bounds[i]:bounds[i + 1]]``.
    ngrams: Numbers of n-grams, int32, each once per string.
    counts: 1 + the logarithm of how often the n-gram occurs in the string, float32.
    word_bounds: (n + 1,) int64, likewise for words.
    words: Numbers of words, int32, each once per string; -1 for words that no string had.
    numbers: (n,) int32, equal for strings with the same numbers in them; -1 for numbers that no
        string had.
    letter_bounds: (words + 1,) int64, the letters of word k are at ``[bounds[k]:bounds[k + 1]]``.
    letters: Code points of the letters, int32; negative in a word that negates.
    """

    ngram_bounds: np.ndarray
    ngrams: np.ndarray
    counts: np.ndarray
    word_bounds: np.ndarray
    words: np.ndarray
    numbers: np.ndarray
    letter_bounds: np.ndarray
    letters: np.ndarray


class Interchanged(NamedTuple):
    """Words that names of one entity have for each other, such as tumour and neoplasm.

    keys: (k,) int64, ascending: the number of one word, times 2 ** 32, plus that of the other.
        Each pair is there in both orders.
    rest: (k,) float32, what remains of the difference: 1 / (1 + the number of such entities).
    """

    keys: np.ndarray
    rest: np.ndarray


@jit_helper
def remaining(
    interchanged: Interchanged, word: int, other: int
) -> float:  # pragma: no cover - compiled
    """How different two words are, 0 to 1. They are no words of each other's names: 1."""
    keys = interchanged.keys
    if word < 0 or other < 0 or not len(keys):
        return 1.0
    key = word * 4294967296 + other
    at = np.searchsorted(keys, key)
    if at < len(keys) and keys[at] == key:
        return interchanged.rest[at]
    return 1.0


@jit_helper
def is_spelled_together(  # pragma: no cover - compiled
    left: np.ndarray,
    start: int,
    own: StringFeatures,
    other_left: np.ndarray,
    other_start: int,
    other: StringFeatures,
) -> bool:
    """Return whether words have the same letters in a row, such as quick silver and quicksilver.

    left, other_left: Which words of each side count.
    start, other_start: The first word of each side.
    """
    bounds, letters = own.letter_bounds[start:], own.letters
    other_bounds, other_letters = other.letter_bounds[other_start:], other.letters
    n, at = 0, 0
    for k in range(len(left)):
        if not left[k]:
            continue
        for letter in letters[bounds[k] : bounds[k + 1]]:
            while n < len(other_left) and (
                not other_left[n] or other_bounds[n] + at >= other_bounds[n + 1]
            ):
                n, at = n + 1, 0
            if n >= len(other_left) or abs(other_letters[other_bounds[n] + at]) != abs(letter):
                return False
            at += 1
    while n < len(other_left) and (
        not other_left[n] or other_bounds[n] + at >= other_bounds[n + 1]
    ):
        n, at = n + 1, 0
    return n >= len(other_left)


@jit_helper
def compare_words(  # pragma: no cover - compiled
    mention: int,
    mentions: StringFeatures,
    name: int,
    names: StringFeatures,
    interchanged: Interchanged,
) -> tuple[float, float, float]:
    """Compare the words of a mention with those of a name.

    Of two words that stand for each other elsewhere, only what remains of the difference counts.

    RETURNS: The share of the mention's letters that are in words which the name lacks; the share
        of the name's letters that are in words which the mention lacks; and 1 where numbers or
        beginnings are opposed, or one is negated.
    """
    words, bounds, letters = mentions.words, mentions.letter_bounds, mentions.letters
    other_words, other_bounds, other_letters = names.words, names.letter_bounds, names.letters
    start, other_start = mentions.word_bounds[mention], names.word_bounds[name]
    end = min(mentions.word_bounds[mention + 1], start + MOST_WORDS)
    other_end = min(names.word_bounds[name + 1], other_start + MOST_WORDS)
    left = np.ones(MOST_WORDS, dtype=np.bool_)
    other_left = np.ones(MOST_WORDS, dtype=np.bool_)
    total = bounds[end] - bounds[start]
    other_total = other_bounds[other_end] - other_bounds[other_start]
    for n in range(other_start, other_end):
        for k in range(start, end):
            if left[k - start] and words[k] >= 0 and words[k] == other_words[n]:
                left[k - start] = other_left[n - other_start] = False
    if is_spelled_together(
        left[: end - start],
        start,
        mentions,
        other_left[: other_end - other_start],
        other_start,
        names,
    ):
        return 0.0, 0.0, 0.0
    opposed, number, other_number = 0.0, False, False
    extra, missing = 0.0, 0.0
    for k in range(start, end):
        if not left[k - start] or ZERO <= letters[bounds[k]] <= NINE:
            continue
        least, least_n = 1.0, -1
        for n in range(other_start, other_end):
            if other_left[n - other_start]:
                rest = remaining(interchanged, words[k], other_words[n])
                if rest < least:
                    least, least_n = rest, n
        if least_n >= 0:
            left[k - start] = other_left[least_n - other_start] = False
            extra += least * (bounds[k + 1] - bounds[k])
            missing += least * (other_bounds[least_n + 1] - other_bounds[least_n])
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
            other_low = other_bounds[n]
            other_length = other_bounds[n + 1] - other_low
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
    for k in range(start, end):
        if left[k - start]:
            extra += bounds[k + 1] - bounds[k]
            if letters[bounds[k]] < 0:
                opposed = 1.0
    for n in range(other_start, other_end):
        if not other_left[n - other_start]:
            continue
        other_low = other_bounds[n]
        if ZERO <= other_letters[other_low] <= NINE:
            other_number = True
            continue
        missing += other_bounds[n + 1] - other_low
        if other_letters[other_low] < 0:
            opposed = 1.0
    if number and other_number:
        opposed = 1.0
    return extra / max(total, 1), missing / max(other_total, 1), opposed


@numba_jit(interpret=False)
def compare(  # pragma: no cover - compiled
    best: np.ndarray,
    nearest: np.ndarray,
    entities: np.ndarray,
    weights: np.ndarray,
    n_words: int,
    mentions: StringFeatures,
    names: StringFeatures,
    first: np.ndarray,
    count: np.ndarray,
    interchanged: Interchanged,
) -> None:
    """Compare mentions with the strings of their candidates.

    best: (6, m, c) float32 zeros, where the fields of ``StringSimilarity`` are written.
    nearest: (m, c) int64 zeros, where the number of the string with the best n-grams is written.
    entities: (m, c) int64, the candidates, -1 for none.
    weights: (n-grams,) float32.
    n_words: The number of words that have a number.
    first, count: (entities,) int64, where in ``names`` the strings of each entity begin, and how
        many they are.
    """
    ngram_bounds, ngrams, counts = mentions.ngram_bounds, mentions.ngrams, mentions.counts
    word_bounds, words = mentions.word_bounds, mentions.words
    name_ngram_bounds, name_ngrams, name_counts = names.ngram_bounds, names.ngrams, names.counts
    name_word_bounds, name_words = names.word_bounds, names.words
    numbers, name_numbers = mentions.numbers, names.numbers
    # The n-grams and words of the present mention.
    weighted = np.zeros(len(weights), dtype=np.float32)
    has_word = np.zeros(n_words, dtype=np.bool_)
    for i in range(entities.shape[0]):
        norm = np.float32(0)
        for k in range(ngram_bounds[i], ngram_bounds[i + 1]):
            weight = counts[k] * weights[ngrams[k]]
            weighted[ngrams[k]] = weight
            norm += weight * weight
        own_words = word_bounds[i + 1] - word_bounds[i]
        for k in range(word_bounds[i], word_bounds[i + 1]):
            if words[k] >= 0:
                has_word[words[k]] = True
        for j in range(entities.shape[1]):
            entity = entities[i, j]
            if entity < 0 or entity >= len(count):
                continue
            for row in range(first[entity], first[entity] + count[entity]):
                product, square = np.float32(0), np.float32(0)
                for k in range(name_ngram_bounds[row], name_ngram_bounds[row + 1]):
                    weight = name_counts[k] * weights[name_ngrams[k]]
                    product += weight * weighted[name_ngrams[k]]
                    square += weight * weight
                if product > 0:
                    cosine = product / np.sqrt(norm * square)
                    if cosine > best[0, i, j]:
                        best[0, i, j] = cosine
                        nearest[i, j] = row - first[entity]
                common = 0
                for k in range(name_word_bounds[row], name_word_bounds[row + 1]):
                    common += has_word[name_words[k]]
                union = own_words + name_word_bounds[row + 1] - name_word_bounds[row] - common
                best[1, i, j] = max(best[1, i, j], np.float32(common / max(union, 1)))
                if name_numbers[row] == numbers[i]:
                    best[2, i, j] = 1
            if count[entity]:
                row = first[entity] + nearest[i, j]
                extra, missing, opposed = compare_words(i, mentions, row, names, interchanged)
                best[3, i, j], best[4, i, j], best[5, i, j] = extra, missing, opposed
        for k in range(ngram_bounds[i], ngram_bounds[i + 1]):
            weighted[ngrams[k]] = 0
        for k in range(word_bounds[i], word_bounds[i + 1]):
            if words[k] >= 0:
                has_word[words[k]] = False
