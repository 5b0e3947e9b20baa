"""Consoles that are not UTF-8, as on Windows or in a redirect there."""

import codecs
import io
import re
import sys
import warnings
from typing import Any

# What signs of messages are written as where the console does not have them.
SIGNS = {"→": "->", "←": "<-", "–": "-", "…": "...", "×": "x", "≥": ">=", "λ": "lambda"}
SIGNS.update({"✔": "[+]", "✘": "[x]", "⚠": "[!]", "ℹ": "[i]", "“": '"', "”": '"', "’": "'"})
PLAIN = "arbo-plain"
# The beginning of warnings for people, and the form of others.
_CODED = re.compile(r"\[(arbo-)?W\d+\]")
_FORMAT = warnings.formatwarning


def write_any_text() -> None:
    """Let all text be printed: signs in ASCII, other characters as their numbers.

    Data that is written to standard output stays UTF-8, see ``write_line``.
    """
    others = [
        stream
        for stream in (sys.stdout, sys.stderr)
        if isinstance(stream, io.TextIOWrapper) and not _is_utf8(stream)
    ]
    if others:
        from wasabi import util

        # wasabi encodes text for the console and decodes it as UTF-8, which then fails.
        util.ENCODING = "utf8"
        codecs.register_error(PLAIN, _plain)
    for stream in others:
        stream.reconfigure(errors=PLAIN)


def prepare_console() -> None:
    """Let all text be printed, and warnings without the place in the code."""
    write_any_text()
    warnings.formatwarning = _format_warning


def _format_warning(
    message: Any, category: Any, filename: str, lineno: int, line: str | None = None
) -> str:
    if _CODED.match(str(message)):
        return f"⚠ {message}\n"
    return _FORMAT(message, category, filename, lineno, line)


def write_line(text: str) -> None:
    """Write a line of data to standard output, in UTF-8 whatever the console is."""
    sys.stdout.flush()
    stream = getattr(sys.stdout, "buffer", None)
    if stream is None:
        print(text)
    else:
        stream.write(f"{text}\n".encode())
        stream.flush()


def _is_utf8(stream: io.TextIOWrapper) -> bool:
    return codecs.lookup(stream.encoding).name == "utf-8"


def _plain(error: UnicodeError) -> tuple[str, int]:
    """A handler of encoding errors."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    plain = (SIGNS.get(char) or char.encode("ascii", "backslashreplace").decode() for char in text)
    return "".join(plain), error.end
