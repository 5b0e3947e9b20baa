"""What stands beside a name within a token: marks of sentences, markup and addresses."""

import re

from ..names.folding import OTHER, SUPERSCRIPTS, kind_of
from ..names.spellings import APOSTROPHES

_ADDRESS = re.compile(
    r"\b(?:[a-z][a-z0-9+.]{1,9}://|www\.|10\.\d{4,9}/)[^\s<>\"'()\[\]{}|]+"
    r"|(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]{1,63}\.)+\w+",
    re.IGNORECASE,
)
# Brackets within the words of chemistry, such as "2-(4-fluorophenyl)ethanol".
_OF_FORMULA = re.compile(r"[)\]]-?\w|-[(\[]")
# Characters of markup, each with what it is read as, in the same length.
_MARKUP = re.compile(r"_|&(?:nbsp|#160|#xa0);|&amp;", re.IGNORECASE)
_QUOTES = "'" + APOSTROPHES
# These divide words only in some places: "AT&T", "GO:0008150", "Velmo.js".
_DIVIDES_SOME = ".,:&"


def without_markup(text: str) -> str:
    """A text with blanks for "_" and "&nbsp;". It has the same offsets."""
    return _MARKUP.sub(_read, text)


def _read(match: "re.Match[str]") -> str:
    is_sign = match[0].lower() == "&amp;"
    return "&" + "\u00ad" * 4 if is_sign else " " * len(match[0])


def addresses_in(text: str) -> list[tuple[int, int]]:
    """The places of addresses of pages, mails and articles, in order."""
    return [match.span() for match in _ADDRESS.finditer(text)]


def is_edge(inner: str, beside: str, beyond: str, token: str, ends: bool) -> bool:
    """Return whether a name may end, or begin, beside a character of its token.

    A letter or a digit beside a name makes another word.

    inner: The character of the name.
    beside: The one beside it.
    beyond: The one behind that, up to two where a name ends; "" for none.
    token: The token, or several, that have these characters.
    ends: Whether the name ends there. Otherwise it begins.
    """
    if beside not in SUPERSCRIPTS and beside != "_" and kind_of(beside) != OTHER:
        return False
    has_word = beyond[:1].isalnum()
    if beside in _QUOTES:
        is_genitive = ends and beyond[:1] in ("s", "S") and not beyond[1:].isalnum()
        return is_genitive or not has_word
    if beside in "()[]":
        return not _OF_FORMULA.search(token)
    if beside not in _DIVIDES_SOME or not has_word:
        return True
    before, after = (inner, beyond) if ends else (beyond, inner)
    if beside == ".":
        # A blank is missing behind a sentence.
        return before.islower() and after[:1].isupper()
    return inner.islower() or beyond[:1].islower()
