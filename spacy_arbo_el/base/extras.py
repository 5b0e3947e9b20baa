"""Optional packages of extras, imported on first use."""

import importlib
from importlib.util import find_spec
from typing import Any

from .errors import Errors


class OnFirstUse:
    """A package that is imported on first use.

    name: Its name.
    """

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)


def imported_on_first_use(name: str) -> OnFirstUse | None:
    """Delay the import of a package until first use. It costs time and memory that most runs can
    save.

    name: Its name.
    RETURNS: What has the contents of the package; None where it is not installed.
    """
    try:
        installed = find_spec(name) is not None
    except ImportError:
        installed = False
    return OnFirstUse(name) if installed else None


def import_pyarrow() -> Any:
    """pyarrow with its module ``parquet``. Raises ImportError that says how to install it."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(Errors.E895) from error
    return pyarrow
