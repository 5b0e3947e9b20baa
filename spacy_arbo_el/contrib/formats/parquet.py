"""Entities in Parquet files, a row for each. It needs pyarrow."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...base.extras import import_pyarrow
from ...kb.entity import Entity
from ...kb.importers.common import ImportReport, RecordReader
from ...records.formats import certainty
from ...records.lines import PathLike, line_error


@dataclass(frozen=True)
class ParquetReader:
    """Reads the entities of a Parquet file, whose columns are named as those of a table.

    Raises ValueError with file, row (as its line) and problem.

    skip_bad: Whether invalid rows are counted and left out.
    """

    skip_bad: bool = False

    sniff = staticmethod(partial(certainty, pattern=re.compile(b"PAR1")))

    def read(
        self, path: PathLike, report: ImportReport | None = None
    ) -> Iterator[Entity]:
        """Yield the entities. report: Gets the ids under "alt_ids"."""
        report = report or ImportReport()
        reader = RecordReader(path, report.on_bad(self.skip_bad), report=report)
        rows = enumerate(_rows(path), 1)
        yield from (
            entity
            for _, entity in reader.entities(rows, lambda _, row: _read(reader, row))
        )
        reader.warn()


def _read(
    reader: RecordReader, row: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    return reader.read_dict(
        {name: value for name, value in row.items() if value != ""}
    )


def _rows(path: PathLike) -> Iterator[dict[str, Any]]:
    pyarrow = import_pyarrow()
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches():
                yield from batch.to_pylist()
    except pyarrow.ArrowException as error:
        raise line_error(path, 1, str(error)) from error
