"""The package's logger: a child of spaCy's, so that spaCy's format and level apply to it."""

import logging
import sys
import warnings
from typing import Any, Set

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


class WarnOnce:
    """Warns of what would otherwise be said for each document: once in a process."""

    def __init__(self) -> None:
        self._said: Set[str] = set()

    def __call__(self, message: str, kind: str = "") -> None:
        """Warn. kind: What is said once, where messages differ in a count."""
        if (kind or message) not in self._said:
            self._said.add(kind or message)
            warnings.warn(message, stacklevel=3)

    def cache_clear(self) -> None:
        """Say everything once more."""
        self._said.clear()


warn_once = WarnOnce()
