"""The names of mentions that may be new entities: which are one name, and which differ."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..base.arrays import Rows, numbered
from ..mentions.record import MentionRecord
from ..names.opposites import are_opposed
from ..names.spellings import compatible, folded, with_pairs
from ..names.words import with_plain_numbers, words_of

# Labels of persons, who have first names.
PERSONS = frozenset(("PERSON", "PER"))
# Longer names are not looked at as forms of shorter ones.
MOST_WORDS = 8
# What joins the words of a name, or is left out between them; and signs before it.
_JOINTS = re.compile(r"[\s\-‐‑–'’]+")
_TAG = re.compile(r"^[#@](?=\w)")
_BETWEEN_NUMBERS = re.compile(r"(?<=\d)[\s\-‐‑–'’]+(?=\d)")

Words = tuple[str, ...]


@dataclass(frozen=True)
class MentionNames(Rows):
    """The names of ``m`` mentions.

    numbers: (m,) int64, equal for mentions of one name and label.
    strings: (m,) int64, equal for mentions that write it the same, but for case and white space.
    words: The words of each, numbers in digits.
    persons: (m,) bool, the mentions with the label of a person.
    """

    numbers: np.ndarray
    strings: np.ndarray
    words: Sequence[Words]
    persons: np.ndarray

    @classmethod
    def of(cls, records: Sequence[MentionRecord]) -> "MentionNames":
        """The names of mentions. A short name is the full one of its document, if it has one."""
        words_of_name = {
            name: plain_words(name) for name in {r.normalized for r in records}
        }
        full = _full_names(records, words_of_name)
        names = [
            full.get((r.key[0], r.label, r.normalized), r.normalized) for r in records
        ]
        letters = {name: letters_of(name) for name in set(names)}
        words = [words_of_name[name] for name in names]
        return cls(
            numbered([(r.label, letters[name]) for r, name in zip(records, names)]),
            numbered(
                [" ".join(record.normalized.split()).casefold() for record in records]
            ),
            words,
            np.array([record.label in PERSONS for record in records], dtype=bool),
        )

    @cached_property
    def forms(self) -> np.ndarray:
        """(m,) int64, equal for mentions of the same words."""
        return numbered(self.words)

    def may_be_one(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Pairs of mentions whose names do not say that they are different entities: (e,) bool.

        They say so where they differ in numbers or in opposed words. Persons also differ where they
        have different first names, and a last name that several full names have is of none of them.

        source, target: (e,) int64, the mentions of each pair.
        """
        are_persons = self.persons[source] & self.persons[target]
        ends = np.sort(np.stack([self.forms[source], self.forms[target]]), axis=0)
        pairs = np.concatenate([ends, are_persons[None]])
        distinct, place = np.unique(pairs, axis=1, return_inverse=True)
        words = list(dict.fromkeys(self.words))
        ambiguous = _ambiguous(words) if are_persons.any() else set()
        may_be = [
            self._may_be_one(words[first], words[second], bool(person), ambiguous)
            for first, second, person in distinct.T.tolist()
        ]
        return np.array(may_be, dtype=bool)[place.reshape(-1)]

    @staticmethod
    def _may_be_one(
        first: Words, second: Words, are_persons: bool, ambiguous: set[Words]
    ) -> bool:
        if first == second:
            return True
        if are_opposed(first, second):
            return False
        if not are_persons:
            return True
        shorter, longer = sorted((first, second), key=len)
        is_ambiguous = shorter in ambiguous and shorter in _short_forms(longer)
        return not is_ambiguous and not _have_other_first_names(first, second)


def plain_words(name: str) -> Words:
    """The words of a name, with numbers and ordinals in digits."""
    return tuple(words_of(with_plain_numbers(folded(name))))


def letters_of(name: str) -> str:
    """What is the same for the forms of a name: its letters and numbers, whatever joins them.

    "#KelVorn", "Kel-Vorn" and "kel vorn" are one name, and so are "Zürich" and "Zuerich".
    """
    plain = _TAG.sub("", with_pairs(compatible(name).strip()).lower())
    return _JOINTS.sub("", _BETWEEN_NUMBERS.sub("\0", plain)) or name


def _short_forms(words: Words) -> Iterator[Words]:
    """The beginnings and the ends of a name."""
    for size in range(1, min(len(words), MOST_WORDS)):
        yield words[:size]
        yield words[-size:]


def _ambiguous(names: Iterable[Words]) -> set[Words]:
    """The short names that could be one of several full ones, which differ otherwise."""
    full_names = defaultdict(list)
    for words in sorted(names, key=len, reverse=True):
        for short in set(_short_forms(words)):
            full_names[short].append(words)
    return {
        short
        for short, full in full_names.items()
        if any(words not in _short_forms(full[0]) for words in full[1:])
    }


def _have_other_first_names(first: Words, second: Words) -> bool:
    """Return whether two persons of one last name have different first names.

    An initial may be that of a first name, and a short form its beginning.
    """
    if len(first) < 2 or len(second) < 2 or first[-1] != second[-1]:
        return False
    return not (first[0].startswith(second[0]) or second[0].startswith(first[0]))


def _full_names(
    records: Sequence[MentionRecord], words_of_name: Mapping[str, Words]
) -> dict[tuple[str, str, str], str]:
    """The full name of short proper names: by document, label and name.

    "Kimbralt" is "Kimbralt Shipping ASA" in a document that has no other full name for it.
    """
    names: defaultdict[tuple[str, str], dict[Words, str]] = defaultdict(dict)
    for record in records:
        if record.normalized[:1].isupper():
            group = names[record.key[0], record.label]
            group.setdefault(words_of_name[record.normalized], record.normalized)
    full = {}
    for (document, label), group in names.items():
        ambiguous = _ambiguous(group)
        for words, name in sorted(group.items(), key=lambda item: len(item[0])):
            for short in _short_forms(words):
                if short in group and short not in ambiguous:
                    full[document, label, group[short]] = name
    return full
