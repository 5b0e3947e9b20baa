"""What commands print, on any console."""

import io
import re
import sys
import warnings
from typing import Any

# The beginning of warnings for people, and the form of others.
_CODED = re.compile(r"\[(arbo-)?W\d+\]")
_FORMAT = warnings.formatwarning


def prepare_console() -> None:
    """Print any text in any encoding, and warnings without their place in the code.

    A console that is not UTF-8, as on Windows, gets the numbers of characters that it lacks.
    """
    from wasabi import util

    # wasabi encodes text for the console and decodes it as UTF-8, which fails for any other.
    util.ENCODING = "utf8"
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    warnings.formatwarning = _format_warning


def _format_warning(
    message: Any, category: Any, filename: str, lineno: int, line: str | None = None
) -> str:
    if _CODED.match(str(message)):
        return f"⚠ {message}\n"
    return _FORMAT(message, category, filename, lineno, line)
