"""What a store's present state is called, and values that are derived from it once."""

from dataclasses import dataclass
from typing import Any, Callable, Dict, Hashable, Tuple, TypeVar

from .locks import ForkableLock

T = TypeVar("T")


@dataclass(frozen=True)
class Revision:
    """The state of a store of entities, exemplars or both.

    content: Grows with every edit.
    layout: Grows when rows of vectors get other numbers.
    encoder: The fingerprint of the encoder that the vectors come from, "" for none.
    """

    content: int
    layout: int = 0
    encoder: str = ""


class RevisionCache:
    """Values that are derived from a store, each built once for every revision it depends on."""

    def __init__(self) -> None:
        self._values: Dict[Hashable, Tuple[Any, Any]] = {}
        self._lock = ForkableLock()

    def get(self, name: Hashable, revision: Any, build: Callable[[], T]) -> T:
        """The value of that name, built anew where it belongs to another revision.

        name: What the value is.
        revision: What it depends on: a ``Revision``, or a part of one.
        build: Makes the value.
        """
        cached = self._values.get(name)
        if cached is not None and cached[0] == revision:
            return cached[1]
        # Of several threads one builds, and the others wait for the same value.
        with self._lock:
            cached = self._values.get(name)
            if cached is None or cached[0] != revision:
                cached = self._values[name] = (revision, build())
            return cached[1]
