"""Mentions by dictionary: places where a text names an entity."""

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ahocorasick_rs import AhoCorasick
from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..base.bundled import english_words
from ..corpora.annotated import LABEL
from ..kb.entity import Entity
from ..names.folding import Letters, fold, shape, with_whole_words
from ..names.spellings import (
    folded,
    is_accented,
    with_pairs,
    without_accents,
    written_forms,
)
from ..names.words import MIN_PLURAL, plural, singular, words_of
from .edges import without_markup
from .ordinary import is_other_thing
from .splitting import Borders
from .top_terms import TopTerms
from .windows import Place, best_without_overlaps

# Shorter names are found in their own spelling only: "ALL" is a disease, "all" is none.
SHORT = 4

_CONSONANTS = re.compile("[b-df-hj-np-tv-xz]+")
_LAST_WORD = re.compile(r"(?<![a-z])[a-z]+\Z")


def is_exact(name: str) -> bool:
    """Return whether a name is matched case-sensitively: a short one, or one in capitals."""
    return len(name) <= SHORT or (name.isupper() and name.isalpha())


def is_usable(name: str, stop_words: Container[str] = ()) -> bool:
    """Return whether a name can be a mention.

    A single character, a number or a stop word cannot.

    stop_words: Of the language, in lower case. "IT" can be a mention, "it" is none, and "It" begins
        a sentence.
    """
    is_word = name.isupper() or name.lower() not in stop_words
    return len(name) > 1 and not name.isdigit() and is_word


class Name(NamedTuple):
    """A name of the dictionary.

    text: The name in its first spelling.
    kb_id: The id of its entity; None for a name of several entities.
    label: The first type of its first entity.
    """

    text: str
    kb_id: str | None
    label: str


class Found(NamedTuple):
    """A stretch of text that may be a name.

    weight: Of several that overlap, those of the largest sum count.
    name: The number of the name.
    read_as: As in ``Hit``.
    """

    weight: float
    name: int
    read_as: str = ""


class Hit(NamedTuple):
    """A name in a document. The tokens from ``start`` to ``end``, and the number of the name.

    read_as: What the text is another form of; "" for a spelling of the name.
    """

    start: int
    end: int
    name: int
    read_as: str = ""


@dataclass(frozen=True, eq=False)
class Dictionary:
    """Names of entities and an automaton that finds them (Aho and Corasick 1975).

    vocab: That of the tokenizer, which documents must have too.
    names: Each name once.
    unusable: How many names were left out because they are no mentions, see ``is_usable``.
    automaton: Finds the folded spellings of all names.
    numbers: For each of these the number of its name; -1 where only an exact spelling counts.
    exact: The numbers of names that are found in their own spelling, by that.
    stop_words: Those of the language, in lower case.
    """

    vocab: Vocab
    names: list[Name]
    unusable: int
    automaton: AhoCorasick
    numbers: list[int]
    exact: Mapping[str, int]
    stop_words: Container[str]

    @classmethod
    def build(cls, nlp: Language, entities: Iterable[Entity]) -> "Dictionary":
        """Build the dictionary of these entities. Stop words of the language are left out."""
        return cls.of(nlp.vocab, nlp.Defaults.stop_words, entities)

    @classmethod
    def of(
        cls,
        vocab: Vocab,
        stop_words: Container[str],
        entities: Iterable[Entity],
        top_terms: bool = False,
    ) -> "Dictionary":
        """Build it for a vocabulary and lowercase stop words.

        top_terms: Whether those of the list are names too, see ``TopTerms``.
        """
        top = TopTerms()
        titles: set[str] = set()
        names: dict[str, Name] = {}
        further: dict[str, Name] = {}
        unusable = 0
        for entity in entities:
            top.add(entity)
            titles.update((entity.title, *written_forms(entity.title)))
            label = entity.types[0] if entity.types else LABEL
            # Spellings that differ in case alone are one name.
            spellings: dict[str, str] = {}
            for text in map(str.strip, entity.names):
                spellings.setdefault(key_of(text), text)
            for key, text in spellings.items():
                if not is_usable(text, stop_words) or not key.strip():
                    unusable += 1
                    continue
                _add(names, key, Name(text, entity.id, label))
                for form in written_forms(text):
                    # A shorter one would be a word of some language.
                    if len(form) >= SHORT and is_usable(form, stop_words):
                        _add(further, key_of(form), Name(form, entity.id, label))
        # The own spelling of a name comes before another one's other spelling.
        names.update((key, name) for key, name in further.items() if key not in names)
        if not top_terms:
            ids = top.ids()
            words = top.words()
            names = {
                key: name
                for key, name in names.items()
                if name.kb_id not in ids and folded(name.text) not in words
            }
        names = _with_symbols(names, titles)
        numbers, exact = _spellings(names, stop_words)
        automaton = AhoCorasick(numbers, store_patterns=False)
        name_list = list(names.values())
        patterns = list(numbers.values())
        return cls(vocab, name_list, unusable, automaton, patterns, exact, stop_words)

    def hits(self, doc: Doc) -> list[Hit]:
        """The names in a document in order, the best of those that overlap.

        Tokens that a name begins or ends in are split where ``split_tokens`` may do so.
        """
        borders = Borders(doc)
        return best_hits(borders, self.found(borders))

    def found(self, borders: Borders) -> dict[Place, Found]:
        """What is found in a text, by its place; the places may overlap."""
        readings: list[Letters] = [str]
        if is_accented(borders.text):
            # The letters of the text come before plain ones in their place.
            readings += [with_pairs, without_accents]
        places: dict[Place, Found] = {}
        # So does a text as it is before one without markup, and with divided words put together.
        plain = without_markup(borders.text)
        for text in dict.fromkeys((borders.text, plain, with_whole_words(plain))):
            for letters in readings:
                places = {**self._places(borders, text, letters), **places}
        return places

    def _places(
        self, borders: Borders, text: str, letters: Letters
    ) -> dict[Place, Found]:
        """The places of names in a text whose letters are read in one way."""
        folded = fold(text, letters=letters)
        places: dict[Place, Found] = {}
        for pattern, start, end in self.automaton.find_matches_as_indexes(
            folded.text, overlapping=True
        ):
            place = folded.original(start, end)
            if (
                place is None
                or not folded.is_name(start, end, text[place[1] : place[1] + 1])
                or not borders.may_be_name(*place)
            ):
                continue
            # A name in its own spelling comes before the same word in any case.
            spelling = shape(text[slice(*place)], letters)
            number = self.exact.get(spelling, self.numbers[pattern])
            if number >= 0 and not is_other_thing(
                borders.text, *place, self.names[number].text, self.stop_words
            ):
                places[place] = Found(place[1] - place[0], number)
        return places


def best_hits(borders: Borders, found: Mapping[Place, Found]) -> list[Hit]:
    """The best of what was found, without overlaps, in order; tokens are split at its borders."""
    places = list(found)
    chosen = best_without_overlaps(places, [found[place].weight for place in places])
    borders.split({offset for row in chosen for offset in places[row]})
    return [
        Hit(*borders.tokens(*places[row]), *found[places[row]][1:]) for row in chosen
    ]


def _add(names: dict[str, Name], key: str, name: Name) -> None:
    first = names.setdefault(key, name)
    if first.kb_id not in (None, name.kb_id):
        names[key] = first._replace(kb_id=None)


def _with_symbols(names: dict[str, Name], titles: Container[str]) -> dict[str, Name]:
    """The names, with symbols in capitals where the list has all names in small letters.

    A short alias is a symbol there if it has no vowel or is an English word, and no name of another
    entity has it: "oak" for Kjer's optic atrophy, but not "pain".
    """
    if any(name.text != name.text.lower() for name in names.values()):
        return names
    owners: defaultdict[str, set[str | None]] = defaultdict(set)
    for name in names.values():
        for word in words_of(name.text):
            owners[word].add(name.kb_id)
    words = english_words()
    symbols = {
        key
        for key, name in names.items()
        if len(key) <= SHORT and name.text not in titles
        if key in words or _CONSONANTS.fullmatch(key)
        if owners[key] <= {name.kb_id}
    }
    as_written = {key: name for key, name in names.items() if key not in symbols}
    for key in names:
        if key in symbols:
            symbol = key.upper()
            as_written[symbol] = names[key]._replace(text=symbol)
    return as_written


def _spellings(
    names: Mapping[str, Name], stop_words: Container[str]
) -> tuple[dict[str, int], dict[str, int]]:
    """Numbers by spellings, for a dictionary's ``numbers`` and ``exact``."""
    folded: dict[str, int] = {}
    exact: dict[str, int] = {}
    more: tuple[dict[str, list[int]], ...] = ({}, {})
    for number, (key, name) in enumerate(names.items()):
        if is_exact(name.text):
            exact[key] = number
            folded.setdefault(fold(key).text, -1)
        else:
            folded[key] = number
        kind = int(is_exact(name.text))
        for form in _other_forms(key) if len(name.text) > SHORT else ():
            # Of "SAIDs", "said" would be found in any case, unlike a name of that length.
            if is_usable(form, stop_words) and len(form) > SHORT:
                more[kind].setdefault(form, []).append(number)
    name_list = list(names.values())
    for by_spelling, candidates_of in zip((folded, exact), more):
        for form, numbers in candidates_of.items():
            # A form of the names of several entities is a mention of none.
            if (
                len({name_list[number].kb_id for number in numbers}) == 1
                and by_spelling.get(form, -1) < 0
            ):
                by_spelling[form] = numbers[0]
                folded.setdefault(fold(form).text, -1)
    return folded, exact


def _other_forms(key: str) -> Iterator[str]:
    """Make plural, singular and capitalized forms of a name, such as "Unesco" of "UNESCO"."""
    if key.isupper() and key.isalpha():
        yield from (key.capitalize(), f"{key}s")
    match = _LAST_WORD.search(key)
    if match and len(match[0]) >= MIN_PLURAL:
        word = match[0]
        beginning = key[: match.start()]
        yield beginning + (plural(word) if singular(word) == word else singular(word))


def key_of(name: str) -> str:
    """A key shared by names found in the same places."""
    return shape(name) if is_exact(name) else fold(name).text
