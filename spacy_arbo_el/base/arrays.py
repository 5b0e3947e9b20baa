"""Array helpers: top-k tables, ragged arrays, sequences made on access, unit vectors."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from typing_extensions import Self

from .compiling import numba_jit
from .errors import Errors

T = TypeVar("T")


class Rows:
    """A dataclass whose fields are arrays, lists or ``Rows``, with a row for each of some things.

    The first field has them all. Fields of other kinds, such as None, are of all rows together.
    """

    def __len__(self) -> int:
        return len(next(iter(vars(self).values())))

    def take(self, rows: Any) -> Self:
        """Some of the rows, in that order. rows: (n,) int64; a slice or bool for arrays alone."""
        columns = columns_of(self).items()
        taken = {name: take_rows(column, rows) for name, column in columns}
        return replace(self, **taken)  # type: ignore[type-var]

    def replaced(self, rows: np.ndarray, replacements: Self) -> Self:
        """The same with replacements for some rows of arrays, (n,) int64."""
        columns = {name: column.copy() for name, column in columns_of(self).items()}
        for name, column in columns_of(replacements).items():
            columns[name][rows] = column
        return replace(self, **columns)  # type: ignore[type-var]

    @classmethod
    def concat(cls, batches: Sequence[Self]) -> Self:
        """The rows of one or more, one after the other; tables are padded to the widest."""
        columns = zip(*(columns_of(batch).values() for batch in batches))
        return cls(*map(concat_rows, columns))


def columns_of(rows: Any) -> dict[str, Any]:
    """The fields of a dataclass by name."""
    return {field.name: getattr(rows, field.name) for field in fields(rows)}


def take_rows(column: Any, rows: Any) -> Any:
    """Some rows of an array, a list or ``Rows``. Anything else is given back."""
    if isinstance(column, np.ndarray):
        return column[rows]
    if isinstance(column, Sequence):
        return [column[row] for row in rows.tolist()]
    return column.take(rows) if hasattr(column, "take") else column


def concat_rows(columns: Sequence[Any]) -> Any:
    """Arrays, lists or ``Rows`` one after the other; None where there is none for some rows."""
    first = columns[0]
    if any(column is None for column in columns):
        return None
    if isinstance(first, np.ndarray):
        missing = -1 if first.dtype.kind == "i" else 0
        return (
            concat_tables(columns, missing)
            if first.ndim > 1
            else np.concatenate(columns)
        )
    if isinstance(first, Sequence):
        return list(chain.from_iterable(columns))
    return type(first).concat(columns) if hasattr(first, "concat") else first


@dataclass(frozen=True)
class TopK(Rows):
    """The best ids of ``m`` queries with their scores, best first.

    Equal scores come in the order of their ids.

    ids: (m, k) int64, -1 if there is none.
    scores: (m, k) float32, -inf if there is none.
    """

    ids: np.ndarray
    scores: np.ndarray

    def __post_init__(self) -> None:
        if self.ids.shape != self.scores.shape or self.ids.ndim != 2:
            raise ValueError(
                f"ids {self.ids.shape} and scores {self.scores.shape} must be (m, k)"
            )

    @property
    def width(self) -> int:
        """The number of columns, k."""
        return self.ids.shape[1]

    @property
    def valid(self) -> np.ndarray:
        """(m, k) bool, where there is an id."""
        return self.ids >= 0

    @classmethod
    def empty(cls, rows: int, width: int = 0) -> "TopK":
        """A table without any id."""
        ids = minus_ones((rows, width))
        return cls(ids, np.full(ids.shape, -np.inf, dtype=np.float32))

    @classmethod
    def concat(cls, tables: Sequence["TopK"]) -> "TopK":
        """Stack the rows of several tables, padded to the widest."""
        tables = tables or [cls.empty(0)]
        return cls(
            concat_tables([table.ids for table in tables], -1),
            concat_tables([table.scores for table in tables], -np.inf),
        )

    def first(self, count: int) -> "TopK":
        """The ``count`` best of each row."""
        return TopK(self.ids[:, :count], self.scores[:, :count])

    def resized(self, width: int) -> "TopK":
        """The table cut or padded to a number of columns."""
        return TopK(
            resized_table(self.ids, width, -1),
            resized_table(self.scores, width, -np.inf),
        )

    def where(self, keep: np.ndarray) -> "TopK":
        """The table without entries at which ``keep``, broadcast to (m, k) bool, is False."""
        is_kept = np.broadcast_to(keep, self.ids.shape) & self.valid
        order = np.argsort(~is_kept, axis=1, kind="stable")
        ids = np.where(is_kept, self.ids, -1)
        scores = np.where(is_kept, self.scores, np.float32(-np.inf))
        return TopK(
            np.take_along_axis(ids, order, 1), np.take_along_axis(scores, order, 1)
        )

    def within(self, labels: np.ndarray) -> "TopK":
        """A table of rows of the same m things, without those of another label, (m,)."""
        return self.where(labels[self.ids] == labels[:, None])

    def columns_of(self, ids: np.ndarray) -> np.ndarray:
        """Columns of ids (m, c) in their rows: (m, c) int64, -1 for one that does not occur."""
        if not self.width:
            return minus_ones(ids.shape)
        same = (ids[:, :, None] == self.ids[:, None, :]) & (ids[:, :, None] >= 0)
        return np.where(same.any(axis=2), same.argmax(axis=2), -1)

    def scores_or_least(self, ids: np.ndarray) -> np.ndarray:
        """Score of each id in its row: (m, c) float32, ``least`` where one does not occur."""
        return at_columns(self.scores, self.columns_of(ids), self.least)

    def put(self, rows: np.ndarray, best: "TopK") -> None:
        """Write the first columns of some rows, (n,) int64."""
        self.ids[rows, : best.width] = best.ids
        self.scores[rows, : best.width] = best.scores

    @property
    def least(self) -> np.ndarray:
        """The least score of each row: (m, 1) float32. 0 where it has no ids."""
        scores = np.where(self.valid, self.scores, np.float32(np.inf))
        least = scores.min(axis=1, initial=np.inf, keepdims=True)
        return np.where(self.valid.any(axis=1, keepdims=True), least, np.float32(0))


@numba_jit()
def first_of_each(
    row: np.ndarray, value: np.ndarray, rows: int, count: int
) -> np.ndarray:  # pragma: no cover - compiled
    """Places of the first occurrence of the first ``count`` values of each row.

    row: (n,) int64, ascending.
    value: (n,) int64 from 0, in order of preference within a row.
    RETURNS: (rows, count) int64, -1 for none.
    """
    places = np.full((rows, count), -1, dtype=np.int64)
    taken = np.zeros(rows, dtype=np.int64)
    last_seen = np.full(value.max() + 1 if len(value) else 0, -1, dtype=np.int64)
    for place in range(len(value)):
        r = row[place]
        v = value[place]
        if last_seen[v] != r and taken[r] < count:
            last_seen[v] = r
            places[r, taken[r]] = place
            taken[r] += 1
    return places


def first_columns(values: np.ndarray, count: int) -> np.ndarray:
    """Columns of the first ``count`` different values of each row: (m, count) int64, -1 for none.

    values: (m, k) int64, -1 for none.
    """
    row, column = np.nonzero(values >= 0)
    places = first_of_each(row, values[row, column], len(values), count)
    return take_or(column, places, -1)


def at_columns(table: np.ndarray, columns: np.ndarray, missing: Any) -> np.ndarray:
    """Values (m, c) in columns of each row of a table (m, k); ``missing`` where one is -1."""
    last = np.broadcast_to(np.asarray(missing, dtype=table.dtype), (len(table), 1))
    return np.take_along_axis(np.concatenate([table, last], axis=1), columns, axis=1)


def int_array(values: Any = ()) -> np.ndarray:
    """Whole numbers, or rows of them, as an array of int64."""
    return np.array(values, dtype=np.int64)


def minus_ones(shape: int | tuple[int, ...]) -> np.ndarray:
    """An array of int64 in which -1 stands for none."""
    return np.full(shape, -1, dtype=np.int64)


def places_of(sorted_keys: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Where each of some keys is among ascending ones: int64, shaped as they; -1 for none."""
    if not len(sorted_keys):
        return minus_ones(keys.shape)
    place = np.minimum(np.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)
    return np.where(sorted_keys[place] == keys, place, -1)


def take_or(values: np.ndarray, places: np.ndarray, missing: float) -> np.ndarray:
    """``values[places]``, with ``missing`` where a place is -1."""
    if not len(values):
        return np.full(places.shape, missing, dtype=values.dtype)
    return np.where(places >= 0, values[places], values.dtype.type(missing))


def offsets_of(lengths: Any) -> np.ndarray:
    """(n,) lengths -> (n + 1,) int64 boundaries."""
    return np.cumsum(np.append(0, int_array(lengths)))


def ragged_ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Concatenate ``arange(s, s + l)`` of all pairs."""
    lengths = np.asarray(lengths, dtype=np.int64)
    shifts = np.asarray(starts, dtype=np.int64) - offsets_of(lengths)[:-1]
    return np.arange(int(lengths.sum()), dtype=np.int64) + np.repeat(shifts, lengths)


def numbered(values: Sequence[Hashable]) -> np.ndarray:
    """Number values in order of first occurrence, equal ones alike: (n,) int64."""
    numbers = {value: number for number, value in enumerate(dict.fromkeys(values))}
    return np.array([numbers[value] for value in values], dtype=np.int64)


def unit(vectors: np.ndarray) -> np.ndarray:
    """Scale vectors (n, width) to length 1; those of length 0 stay."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def has_vector(vectors: np.ndarray) -> np.ndarray:
    """(n,) bool, the rows that are vectors. Zeros stand for text that an encoder cannot read."""
    return np.asarray(vectors.any(axis=1))


def check_vectors(vectors: np.ndarray, rows: int) -> np.ndarray:
    """The vectors as (rows, width) float32. An error for other shapes, or infinite lengths."""
    vectors = np.asarray(vectors, dtype=np.float32)
    if vectors.ndim != 2 or len(vectors) != rows:
        raise Errors.E004(shape=vectors.shape, rows=rows)
    wrong = np.flatnonzero(~np.isfinite(np.einsum("nd,nd->n", vectors, vectors)))
    if len(wrong):
        raise Errors.E005(count=len(wrong), rows=rows, first=int(wrong[0]))
    return vectors


@dataclass(frozen=True)
class AppendOnly:
    """An array that grows by rows without copying old ones.

    buffer: (capacity, …), of which the first ``length`` rows are in use.
    taken: The number of rows of the buffer that this or a longer version of it uses.
    """

    buffer: np.ndarray
    length: int
    taken: list[int]

    @classmethod
    def empty(cls, dtype: str = "float32") -> "AppendOnly":
        """No rows of vectors, of any width."""
        return cls.of(np.zeros((0, 0), dtype=dtype))

    @classmethod
    def of(cls, rows: np.ndarray) -> "AppendOnly":
        """Wrap the rows of an array. The array must not be changed any more."""
        return cls(rows, len(rows), [len(rows)])

    @property
    def rows(self) -> np.ndarray:
        """(length, …)."""
        return self.buffer[: self.length]

    def with_rows(self, rows: np.ndarray) -> "AppendOnly":
        """A longer version; the present one stays as it is. One thread at a time may call this."""
        if not len(rows):
            return self
        end = self.length + len(rows)
        buffer = self.buffer
        taken = self.taken
        if end > len(buffer) or taken[0] != self.length:
            buffer = np.empty(
                (max(end, 2 * self.length), *rows.shape[1:]), dtype=buffer.dtype
            )
            if self.length:  # otherwise the rows' shape is known only now
                buffer[: self.length] = self.rows
            taken = [end]
        buffer[self.length : end] = rows
        taken[0] = end
        return AppendOnly(buffer, end, taken)


class OnAccess(Sequence[T]):
    """A sequence of items that are made on access. Few of a large corpus are needed at a time.

    make: Function from the number of an item to the item.
    """

    def __init__(self, make: Callable[[int], T], count: int) -> None:
        self._make = make
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, which: Any) -> Any:
        if isinstance(which, slice):
            return [
                self._make(number) for number in range(*which.indices(self._count))
            ]
        return self._make(range(self._count)[which])


def resized_table(table: np.ndarray, width: int, missing: float) -> np.ndarray:
    """Cut or pad a table (m, k, ...) to some columns. It is padded with ``missing``."""
    if width <= table.shape[1]:
        return table[:, :width]
    shape = (len(table), width - table.shape[1], *table.shape[2:])
    padding = np.full(shape, missing, dtype=table.dtype)
    return np.hstack([table, padding])


def concat_tables(tables: Sequence[np.ndarray], missing: float) -> np.ndarray:
    """Stack one or more tables (m, k, ...), padded to the widest with ``missing``."""
    width = max(table.shape[1] for table in tables)
    return np.concatenate([resized_table(table, width, missing) for table in tables])


def mix(values: np.ndarray) -> np.ndarray:
    """Mix the bits of uint64 numbers (MurmurHash3), so that each depends on all bits given."""
    values = values ^ (values >> np.uint64(33))
    values = values * np.uint64(0xFF51AFD7ED558CCD)
    values = values ^ (values >> np.uint64(33))
    values = values * np.uint64(0xC4CEB9FE1A85EC53)
    return values ^ (values >> np.uint64(33))
