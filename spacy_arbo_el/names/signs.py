"""Signs between two words of a name: "&", "+" and "and" for each other, a comma, a full stop."""

import re
from collections.abc import Container

from .folding import visible
from .word_index import WORD, is_stop_word, normal_word

CONJUNCTIONS = frozenset(["and", "und", "et", "y", "e", "og", "och", "en"])
_SIGN = re.compile(
    rf"\s*(?P<comma>,)?\s*(?P<join>[&+]|\b(?:{'|'.join(sorted(CONJUNCTIONS))})\b)?(?P<stop>\.)?\s*",
    re.IGNORECASE,
)
# What joins two words, in this order: a word, the sign, the other word.
Joint = tuple[str, str, str]


def sign_of(gap: str) -> str:
    """The sign in what stands between two words, or "" for none: "&" for ", and"."""
    match = _SIGN.fullmatch(visible(gap))
    if match is None or gap.count("\n") > 1:
        return ""
    return "&" if match["join"] else match["stop"] or match["comma"] or ""


def joints_of(name: str, stop_words: Container[str]) -> frozenset[Joint]:
    """The signs between words of a name, with these words as they are compared."""
    joints = set()
    last = ""
    end = 0
    for match in WORD.finditer(name):
        word = match[1] or match[0]
        if word.lower() in CONJUNCTIONS and is_stop_word(word, name, stop_words):
            continue
        sign = sign_of(name[end : match.start()]) if last else ""
        last, before = normal_word(word), last
        end = match.end()
        if sign:
            joints.add((before, sign, last))
    return frozenset(joints)
