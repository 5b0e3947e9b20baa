"""Cells of tables for spreadsheets, which run texts that look like formulas."""

import csv
import io
from collections.abc import Iterable, Sequence

# How formulas of spreadsheets begin, and the sign before a text that is none.
FORMULA = tuple("=+-@\t\r'")


def cell(value: object) -> object:
    """Escape a CSV value that spreadsheets would run as formula.

    A text that begins with "=" or the like, or with an apostrophe, gets an apostrophe before it,
    which ``uncell`` takes back. The null character, which Python 3.10 can't write in a table,
    becomes the replacement character.
    """
    if not isinstance(value, str):
        return value
    text = value.replace("\0", "\ufffd")
    return f"'{text}" if text[:1] in FORMULA else text


def uncell(value: str) -> str:
    """Take back the apostrophe of ``cell``."""
    return value[1:] if value[:1] == "'" and value[1:2] in FORMULA else value


def csv_text(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """A table as CSV, with a header. Cells that spreadsheets would run are texts, see ``cell``."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(map(cell, row) for row in rows)
    return text.getvalue()
