"""Old names of methods that have moved."""

import warnings
from typing import Any, Optional

from .errors import Warnings


class Moved:
    """The old name of a method that a facet of the linker has now. It works for one release.

    path: The facet and the method: "feedback.learn".
    """

    def __init__(self, path: str) -> None:
        self.path = path

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, linker: Any, owner: Optional[type] = None) -> Any:
        if linker is None:
            return self
        warn_of_old_name(self.name, self.path, level=3)
        facet, _, method = self.path.partition(".")
        return getattr(getattr(linker, facet), method)


def warn_of_old_name(name: str, path: str, level: int = 3) -> None:
    """Warn whoever called a method of the linker by its old name."""
    message = Warnings.W549.format(name=name, path=path)
    warnings.warn(message, DeprecationWarning, stacklevel=level)
