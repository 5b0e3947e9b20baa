"""Normalization of Greek letters, ligatures, dashes and line breaks. They become plain
characters.
"""

import re
import unicodedata
from dataclasses import dataclass
from typing import ClassVar, Dict, Tuple

import numpy as np
from spacy.util import registry

from .text import inside_of, replace

# What hyphens, en dashes and minus signs, and apostrophes are written as.
DASHES = "\u2010\u2011\u2012\u2013\u2212"
APOSTROPHES = "\u2018\u2019\u02bc"

_GREEK = "Ͱ-Ͽἀ-῿"


def _greek_names() -> Dict[str, str]:
    """Names of Greek letters, without accents."""
    names = {}
    for code in (*range(0x391, 0x3AA), *range(0x3B1, 0x3CA)):
        words = unicodedata.name(chr(code), "").split()
        if len(words) == 4 and words[:1] == ["GREEK"]:
            name = words[3].lower().replace("lamda", "lambda")
            names[chr(code)] = name.capitalize() if words[1] == "CAPITAL" else name
    return names


GREEK = _greek_names()
# A symbol is one letter or two; more are a word in Greek.
_SYMBOL = rf"(?<![{_GREEK}])[{''.join(GREEK)}]{{1,2}}(?![{_GREEK}])"
_EDITS = re.compile(
    rf"(?P<greek>{_SYMBOL})|(?P<broken>(?<=[a-z])[-\u00ad\u2010]\s*\n\s*(?=[a-z]))|(?P<soft>(?<=\w)\u00ad(?=\w))"
    rf"|(?P<dash>[{DASHES}\u2014])|(?P<apostrophe>[{APOSTROPHES}])|(?P<space>\s*[\n\t\r\u00a0]\s*|\s{{2,}})"
    r"|(?P<accents>\w[\u0300-\u036f]+)|(?P<other>[^\x00-\xff])"
)
_PLAIN = {"broken": "", "soft": "", "dash": "-", "apostrophe": "'", "space": " "}


@registry.misc("spacy-arbo-el.PlainCharacters.v1")
@dataclass(frozen=True)
class PlainCharacters:
    """Read typography in mentions as plain characters: "β-cell" as "beta-cell".

    Greek letters that are symbols get their names; Greek words stay. Words that are divided at the
    end of a line are joined, line breaks are spaces, dashes are hyphens, and compatibility
    characters such as ligatures are what they stand for (NFKC). Put it first in a chain::

        [components.arbo_linker.mentions.normalizer]
        @misc = "spacy-arbo-el.PlainCharacters.v1"
    """

    is_local: ClassVar[bool] = True

    def __call__(self, text: str, offsets: np.ndarray) -> Tuple[str, np.ndarray]:
        matches = list(_EDITS.finditer(text)) if len(offsets) else []
        if not matches:
            return text, offsets
        inside = inside_of(text, offsets)
        edits = []
        for match in matches:
            start, end = match.span()
            if inside[start:end].all():
                plain = _plain(text, match)
                if plain != match.group():
                    edits.append((start, end, plain))
        return replace(text, offsets, edits) if edits else (text, offsets)


def _plain(text: str, match: "re.Match[str]") -> str:
    kind, found = match.lastgroup or "", match.group()
    if kind == "greek":
        # "TGFβ" is written TGF-beta.
        before = text[match.start() - 1 : match.start()]
        after = text[match.end() : match.end() + 1]
        name = "-".join(GREEK[letter] for letter in found)
        return "-" * before.isalpha() + name + "-" * after.isalpha()
    return _PLAIN[kind] if kind in _PLAIN else unicodedata.normalize("NFKC", found)
