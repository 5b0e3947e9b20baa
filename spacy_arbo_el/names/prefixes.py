"""Prefixes that make another word, and so another name, of the one behind their hyphen."""

import re

from .spellings import DASHES, INVISIBLE

# Of the opposite, of what is none, and of what is before, after or around it.
PREFIXES = """non un anti contra counter pseudo quasi para semi pre ante post sub peri extra hypo
hyper"""

_PREFIX = re.compile(
    rf"(?<![^\W_])({'|'.join(PREFIXES.split())})[-{DASHES}][\s{INVISIBLE}]*(?=(\w{{1,2}}))",
    re.IGNORECASE,
)


def prefixes_in(text: str) -> dict[int, str]:
    """Find the prefixes with a hyphen, in lower case, by the place of the word behind each.

    "UN-Tarnow" has none, as its "UN" is a symbol; "NON-TARNOW" has one.
    """
    return {
        match.end(): match[1].lower()
        for match in _PREFIX.finditer(text)
        if not match[1].isupper() or match[2].isupper()
    }


def differ_in_prefixes(text: str, name: str) -> bool:
    """Return whether one of two strings has a prefix that the other lacks, also as a word."""
    return any(
        re.search(rf"(?<![^\W_]){prefix}(?![^\W_])", counterpart, re.IGNORECASE)
        is None
        for string, counterpart in ((text, name), (name, text))
        for prefix in prefixes_in(string).values()
    )
