"""The manifest of a knowledge base. Counts and identities.

It may come from strangers. Whatever becomes part of a path, of a statement or of a size is checked
before it is used.
"""

import re
import uuid
from collections.abc import Iterator
from typing import Any

from .vectors import DTYPES, check_dtype

FORMAT = "spacy-arbo-el.kb"
VERSION = 5

Manifest = dict[str, Any]

# No count of ours comes near.
LARGEST = 1 << 40

_COUNTS = ("generation", "entities", "positions")
_PATTERNS = {
    "uuid": re.compile(r"[0-9a-f]{32}"),
    "dtype": re.compile("|".join(DTYPES)),
}


def new_manifest(dtype: str) -> Manifest:
    """The manifest of an empty knowledge base.

    dtype: The type of its vectors.
    """
    return {
        "format": FORMAT,
        "version": VERSION,
        "uuid": uuid.uuid4().hex,
        "generation": 0,
        "entities": 0,
        "positions": 0,
        "dtype": check_dtype(dtype),
    }


def manifest_problems(manifest: Manifest) -> Iterator[str]:
    """Values that no knowledge base of ours has."""
    for key in _COUNTS:
        if not is_count(manifest.get(key)):
            yield f"{key} is {manifest.get(key)!r:.60}"
    for key, pattern in _PATTERNS.items():
        value = manifest.get(key)
        if not isinstance(value, str) or not pattern.fullmatch(value):
            yield f"{key} is {value!r:.60}"


def is_count(value: object) -> bool:
    """Return whether a value is a valid count."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LARGEST
