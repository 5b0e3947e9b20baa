"""Packages that are imported on first use."""

import importlib
from typing import Any

from .errors import Errors


class OnFirstUse:
    """A package that is imported on first use."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)


def import_pyarrow() -> Any:
    """pyarrow with its module ``parquet``. Raises ImportError that says how to install it."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(Errors.E895) from error
    return pyarrow
