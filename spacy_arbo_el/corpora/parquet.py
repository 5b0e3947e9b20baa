"""Documents in Parquet files, one per row.

Only the column ``text`` must be there. ``id`` holds strings or whole numbers. ``mentions`` holds
lists of structures with the fields of a mention in JSONL. Other columns are not read.
"""

from collections.abc import Iterator
from typing import Any

from ..base.extras import import_pyarrow
from ..records.lines import line_error
from .annotated import AnnotatedText
from .json_documents import Source, read_each, text_of_record

SUFFIX = ".parquet"
COLUMNS = ("id", "text", "mentions")
# Rows that are in memory at a time.
BATCH = 256


def read_parquet(source: Source) -> Iterator[AnnotatedText]:
    """Yield the documents of some rows of a file.

    Errors name the number of a row as that of a line. Raises ValueError where there is no column
    ``text``.
    """
    return read_each(source, text_of_record, _read_rows(source))


def _read_rows(source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    pyarrow, (start, stop, _) = import_pyarrow(), source.lines
    try:
        with pyarrow.parquet.ParquetFile(source.path) as file:
            columns = [
                column for column in COLUMNS if column in file.schema_arrow.names
            ]
            if "text" not in columns:
                problem = (
                    f"there is no column 'text'; there are {file.schema_arrow.names}."
                )
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
                row = row + rows
            for batch in file.iter_batches(
                BATCH, row_groups=list(groups), columns=columns
            ):
                for record in batch.to_pylist():
                    row += 1
                    if stop is not None and row > stop:
                        return
                    if row > start:
                        # Without a text, it is left out and counted as that of a table is.
                        yield row, {**record, "text": record["text"] or ""}
    except pyarrow.ArrowException as error:
        raise line_error(source.path, 1, str(error)) from error
