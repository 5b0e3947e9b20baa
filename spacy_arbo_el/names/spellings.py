"""Spellings of names, one normalization for those of a knowledge base and for mentions.

A name is stored with its own spelling, folded, and with others that mean the same: without accents
(Žižkov, Zizkov), with the letters that stand for them in German (Müller, Mueller), and with numbers
in one form (Fifth Avenue, 5th Avenue). ``headings.py`` adds the bare name of a heading. A mention
is looked up by its own spelling first, then by its others.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator

from anyascii import anyascii

from .headings import Heading
from .words import has_number_words, with_plain_numbers

# What hyphens, en dashes and minus signs, and apostrophes are written as.
DASHES = "\u2010\u2011\u2012\u2013\u2212\u2043\ufe58\ufe63\uff0d"
# Primes too: "4′-" of a chemical name is written 4'-.
APOSTROPHES = "\u2018\u2019\u02bc\u201b\u02b9\u02bb\u2032\u00b4\uff07"
# Soft hyphens, joiners, marks of bytes' order and of the direction of text. The line that makes an
# Arabic word longer (U+0640) means nothing either.
INVISIBLE = (
    "\u00ad\u0640\u200b\u200c\u200d\u2060\ufeff\u061c\u200e\u200f"
    "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
# A final sigma is the same letter.
_PLAIN = str.maketrans(
    {**dict.fromkeys(DASHES, "-"), **dict.fromkeys(APOSTROPHES, "'"), "ς": "σ"}
    | dict.fromkeys(INVISIBLE, "")
)
# What stands for letters where a keyboard has none of them, in German and Nordic languages.
_OF_LETTERS = {"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa", "đ": "dj"}
_PAIRS = str.maketrans(
    _OF_LETTERS
    | {letter.upper(): pair.capitalize() for letter, pair in _OF_LETTERS.items()}
)
# Letters of Latin and Cyrillic script. Others have no spelling in Latin letters that all people
# use, and a Greek letter is a symbol: "µg" is no "mg".
_LATIN = re.compile(
    "[\u00c0-\u024f\u0400-\u052f\u1e00-\u1eff\u2c60-\u2c7f\ua720-\ua7ff]+"
)
# Letters of Arabic and Persian that look alike and have the same keys, signs of vowels, and Hebrew
# marks for quotes.
_OF_KEYBOARDS = dict(
    zip("\u06a9\u06cc\u0649\u06c1\u05f3\u05f4", "\u0643\u064a\u064a\u0647'\"")
)
_VOWELS = map(
    chr, (*range(0x0591, 0x05BE), 0x05C1, 0x05C2, *range(0x064B, 0x0653), 0x0670)
)
_SIMILAR = str.maketrans(_OF_KEYBOARDS | dict.fromkeys(_VOWELS, ""))
_GREEK = re.compile("[\u0370-\u03ff\u1f00-\u1fff]+")
_MARKS = re.compile("[\u0300-\u036f]+")
# What else a name must have to have other spellings.
_MAY_DIFFER = re.compile(r"[^\x00-\x7f]|[\d(,]")

# The kinds of spellings: the name's own, others that mean the same, and the bare name of a heading,
# which lacks something that may tell it from others.
OWN, OTHER, BARE = range(3)


def compatible(name: str) -> str:
    """A name in the compatible form of Unicode (NFKC), as it is encoded and compared."""
    return name if name.isascii() else unicodedata.normalize("NFKC", name)


def folded(name: str) -> str:
    """The own spelling of a name, whatever its case, white space, dashes and quotes."""
    if name.isascii():
        return " ".join(name.lower().split())
    lower = unicodedata.normalize("NFKC", compatible(name).lower())
    return " ".join(lower.translate(_PLAIN).split())


def other_spellings(name: str) -> dict[str, int]:
    """Further spellings of a name, folded or not, in order of preference, with their kinds."""
    folded_name = folded(name)
    kinds: dict[str, int] = {}
    if not _MAY_DIFFER.search(folded_name) and not has_number_words(folded_name):
        return kinds
    heading = Heading.of(folded_name)
    for form in _transliterated(folded_name):
        kinds.setdefault(with_plain_numbers(form.lower()), OTHER)
    if heading is not None:
        for form in _transliterated(heading.dated):
            kinds.setdefault(form.lower(), OTHER)
        for bare in heading.bare:
            for form in _transliterated(bare):
                kinds.setdefault(form.lower(), BARE)
    return {
        form: kind for form, kind in kinds.items() if form not in ("", folded_name)
    }


def all_spellings(names: Iterable[str]) -> dict[str, int]:
    """The spellings of an entity's names, folded, with their kinds; see ``other_spellings``."""
    kinds = dict.fromkeys(map(folded, names), OWN)
    for folded_name in list(kinds):
        for spelling, kind in other_spellings(folded_name).items():
            kinds[spelling] = min(kind, kinds.get(spelling, kind))
    return kinds


def compared_forms(name: str) -> list[str]:
    """The forms of a name to compare, its own first: without accents, and bare of headings."""
    compatible_name = compatible(name)
    forms = dict.fromkeys(map(str.lower, written_forms(name)))
    forms.pop(compatible_name.lower(), None)
    return [compatible_name, *forms]


def without_accents(text: str) -> str:
    """A text (NFKC) with plain letters in the place of Latin ones; Cyrillic becomes Latin.

    Letters of Arabic script that look alike are one, and signs of vowels are left out.
    """
    if text.isascii():
        return text
    plain = text.translate(_SIMILAR)
    plain = _GREEK.sub(lambda match: unicodedata.normalize("NFD", match[0]), plain)
    plain = _LATIN.sub(lambda match: anyascii(match[0]).replace("'", ""), plain)
    # A mark alone stays.
    return _MARKS.sub("", plain) or text


def with_pairs(text: str) -> str:
    """The same with the pairs of letters that stand for umlauts."""
    plain = without_accents(text.translate(_PAIRS))
    return plain.upper() if text.isupper() else plain


def is_accented(text: str) -> bool:
    """Return whether a text has letters that ``without_accents`` changes."""
    is_other = (
        _LATIN.search(text) or _GREEK.search(text) or text.translate(_SIMILAR) != text
    )
    return not text.isascii() and bool(is_other)


def written_forms(name: str) -> list[str]:
    """The other forms of a name in texts, in its own case: bare of headings, plain letters."""
    compatible_name = compatible(name)
    heading = Heading.of(compatible_name)
    bare = heading.bare if heading is not None else ()
    forms = dict.fromkeys(
        form for text in (compatible_name, *bare) for form in _transliterated(text)
    )
    return [form for form in forms if form not in (compatible_name, name)]


def _transliterated(text: str) -> Iterator[str]:
    """A text itself, with pairs of letters for umlauts, and without accents."""
    yield text
    if not text.isascii():
        yield with_pairs(text)
        yield without_accents(text)
