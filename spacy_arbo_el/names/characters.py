"""Typography, and the plain characters that stand for it: Greek letters, dashes, ligatures."""

import re
import unicodedata

from .spellings import APOSTROPHES, DASHES

_PLAIN_APOSTROPHES = str.maketrans(dict.fromkeys(APOSTROPHES, "'"))
# Characters of Latin-1 that stand for others, but for those that are accents by themselves.
_LATIN = "ª²³¹º¼½¾"

_GREEK = "Ͱ-Ͽἀ-῿"


def _greek_names() -> dict[str, str]:
    names = {}
    for code in (*range(0x391, 0x3AA), *range(0x3B1, 0x3CA)):
        words = unicodedata.name(chr(code), "").split()
        if len(words) == 4 and words[:1] == ["GREEK"]:
            name = words[3].lower().replace("lamda", "lambda")
            names[chr(code)] = name.capitalize() if words[1] == "CAPITAL" else name
    # The micro sign.
    return {**names, "\u00b5": names["\u03bc"]}


GREEK = _greek_names()
# A symbol is one letter or two; more are a word in Greek.
_SYMBOL = rf"(?<![{_GREEK}])[{''.join(GREEK)}]{{1,2}}(?![{_GREEK}])"
TYPOGRAPHY = re.compile(
    rf"(?P<greek>{_SYMBOL})|(?P<broken>(?<=[a-z])[-\u00ad\u2010]\s*\n\s*(?=[a-z]))|(?P<soft>(?<=\w)\u00ad(?=\w))"
    rf"|(?P<dash>[{DASHES}\u2014])|(?P<apostrophe>[{APOSTROPHES}])|(?P<space>\s*[\n\t\r\u00a0]\s*|\s{{2,}})"
    r"|(?P<accents>\w[\u0300-\u036f]+)"
    rf"|(?P<other>[{_LATIN}]|[^\x00-\xff])"
)
_PLAIN = {"broken": "", "soft": "", "dash": "-", "apostrophe": "'", "space": " "}


def plain_characters(match: "re.Match[str]") -> str:
    """The plain characters that stand for a match of ``TYPOGRAPHY``."""
    kind = match.lastgroup or ""
    characters = match.group()
    if kind == "greek":
        # "TGFβ" is written TGF-beta.
        before = match.string[match.start() - 1 : match.start()]
        after = match.string[match.end() : match.end() + 1]
        name = "-".join(GREEK[letter] for letter in characters)
        return "-" * before.isalpha() + name + "-" * after.isalpha()
    if kind in _PLAIN:
        return _PLAIN[kind]
    plain = unicodedata.normalize("NFKC", characters).translate(_PLAIN_APOSTROPHES)
    # The slash of "½".
    return plain.replace("\u2044", "/")
