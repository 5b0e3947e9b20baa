"""Names in a text as people write them: in another order or number, misspelled, abbreviated."""

from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..base.bundled import english_words
from ..kb.entity import Entity
from ..names.firms import begins_with_firm_word, firm_forms
from ..names.folding import visible, with_whole_words
from ..names.prefixes import differ_in_prefixes
from ..names.signs import Joint, joints_of
from ..names.word_index import (
    INTERCHANGED,
    NEAR,
    ROUNDING,
    WordIndex,
    normal_word,
    words_of_name,
)
from .coordination import Coordinations
from .dictionary import (
    SHORT,
    Dictionary,
    Found,
    Hit,
    Name,
    best_hits,
    is_exact,
    is_usable,
)
from .edges import without_markup
from .ordinary import is_other_thing
from .splitting import Borders
from .windows import JOINING, Place, Unit, near_windows, read_units

# The least share of words that a window and a name have in common (cosine): all of them, of which
# some may be misspelled.
LEAST = 0.9
# A shorter word is misspelled only within a name of several.
MIN_ALONE = 7


@dataclass(frozen=True, eq=False)
class NearNames:
    """Finds names of entities, also where a text writes them in another way.

    dictionary: Finds names in their own spelling.
    index: The names by their words.
    owners: The name of the dictionary that each name of the index is a form of.
    bare: For each name of the index the single word that it is without its legal form or qualifier,
        which a text must write alike: "Target" is one, "target" is none. "" for other names.
    joints: The signs between words of all names.
    general: Words that are no names by themselves, see ``GENERAL``.
    """

    dictionary: Dictionary
    index: WordIndex
    owners: Sequence[int]
    bare: Sequence[str]
    joints: frozenset[Joint]
    general: frozenset[str]

    @classmethod
    def of(
        cls,
        vocab: Vocab,
        stop_words: Container[str],
        entities: Iterable[Entity],
        top_terms: bool = False,
    ) -> "NearNames":
        """Build it as ``Dictionary.of``."""
        dictionary = Dictionary.of(vocab, stop_words, entities, top_terms)
        forms = [name.text for name in dictionary.names]
        names = [(name, number, "") for number, name in enumerate(forms)]
        names += [
            (text, number, text if len(text.split()) == 1 else "")
            for number, name in enumerate(forms)
            for text in dict.fromkeys(chain.from_iterable(firm_forms(name)))
            if is_usable(text, stop_words)
        ]
        of_entities: dict[str, list[str]] = {}
        for text, kb_id, _ in dictionary.names:
            if kb_id is not None:
                of_entities.setdefault(kb_id, []).append(text)
        texts = [text for text, _, _ in names]
        index = WordIndex.of(texts, stop_words, of_entities.values())
        joints = frozenset(
            joint for name in forms for joint in joints_of(name, stop_words)
        )
        general = frozenset() if top_terms else index.general
        owners = [number for _, number, _ in names]
        bare_words = [word for _, _, word in names]
        return cls(dictionary, index, owners, bare_words, joints, general)

    @property
    def names(self) -> list[Name]:
        """The names of the dictionary."""
        return self.dictionary.names

    def hits(self, doc: Doc) -> list[Hit]:
        """The names in a document in order, the best of those that overlap.

        Tokens that a name begins or ends in are split where ``split_tokens`` may do so.
        """
        borders = Borders(doc)
        weighted = {
            place: match
            for place, match in self.dictionary.found(borders).items()
            if not self._is_general(borders.text[slice(*place)])
        }
        text = with_whole_words(
            without_markup(borders.text),
            lambda word: normal_word(word) in self.index.numbers,
        )
        units = read_units(text, self.dictionary.stop_words, SHORT, self.joints)
        weighted = {**self._near(borders, text, units), **weighted}
        coordinations = Coordinations(text, units, self.index, LEAST)
        for place, row, similarity in chain(
            filter(partial(self._is_inverted, text), coordinations.inverted()),
            coordinations.parts(weighted),
            coordinations.around_definitions(),
        ):
            number = self.owners[row]
            if borders.may_be_name(*place):
                read_as = _in_case_of(text[slice(*place)], self.names[number].text)
                weight = (place[1] - place[0]) * similarity
                weighted[place] = Found(weight, number, read_as)
        return best_hits(borders, weighted)

    def _is_inverted(self, text: str, match: tuple[Place, int, float]) -> bool:
        """Return whether a comma is in the place of another order of words, or of "of"."""
        name = self.names[self.owners[match[1]]].text
        stop_words = self.dictionary.stop_words
        if joints_of(name, stop_words):
            return False
        words = words_of_name(text[slice(*match[0])], stop_words)
        is_other_order = words != words_of_name(name, stop_words)
        return is_other_order or not JOINING.isdisjoint(name.lower().split())

    def _is_general(self, text: str) -> bool:
        words = words_of_name(text, self.dictionary.stop_words) if self.general else []
        return bool(words) and self.general.issuperset(words)

    def _near(
        self, borders: Borders, text: str, units: Sequence[Unit]
    ) -> dict[Place, Found]:
        """Windows that are near a name."""
        windows = near_windows(units, self.index, LEAST)
        single = {unit[:2]: unit for unit in units}
        joints = [(unit.start, unit.joint) for unit in units if unit.joint]
        signs = [place for place, _ in joints]
        weighted = {}
        for (start, end), (row, similarity) in windows.items():
            number = self.owners[row]
            unit = single.get((start, end))
            if unit is not None and not self._may_be(
                visible(text[start:end]), unit, row, similarity
            ):
                continue
            name = self.names[number].text
            if is_other_thing(text, start, end, name, self.dictionary.stop_words):
                continue
            inside = joints[bisect_right(signs, start) : bisect_left(signs, end)]
            if inside and not joints_of(name, self.dictionary.stop_words).issuperset(
                joint for _, joint in inside
            ):
                continue
            # "The group Velmo" is no other order of "Velmo Group".
            if begins_with_firm_word(text[start:end]) and not begins_with_firm_word(
                name
            ):
                continue
            if borders.may_be_name(start, end) and not differ_in_prefixes(
                text[start:end], name
            ):
                read_as = ""
                if self._is_other_form(text[start:end], row):
                    read_as = _in_case_of(text[start:end], name)
                weighted[start, end] = Found(
                    (end - start) * similarity, number, read_as
                )
        return weighted

    def _is_other_form(self, text: str, row: int) -> bool:
        """Return whether a text has all words of a name, in another order or form."""
        if row >= len(self.names):
            return False
        stop_words = self.dictionary.stop_words
        words = self.index.words.bounds
        in_name = set(self.names[row].text.lower().split())
        missing = in_name.difference(JOINING, text.lower().split())
        count = words[row + 1] - words[row]
        return count == len(words_of_name(text, stop_words)) and not any(
            word in stop_words for word in missing
        )

    def _may_be(self, text: str, unit: Unit, row: int, similarity: float) -> bool:
        """Return whether a single word may be a name, by its upper and lower case."""
        if len(unit.words) > 1:
            # An abbreviation.
            return True
        if self.bare[row]:
            return text == self.bare[row]
        # "cancer" alone may be the head of a name that the list lacks.
        if similarity < INTERCHANGED + ROUNDING:
            return False
        name = self.names[self.owners[row]].text
        # Another word in small letters is an ordinary one rather than a proper name misspelled.
        is_other = normal_word(text) not in self.index.numbers
        if is_other and text.islower() and not name.islower():
            return False
        is_misspelled = similarity < NEAR - ROUNDING
        # With another letter a short word is another word: "scurfy" is no "scurvy".
        if is_misspelled and (
            len(text) < MIN_ALONE or text.lower() in english_words()
        ):
            return False
        return text.isupper() or not is_exact(name)


def _in_case_of(text: str, name: str) -> str:
    """A name as a text would write it: "tumor" for "tumour", where the list has "Tumor"."""
    return name.lower() if text.islower() else name
