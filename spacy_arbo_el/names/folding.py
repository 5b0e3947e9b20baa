"""Text in the form in which names are sought.

Upper and lower case, white space, dashes, quotes and Unicode have one form each.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

from .spellings import APOSTROPHES, DASHES, INVISIBLE

# Characters that mean the same, and invisible ones.
SAME = {
    "'": APOSTROPHES,
    '"': "\u201c\u201d\u201e",
    "-": DASHES,
    "": INVISIBLE,
}
_SAME = {ord(char): to for to, chars in SAME.items() for char in chars}
_UNSEEN = dict.fromkeys(map(ord, SAME[""]))
# White space beside these is not read: "T - cell" of a tokenized text, "non-" before a line break.
TIGHT = f"-/:,'()[]+{SAME['-']}{SAME[chr(39)]}"
_TIGHT = re.escape(TIGHT)
# White space other than one blank, and all but ASCII, with the character that it may modify.
_SPECIAL = re.compile(
    rf"(?<=[{_TIGHT}])\s+|\s+(?=[{_TIGHT}])|[^\S ]\s*| \s+|[!-~]?[^\s\x00-\x7f]+"
)
# Thai, Lao, Tibetan, Burmese, Khmer, kana and Chinese characters.
_UNSPACED = re.compile(
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
# What divides a word at the end of a line.
_BREAK = re.compile(
    r"(?<=[^\W\d_])[-\u2010\u2011\u00ad]+(?:[^\S\n]+(?:\n[^\S\n]*)?|\n[^\S\n]*)(?=[^\W\d_])"
)
_LETTERS_BEFORE = re.compile(r"[^\W\d_]+\Z")
_LETTERS_AFTER = re.compile(r"[^\W\d_]+")
_LONGEST_WORD = 60
# Numbers of notes, and of charges and powers. They are no part of the word before.
SUPERSCRIPTS = "\u00b9\u00b2\u00b3\u2070\u2074\u2075\u2076\u2077\u2078\u2079"
# A function from letters to those that they are read as.
Letters = Callable[[str], str]
# Kinds of characters: those of words, of scripts without spaces, of Korean, marks on another.
OTHER, WORD, UNSPACED, HANGUL, MARK = range(5)


class Folded(NamedTuple):
    """A folded text, and the origin of each character.

    edges: Offsets in it, ascending, where pieces begin that were changed, or were not; its end.
    origins: The offsets of these places in the original.
    whole: Whether such a piece was changed as a whole, so that no name begins or ends within.
    """

    text: str
    edges: list[int]
    origins: list[int]
    whole: list[bool]

    def original(self, start: int, end: int) -> tuple[int, int] | None:
        """The place of a stretch in the original. None where it begins or ends within a piece."""
        # The last piece that begins there, and the first: invisible characters are no part of a
        # name.
        before = bisect_right(self.edges, start) - 1
        after = bisect_left(self.edges, end)
        after -= self.edges[after] != end
        ahead = start - self.edges[before]
        beyond = end - self.edges[after]
        if (ahead and self.whole[before]) or (beyond and self.whole[after]):
            return None
        return self.origins[before] + ahead, self.origins[after] + beyond

    def is_name(self, start: int, end: int, behind: str) -> bool:
        """Return whether a stretch begins and ends at words. It applies to scripts with spaces.

        behind: The character behind it in the original.
        """
        text = self.text
        if start and _is_joined(text[start - 1], text[start], (WORD, HANGUL)):
            return False
        # Korean words have endings.
        return (
            end == len(text)
            or behind in SUPERSCRIPTS
            or not _is_joined(text[end - 1], text[end], (WORD,))
        )


def fold(text: str, case: bool = False, letters: Letters = str) -> Folded:
    """Fold a text. Names that are found in the same places have the same folded text.

    case: Whether upper and lower case stay unchanged.
    letters: What letters are read as, such as those without accents.
    """
    pieces: list[str] = []
    edges = [0]
    origins = [0]
    whole = [False]
    length = last = 0

    def add(piece: str, origin: int, changed: bool) -> None:
        nonlocal length
        edges.append(length)
        origins.append(origin)
        whole.append(changed)
        pieces.append(piece)
        length += len(piece)

    def add_plain(end: int) -> None:
        if end > last:
            add(text[last:end] if case else text[last:end].lower(), last, False)

    for match in _SPECIAL.finditer(text):
        start, end = match.span()
        add_plain(start)
        last = end
        if match[0].isspace():
            beside = text[start - 1 : start] + text[end : end + 1]
            add(_space(match[0], beside), start, True)
            continue
        for cluster in _clusters(match[0]):
            add(_fold_cluster(cluster, case, letters), start, True)
            start += len(cluster)
    add_plain(len(text))
    add("", len(text), False)
    return Folded("".join(pieces), edges, origins, whole)


def shape(text: str, letters: Letters = str) -> str:
    """The folded text with its upper and lower case. letters: As in ``fold``."""
    is_plain = text.isascii() and not _SPECIAL.search(text)
    return text if is_plain else fold(text, case=True, letters=letters).text


def with_whole_words(text: str, is_word: Callable[[str], bool] = bool) -> str:
    """A text with soft hyphens in the place of what divides a word at the end of a line.

    It has the same offsets.

    is_word: Whether a word that is put together counts.
    """

    def whole(match: "re.Match[str]") -> str:
        start, end = match.span()
        before = _LETTERS_BEFORE.search(text, max(start - _LONGEST_WORD, 0), start)
        after = _LETTERS_AFTER.match(text, end)
        word = (before[0] if before else "") + (after[0] if after else "")
        return "\u00ad" * len(match[0]) if is_word(word) else match[0]

    return _BREAK.sub(whole, text)


def visible(text: str) -> str:
    """A text without the characters that nobody sees."""
    return text if text.isascii() else text.translate(_UNSEEN)


@lru_cache(maxsize=65536)
def kind_of(char: str) -> int:
    """Classify a character at the edge of a name as one of the constants."""
    if unicodedata.category(char)[0] == "M":
        return MARK
    if _UNSPACED.match(char):
        return UNSPACED
    if "\uac00" <= char <= "\ud7a3" or "\u1100" <= char <= "\u11ff":
        return HANGUL
    return WORD if char.isalnum() or char == "_" else OTHER


def _is_joined(before: str, after: str, kinds: tuple[int, ...]) -> bool:
    """Return whether two characters are of one word. kinds: Those of which words are."""
    kind = kind_of(after)
    return kind == MARK or (kind in kinds and kind_of(before) in (*kinds, MARK))


def _space(run: str, beside: str) -> str:
    """The reading of white space. Nothing is found over an empty line."""
    if run.count("\n") > 1:
        return "\n"
    return "" if any(char in TIGHT for char in beside) else " "


def _clusters(run: str) -> Iterator[str]:
    """Split text into characters with their marks, and Korean syllables from their letters."""
    start = 0
    for number, char in enumerate(run):
        modifies = unicodedata.category(char)[0] == "M" or "\u1160" <= char <= "\u11ff"
        if number > start and not modifies:
            yield run[start:number]
            start = number
    yield run[start:]


@lru_cache(maxsize=65536)
def _fold_cluster(cluster: str, case: bool, letters: Letters) -> str:
    composed = letters(_composed(cluster.translate(_SAME)))
    return composed if case else _composed(composed.casefold())


def _composed(cluster: str) -> str:
    # A trade mark sign is no "TM" at the end of a name.
    is_symbol = unicodedata.category(cluster[:1] or " ") == "So"
    return unicodedata.normalize("NFC" if is_symbol else "NFKC", cluster)
