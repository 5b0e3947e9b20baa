"""Entities in Parquet files, a row for each. It needs pyarrow."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...kb.entity import Entity
from ...kb.importers.common import ImportReport, RecordReader
from ...records.formats import certainty
from ...records.lines import PathLike
from ...records.parquet import parquet_rows
from ...records.source import Source


@dataclass(frozen=True)
class ParquetReader:
    """Reads the entities of a Parquet file, whose columns are named as those of a table.

    Raises ValueError with file, row (as its line) and problem.

    skip_bad: Whether invalid rows are counted and left out.
    """

    skip_bad: bool = False

    sniff = staticmethod(partial(certainty, pattern=re.compile(b"PAR1")))

    def read(self, path: PathLike, report: ImportReport) -> Iterator[Entity]:
        """Yield the entities. report: Gets the ids under "alt_ids"."""
        source = Source(path, report.on_bad(self.skip_bad))
        reader = RecordReader(report=report)

        def read(number: int, row: dict[str, Any]) -> Entity:
            filled = {name: value for name, value in row.items() if value != ""}
            return reader.entity(reader.read_dict(filled))

        yield from source.read(parquet_rows(source), read)
        reader.warn()
