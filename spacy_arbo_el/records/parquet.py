"""The rows of Parquet files. It needs pyarrow."""

from collections.abc import Iterator, Sequence
from typing import Any

from ..base.extras import import_pyarrow
from .lines import line_error
from .source import Source

# Rows that are in memory at a time.
BATCH = 256


def parquet_rows(
    source: Source, columns: Sequence[str] = (), required: str = ""
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows of a part of a file with their numbers from 1.

    Raises ValueError where it is no such file.

    columns: Those to read; none for all.
    required: One that must be there; "" for none.
    """
    pyarrow, (start, stop, _) = import_pyarrow(), source.lines
    try:
        with pyarrow.parquet.ParquetFile(source.path) as file:
            names = file.schema_arrow.names
            if required and required not in names:
                problem = f"there is no column {required!r}; there are {names}."
                raise line_error(source.path, 1, problem)
            groups = range(file.metadata.num_row_groups)
            row = 0
            # Groups of rows before the first one to read are skipped.
            while (
                groups
                and row + (rows := file.metadata.row_group(groups[0]).num_rows)
                <= start
            ):
                groups = groups[1:]
                row += rows
            present = [name for name in names if not columns or name in columns]
            for batch in file.iter_batches(
                BATCH, row_groups=list(groups), columns=present
            ):
                for record in batch.to_pylist():
                    row += 1
                    if stop is not None and row > stop:
                        return
                    if row > start:
                        yield row, record
    except pyarrow.ArrowException as error:
        raise line_error(source.path, 1, str(error)) from error
