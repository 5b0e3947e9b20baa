"""Documents in Parquet files, one per row.

Only the column ``text`` must be there. ``id`` holds strings or whole numbers. ``mentions`` holds
lists of structures with the fields of a mention in JSONL. Other columns are not read.
"""

from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from ..errors import Errors
from ..extras import import_pyarrow, import_pyarrow_parquet
from ..storage.lines import PathLike, throw
from .annotated import AnnotatedText
from .fields import Problem
from .records import OnBad, made_up_id

SUFFIX = ".parquet"
COLUMNS = ("id", "text", "mentions")
# Rows that are in memory at a time.
BATCH = 256


def count_rows(path: PathLike) -> Optional[int]:
    """How many rows a file has; None where it can't be read."""
    pyarrow = import_pyarrow()
    try:
        return int(import_pyarrow_parquet().ParquetFile(path).metadata.num_rows)
    except (OSError, pyarrow.ArrowException):
        return None


def read_parquet(
    path: PathLike,
    parse: Callable[[Dict[str, Any], str], AnnotatedText],
    bad: OnBad = throw,
    start: int = 0,
    stop: Optional[int] = None,
    name: Optional[Callable[[int], str]] = None,
) -> Iterator[AnnotatedText]:
    """Yield the documents of some rows of a file.

    Raises ValueError with file and row for an invalid row, and where there is no column ``text``.

    path: The file.
    parse: Makes a document of a row and of an id for where it has none.
    bad: Takes the errors of rows; by default they are raised.
    start: The first row, from 0.
    stop: The row behind the last; None for all.
    name: Function from the number of a row, from 1, to its id where it has none.
    """
    for row, record in _read_rows(Path(path), start, stop):
        made_up = made_up_id(path, row) if name is None else name(row)
        try:
            yield parse(record, made_up)
        except Problem as problem:
            bad(ValueError(Errors.E897.format(path=path, row=row, problem=problem)))


def _read_rows(path: Path, start: int, stop: Optional[int]) -> Iterator[Tuple[int, Dict[str, Any]]]:
    """The number of each row, from 1, and its columns."""
    pyarrow, parquet = import_pyarrow(), import_pyarrow_parquet()
    try:
        with parquet.ParquetFile(path) as file:
            columns = [column for column in COLUMNS if column in file.schema_arrow.names]
            if "text" not in columns:
                problem = f"there is no column 'text'; there are {file.schema_arrow.names}."
                raise ValueError(Errors.E897.format(path=path, row=1, problem=problem))
            groups, row = _groups_from(file.metadata, start)
            for batch in file.iter_batches(BATCH, row_groups=groups, columns=columns):
                for record in batch.to_pylist():
                    row += 1
                    if stop is not None and row > stop:
                        return
                    if row > start:
                        yield row, record
    except pyarrow.ArrowException as error:
        raise ValueError(Errors.E897.format(path=path, row=1, problem=error)) from error


def _groups_from(metadata: Any, start: int) -> Tuple[List[int], int]:
    """The row groups from the one with row ``start``, and how many rows come before them."""
    before = 0
    for group in range(metadata.num_row_groups):
        rows = metadata.row_group(group).num_rows
        if before + rows > start:
            return list(range(group, metadata.num_row_groups)), before
        before += rows
    return [], before
