"""Words that stand for each other: adjectives and their nouns, Latin plurals, a list's own pairs.

"ovary" and "ovarian" have one stem, and in a list whose names have "cancer" or "neoplasm" for one
entity again and again these are one word.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from .words import NEGATING, words_of

# Endings of adjectives, each with those of the nouns that they are made of.
_ADJECTIVES = {
    **{
        "al": (" ", "a", "us", "um"),
        "ial": ("us", "y"),
        "eal": ("us", "a"),
        "ical": ("ex", "ix"),
    },
    **{
        "ar": (" ", "e", "us", "um"),
        "ular": (" ", "le"),
        "ian": ("y",),
        "ine": ("us",),
    },
    **{"ic": (" ", "e", "is", "ia", "y", "es"), "onic": ("o",), "otic": ("osis",)},
    **{"atic": ("a", "as", "asis"), "ive": ("ion",)},
}
_PAIRS = [(adj, noun.strip()) for adj, nouns in _ADJECTIVES.items() for noun in nouns]
# Those of the noun of an adjective, or an adjective of a noun.
RELATED = (*_PAIRS, *((noun, adjective) for adjective, noun in _PAIRS))
# Endings of adjectives that say what something lacks or is like, and of their nouns: "deficient"
# names no deficiency by itself.
QUALITIES = [
    (f"{vowel}nt", f"{vowel}n{ending}") for vowel in "ae" for ending in ("ce", "cy")
]
# Endings of Latin and Greek plurals, without the "s" of an English one, and of the singular.
PLURALS = (
    *(("mata", "ma"), ("ae", "a"), ("i", "us"), ("a", "um"), ("a", "on"), ("e", "is")),
    *(("ice", "ex"), ("ice", "ix"), ("nge", "nx")),
)
# With a shorter stem too many words are alike.
MIN_STEM = 4
# A pair of words that so many entities have for each other, and such a share of those with the
# rarer one, is one word.
MIN_ENTITIES = 5
SHARE = 0.5


def interchanged_words(entities: Iterable[Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of words, in both orders, that names of an entity have for each other.

    entities: The names of each.
    """
    pairs: Counter[tuple[str, str]] = Counter()
    frequency: Counter[str] = Counter()
    for names in entities:
        frequency.update({word for name in names for word in words_of(name)})
        pairs.update(set(interchanged_in(names)))
    for (word, other), count in pairs.items():
        least = max(MIN_ENTITIES, SHARE * min(frequency[word], frequency[other]))
        if count >= least:
            yield word, other
            yield other, word


def interchanged_in(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The pairs of words in which two of these names differ, in alphabetical order.

    The names have all other words in common, at least one. Their order does not count. Numbers and
    words that negate never stand for others.
    """
    interchangeable = defaultdict(set)
    for words in {frozenset(words_of(name)) for name in names}:
        if len(words) < 2:
            continue
        for word in words:
            if not word.isdigit() and word not in NEGATING:
                interchangeable[words - {word}].add(word)
    for words_there in interchangeable.values():
        ordered = sorted(words_there)
        for place, word in enumerate(ordered):
            yield from ((word, second_word) for second_word in ordered[place + 1 :])


def with_endings(word: str, pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    """The words that a word is with the other ending of a pair in the place of its own."""
    for ending, other in pairs:
        stem = word[: len(word) - len(ending)]
        if len(stem) >= MIN_STEM and word.endswith(ending):
            yield stem + other
