"""The package's logger: a child of spaCy's, so that spaCy's format and level apply to it."""

import logging
import sys
import warnings
from functools import cache
from typing import Any

from tqdm.auto import tqdm

log = logging.getLogger("spacy.arbo")


def progress(total: int, title: str, unit: str) -> Any:
    """A progress bar on terminals and in notebooks, unless the logger is silent.

    total: How many steps there are.
    title: What is done.
    unit: What a step is.
    """
    is_watched = "ipykernel" in sys.modules or sys.stderr.isatty()
    silent = not is_watched or not log.isEnabledFor(logging.WARNING)
    return tqdm(total=total, desc=title, unit=unit, disable=silent)


@cache
def warn_once(message: str) -> None:
    """Warn of something that would otherwise be said for each document: once in a process."""
    warnings.warn(message, stacklevel=3)
