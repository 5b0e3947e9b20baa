"""The comparison of strings by their features: n-grams, words, numbers, and what they differ by.

Names of different entities may differ in a word, a number or a prefix: type 1 and type 2, hyper-
and hypothyroidism, John and Jane Smith. Their similarity is high all the same. Variants of one
name differ in the ending of a word, in words that add little, or in words that names of one entity
often have for each other.
"""

from typing import NamedTuple, TypeAlias

import numpy as np

from ..base.compiling import jit_helper, numba_jit

# Words are variants of each other if they share so much of their beginning and their end.
ALIKE = 0.6
# Variants with a common ending of so many letters, and another beginning, are opposed.
ENDING = 4
# Shorter words have no misspellings: another letter makes another word.
MIN_MISSPELLED = 6
# Code points of digits.
ZERO = 48
NINE = 57
# The letters of a word, or their code points.
Letters: TypeAlias = str | np.ndarray
# No name has more words that count.
MOST_WORDS = 32
# What an entity is compared by, each at its most similar string:
# - cosine similarity of TF-IDF vectors over character n-grams,
# - the share of words in common (Jaccard),
# - 1 where both have the same numbers, or none at all,
# - the share of the mention that is in words which that string lacks,
# - the share of that string that is in words which the mention lacks,
# - 1 where the two have different numbers or opposed words,
# - 1 where that string begins with the mention's first word,
# - 1 where it ends with the mention's last word.
# Of words that names have for each other, EXTRA and MISSING count only a part.
N_FIELDS = 8
NGRAMS, WORDS, NUMBERS, EXTRA, MISSING, OPPOSED, BEGINS, ENDS = range(N_FIELDS)


class StringFeatures(NamedTuple):
    """The features of ``n`` strings.

    ngram_bounds: (n + 1,) int64, the n-grams of string i are ``ngrams[bounds[i]:bounds[i + 1]]``.
    ngrams: Numbers of n-grams, int32, each once per string.
    ngram_weights: Their TF-IDF, float32; the squares of a string add up to 1.
    word_bounds: (n + 1,) int64, likewise for words.
    words: Numbers of words, int32, each once per string; -1 for words that no string had.
    numbers: (n,) int32, equal for strings with the same numbers in them; -1 for numbers that no
        string had.
    letter_bounds: (words + 1,) int64, the letters of word k are at ``[bounds[k]:bounds[k + 1]]``.
    letters: Code points of the letters, int32; negative in a word that negates.
    """

    ngram_bounds: np.ndarray
    ngrams: np.ndarray
    ngram_weights: np.ndarray
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
    interchanged: Interchanged, word: int, other_word: int
) -> float:  # pragma: no cover - compiled
    """The difference of two words, 0 to 1: 1 for words that never stand for each other."""
    keys = interchanged.keys
    if word < 0 or other_word < 0:
        return 1.0
    key = word * 4294967296 + other_word
    at = np.searchsorted(keys, key)
    if at < len(keys) and keys[at] == key:
        return interchanged.rest[at]
    return 1.0


class Words(NamedTuple):
    """The words of one string.

    numbers: (w,) int32, as ``StringFeatures.words``.
    bounds: (w + 1,) int64, the letters of word k are at ``[bounds[k]:bounds[k + 1]]``.
    letters: As in ``StringFeatures``, of all strings.
    """

    numbers: np.ndarray
    bounds: np.ndarray
    letters: np.ndarray


@jit_helper
def words_at(
    features: StringFeatures, row: int
) -> Words:  # pragma: no cover - compiled
    """The words of a string that count."""
    start = features.word_bounds[row]
    end = min(features.word_bounds[row + 1], start + MOST_WORDS)
    return Words(
        features.words[start:end],
        features.letter_bounds[start : end + 1],
        features.letters,
    )


@jit_helper
def is_number(words: Words, k: int) -> bool:  # pragma: no cover - compiled
    return ZERO <= words.letters[words.bounds[k]] <= NINE


@jit_helper
def next_letter(  # pragma: no cover - compiled
    left: np.ndarray, words: Words, k: int, at: int
) -> tuple[int, int]:
    """The word and the place of the next letter from place ``at`` of word k on, over words' ends.

    left: (w,) bool, the words that count.
    """
    while k < len(left) and (
        not left[k] or words.bounds[k] + at >= words.bounds[k + 1]
    ):
        k += 1
        at = 0
    return k, at


@jit_helper
def is_spelled_together(  # pragma: no cover - compiled
    left: np.ndarray, own: Words, other_left: np.ndarray, other: Words
) -> bool:
    """Return whether words have the same letters in a row, such as quick silver and quicksilver.

    left, other_left: Which words of each side count.
    """
    n = 0
    at = 0
    for k in range(len(left)):
        if not left[k]:
            continue
        for letter in own.letters[own.bounds[k] : own.bounds[k + 1]]:
            n, at = next_letter(other_left, other, n, at)
            if n >= len(other_left) or abs(other.letters[other.bounds[n] + at]) != abs(
                letter
            ):
                return False
            at += 1
    n, at = next_letter(other_left, other, n, at)
    return n >= len(other_left)


@jit_helper
def take_same(  # pragma: no cover - compiled
    left: np.ndarray, own: Words, other_left: np.ndarray, other: Words
) -> None:
    """Leave out the words that both sides have."""
    for n in range(len(other_left)):
        for k in range(len(left)):
            if left[k] and own.numbers[k] >= 0 and own.numbers[k] == other.numbers[n]:
                left[k] = False
                other_left[n] = False


@jit_helper
def take_interchanged(  # pragma: no cover - compiled
    left: np.ndarray,
    own: Words,
    other_left: np.ndarray,
    other: Words,
    interchanged: Interchanged,
) -> tuple[float, float]:
    """Leave out words that stand for each other elsewhere.

    RETURNS: How many letters of each side remain as a difference.
    """
    extra = 0.0
    missing = 0.0
    for k in range(len(left)):
        if not left[k] or is_number(own, k):
            continue
        least = 1.0
        nearest = -1
        for n in range(len(other_left)):
            if other_left[n]:
                difference = remaining(interchanged, own.numbers[k], other.numbers[n])
                if difference < least:
                    least = difference
                    nearest = n
        if nearest >= 0:
            left[k] = False
            other_left[nearest] = False
            extra += least * (own.bounds[k + 1] - own.bounds[k])
            missing += least * (other.bounds[nearest + 1] - other.bounds[nearest])
    return extra, missing


@jit_helper
def edges_alike(
    word: Letters, other: Letters
) -> tuple[int, int]:  # pragma: no cover - compiled
    """How many letters two words both begin with, and how many both end with behind these."""
    shorter = min(len(word), len(other))
    same = 0
    while same < shorter and word[same] == other[same]:
        same += 1
    ending = 0
    while ending < shorter - same and word[-1 - ending] == other[-1 - ending]:
        ending += 1
    return same, ending


@jit_helper
def is_one_edit(word: Letters, other: Letters) -> bool:  # pragma: no cover - compiled
    """Return whether two words differ by one letter more, less or another, or two exchanged.

    They have the same first letter, and no other in the place of the second, which may be another
    prefix: "macrocytic" is no "microcytic".
    """
    same, ending = edges_alike(word, other)
    differing = max(len(word), len(other)) - same - ending
    has_length = len(word) == len(other)
    if same == 0 or not has_length or differing < 2:
        return differing < 2 and same > int(has_length and differing == 1)
    return (
        differing == 2
        and word[same] == other[same + 1]
        and word[same + 1] == other[same]
    )


@jit_helper
def alike(
    own: Words, k: int, other: Words, n: int
) -> tuple[float, bool]:  # pragma: no cover
    """The share of the longer of two words that both begin and end with.

    RETURNS: The share, and whether they have a common ending with opposed beginnings.
    """
    letters = own.letters[own.bounds[k] : own.bounds[k + 1]]
    other_letters = other.letters[other.bounds[n] : other.bounds[n + 1]]
    shorter = min(len(letters), len(other_letters))
    longer = max(len(letters), len(other_letters))
    same, ending = edges_alike(letters, other_letters)
    if shorter == 1:
        # An initial stands for a name.
        return float(same), False
    begins_alike = same >= max(3.0, longer / 2) or (
        shorter >= MIN_MISSPELLED and is_one_edit(letters, other_letters)
    )
    return (same + ending) / longer, ending >= ENDING and not begins_alike


@jit_helper
def take_variants(  # pragma: no cover - compiled
    left: np.ndarray, own: Words, other_left: np.ndarray, other: Words
) -> bool:
    """Leave out words that are variants of each other. RETURNS: Whether two are opposed."""
    opposed = False
    for k in range(len(left)):
        if not left[k]:
            continue
        best = 0.0
        nearest = -1
        best_opposed = False
        for n in range(len(other_left)):
            if not other_left[n] or is_number(other, n):
                continue
            share, is_opposed = alike(own, k, other, n)
            if share >= ALIKE and share > best:
                best = share
                nearest = n
                best_opposed = is_opposed
        if nearest >= 0:
            left[k] = False
            other_left[nearest] = False
            opposed = opposed or best_opposed
    return opposed


@jit_helper
def take_numbers(left: np.ndarray, words: Words) -> int:  # pragma: no cover - compiled
    """Leave out numbers. RETURNS: How many digits they have."""
    digits = 0
    for k in range(len(left)):
        if left[k] and is_number(words, k):
            left[k] = False
            digits += words.bounds[k + 1] - words.bounds[k]
    return digits


@jit_helper
def count_left(
    left: np.ndarray, words: Words
) -> tuple[int, bool]:  # pragma: no cover - compiled
    """Count the letters of the remaining words. RETURNS: Also whether one of them negates."""
    letters = 0
    negates = False
    for k in range(len(left)):
        if left[k]:
            letters += words.bounds[k + 1] - words.bounds[k]
            negates = negates or words.letters[words.bounds[k]] < 0
    return letters, negates


@jit_helper
def compare_words(  # pragma: no cover - compiled
    own: Words, other: Words, interchanged: Interchanged
) -> tuple[float, float, float]:
    """Compare the words of a mention with those of a name.

    Of two words that stand for each other elsewhere, only what remains of the difference counts.

    RETURNS: The share of the mention's letters that are in words which the name lacks; the share
        of the name's letters that are in words which the mention lacks; and 1 where numbers or
        beginnings are opposed, or one is negated.
    """
    left = np.ones(len(own.numbers), dtype=np.bool_)
    other_left = np.ones(len(other.numbers), dtype=np.bool_)
    take_same(left, own, other_left, other)
    if is_spelled_together(left, own, other_left, other):
        return 0.0, 0.0, 0.0
    extra, missing = take_interchanged(left, own, other_left, other, interchanged)
    digits = take_numbers(left, own)
    is_opposed = take_variants(left, own, other_left, other)
    other_digits = take_numbers(other_left, other)
    own_letters, negates = count_left(left, own)
    other_letters, other_negates = count_left(other_left, other)
    is_opposed = (
        is_opposed or negates or other_negates or (digits > 0 and other_digits > 0)
    )
    total = own.bounds[-1] - own.bounds[0] - digits
    other_total = other.bounds[-1] - other.bounds[0]
    opposed = 1.0 if is_opposed else 0.0
    return (
        (extra + own_letters) / max(total, 1),
        (missing + other_letters) / max(other_total, 1),
        opposed,
    )


@jit_helper
def is_same_word(
    mention: Words, k: int, name: Words, n: int
) -> float:  # pragma: no cover
    """1.0 where word k of a mention is word n of a name; words are counted from the end too."""
    if not len(mention.numbers) or not len(name.numbers):
        return 0.0
    word = mention.numbers[k]
    return 1.0 if word >= 0 and word == name.numbers[n] else 0.0


class MentionLayout(NamedTuple):
    """A mention, laid out so that its n-grams and words are looked up by number.

    weights: (n-grams,) float32, by n-gram; 0 for those that it lacks.
    has_word: (words,) bool.
    """

    weights: np.ndarray
    has_word: np.ndarray


@jit_helper
def lay_out(  # pragma: no cover - compiled
    mention: MentionLayout, row: int, mentions: StringFeatures
) -> None:
    """Write the n-grams and words of a mention."""
    for k in range(mentions.ngram_bounds[row], mentions.ngram_bounds[row + 1]):
        mention.weights[mentions.ngrams[k]] = mentions.ngram_weights[k]
    for k in range(mentions.word_bounds[row], mentions.word_bounds[row + 1]):
        if mentions.words[k] >= 0:
            mention.has_word[mentions.words[k]] = True


@jit_helper
def clear(  # pragma: no cover - compiled
    mention: MentionLayout, row: int, mentions: StringFeatures
) -> None:
    """Undo ``lay_out``."""
    for k in range(mentions.ngram_bounds[row], mentions.ngram_bounds[row + 1]):
        mention.weights[mentions.ngrams[k]] = 0
    for k in range(mentions.word_bounds[row], mentions.word_bounds[row + 1]):
        if mentions.words[k] >= 0:
            mention.has_word[mentions.words[k]] = False


@jit_helper
def cosine(  # pragma: no cover - compiled
    mention: MentionLayout, row: int, names: StringFeatures
) -> np.float32:
    """The cosine of the n-grams of a mention and of the name at ``row``."""
    product = np.float32(0)
    for k in range(names.ngram_bounds[row], names.ngram_bounds[row + 1]):
        product += names.ngram_weights[k] * mention.weights[names.ngrams[k]]
    return product


@jit_helper
def words_in_common(  # pragma: no cover - compiled
    mention: MentionLayout, n_words: int, row: int, names: StringFeatures
) -> np.float32:
    """The share of words in common with the name at ``row`` (Jaccard)."""
    common = 0
    for k in range(names.word_bounds[row], names.word_bounds[row + 1]):
        common += mention.has_word[names.words[k]]
    union = n_words + names.word_bounds[row + 1] - names.word_bounds[row] - common
    return np.float32(common / max(union, 1))


@numba_jit(interpret=False)
def compare(  # pragma: no cover - compiled
    best: np.ndarray,
    nearest: np.ndarray,
    entities: np.ndarray,
    n_ngrams: int,
    n_words: int,
    mentions: StringFeatures,
    names: StringFeatures,
    first: np.ndarray,
    count: np.ndarray,
    interchanged: Interchanged,
) -> None:
    """Compare mentions with the strings of their candidates.

    best: (N_FIELDS, m, c) float32 zeros, where the fields are written.
    nearest: (m, c) int64 zeros, where the number of the string with the best n-grams is written.
    entities: (m, c) int64, the candidates, -1 for none.
    n_ngrams, n_words: How many n-grams and words have a number.
    first, count: (entities,) int64, where in ``names`` the strings of each entity begin, and how
        many they are.
    """
    mention = MentionLayout(
        np.zeros(n_ngrams, dtype=np.float32),
        np.zeros(n_words, dtype=np.bool_),
    )
    for i in range(entities.shape[0]):
        lay_out(mention, i, mentions)
        own_words = mentions.word_bounds[i + 1] - mentions.word_bounds[i]
        for j in range(entities.shape[1]):
            entity = entities[i, j]
            if entity < 0 or entity >= len(count) or not count[entity]:
                continue
            best_here = best[:, i, j]
            for row in range(first[entity], first[entity] + count[entity]):
                similarity = cosine(mention, row, names)
                if similarity > best_here[NGRAMS]:
                    best_here[NGRAMS] = similarity
                    nearest[i, j] = row - first[entity]
                common = words_in_common(mention, own_words, row, names)
                best_here[WORDS] = max(best_here[WORDS], common)
                if names.numbers[row] == mentions.numbers[i]:
                    best_here[NUMBERS] = 1
            name = words_at(names, first[entity] + nearest[i, j])
            words = words_at(mentions, i)
            best_here[EXTRA], best_here[MISSING], best_here[OPPOSED] = compare_words(
                words, name, interchanged
            )
            best_here[BEGINS] = is_same_word(words, 0, name, 0)
            best_here[ENDS] = is_same_word(words, -1, name, -1)
        clear(mention, i, mentions)
