"""Old names of methods that have moved."""

import warnings
from functools import partial
from typing import Any, Optional

from .errors import Warnings


class Moved:
    """A method's old name, which now belongs to a facet. It works for one release.

    path: The facet and the method: "feedback.learn".
    """

    def __init__(self, path: str) -> None:
        self.path = path

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, linker: Any, owner: Optional[type] = None) -> Any:
        return self if linker is None else partial(self._call, linker)

    def _call(self, linker: Any, *args: Any, source: Any = None, **settings: Any) -> Any:
        """Call the method. source: New entities that are meant in place of the linker's."""
        message = Warnings.W549.format(name=self.name, path=self.path)
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        facet, _, method = self.path.partition(".")
        target = getattr(linker, facet)
        if source is not None:
            source.acceptance, target = target.acceptance, source
        return getattr(target, method)(*args, **settings)
