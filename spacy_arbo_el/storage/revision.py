"""Names of a store's states, and values derived once."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

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


class ChangeLog:
    """Recently changed items of a store.

    total: How many changes there were in all.
    """

    # Changes that are remembered. After more of them, derived data is rebuilt.
    LIMIT = 65536

    def __init__(self) -> None:
        self.total = 0
        self._items: list[Any] = []

    def add(self, items: Iterable[Any]) -> None:
        """Note that items have changed."""
        before = len(self._items)
        self._items.extend(items)
        self.total += len(self._items) - before
        if len(self._items) > 2 * self.LIMIT:
            del self._items[: -self.LIMIT]

    def since(self, total: int) -> set[Any] | None:
        """Changes since there were ``total``. None where they are forgotten."""
        count = self.total - total
        if count > len(self._items):
            return None
        return set(self._items[len(self._items) - count :])


class RevisionCache:
    """Values derived from a store, built once per revision."""

    def __init__(self) -> None:
        self._values: dict[Hashable, tuple[Any, Any]] = {}
        self._lock = ForkableLock()

    def get(
        self,
        name: Hashable,
        revision: Any,
        build: Callable[[], T],
        update: Callable[[T], T | None] = lambda value: None,
    ) -> T:
        """Get the value of a name, rebuilt for new revisions.

        name: What the value is.
        revision: What it depends on: a ``Revision``, or a part of one.
        build: Makes the value.
        update: Makes it from the value of an earlier revision, which may be changed for that; None
            where it can't.
        """
        cached = self._values.get(name)
        if cached is not None and cached[0] == revision:
            return cached[1]
        # Of several threads one builds, and the others wait for the same value.
        with self._lock:
            cached = self._values.get(name)
            if cached is None or cached[0] != revision:
                # On an error, a value that is half updated must not be kept.
                self._values.pop(name, None)
                value = None if cached is None else update(cached[1])
                cached = self._values[name] = (revision, build() if value is None else value)
            return cached[1]
