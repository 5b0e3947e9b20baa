"""The manifest of a knowledge base. Counts, identities, and which files belong to it.

It may come from strangers. Whatever becomes part of a path, of a statement or of a size is checked
before it is used.
"""

import json
import re
import uuid
from typing import Any, Dict, Iterator, Optional

from .vectors import DTYPES

FORMAT = "spacy-arbo-el.kb"
VERSION = 3

Manifest = Dict[str, Any]

# No count of ours comes near, and products of two fit into 64 bits.
LARGEST = 1 << 40
WIDEST = 1 << 20

_COUNTS = ("generation", "entities", "positions", "rows", "width", "files", "settled", "crc")
_PATTERNS = {
    "uuid": re.compile(r"[0-9a-f]{32}"),
    "dtype": re.compile("|".join(DTYPES)),
    "encoder": re.compile(r".*", re.DOTALL),
}
_INDEX_FILE = re.compile(r"index-[1-9]\d*(\.\w{1,20})", re.ASCII)


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
        "rows": 0,
        "width": 0,
        "dtype": dtype,
        "files": 0,
        "crc": 0,
        "encoder": "",
        "index": "",
        "settled": 0,
    }


def index_entry(manifest: Manifest) -> Optional[Dict[str, Any]]:
    """The manifest's entry on the search index. None if there is none.

    ValueError where its file has a name that is not one of ours.
    """
    value = manifest.get("index") or "null"
    try:
        entry = json.loads(value)
    except (TypeError, ValueError, RecursionError):
        raise ValueError(f"index is {value!r:.60}") from None
    if entry is None:
        return None
    if not isinstance(entry, dict):
        raise ValueError(f"index is {value!r:.60}")
    match = _INDEX_FILE.fullmatch(str(entry.get("file")))
    if match is None or match[1] != entry.get("suffix"):
        raise ValueError(f"the index has the file {entry.get('file')!r:.60}")
    if not all(is_count(entry.get(key)) for key in ("size", "crc", "rows")):
        raise ValueError(f"index is {value!r:.60}")
    return entry


def manifest_problems(manifest: Manifest) -> Iterator[str]:
    """Values that no knowledge base of ours has."""
    for key in _COUNTS:
        if not is_count(manifest.get(key)):
            yield f"{key} is {manifest.get(key)!r:.60}"
    if not is_count(manifest.get("indexes", 0)):
        yield f"indexes is {manifest['indexes']!r:.60}"
    for key, pattern in _PATTERNS.items():
        value = manifest.get(key)
        if not isinstance(value, str) or not pattern.fullmatch(value):
            yield f"{key} is {value!r:.60}"
    width, rows = manifest.get("width"), manifest.get("rows")
    if not isinstance(width, int) or width > WIDEST or (rows and not width):
        yield f"width is {width}"
    try:
        index_entry(manifest)
    except ValueError as error:
        yield str(error)


def is_count(value: object) -> bool:
    """Return whether a value is a valid count."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LARGEST
