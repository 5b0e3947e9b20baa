"""The package's logger: a child of spaCy's, so that spaCy's format and level apply to it."""

import logging
import warnings
from functools import lru_cache

log = logging.getLogger("spacy.arbo")


@lru_cache(maxsize=None)
def warn_once(message: str) -> None:
    """Warn of something that would otherwise be said for each document: once in a process."""
    warnings.warn(message, stacklevel=3)
