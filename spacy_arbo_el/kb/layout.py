"""The columns of a list, as its first import had them."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Layout:
    """The columns that a list came in, and how its cells are written.

    columns: From the name of a column to its field; to "" for a key of ``meta``.
    separator: What is between the aliases in a cell.
    delimiter: What is between the columns of a CSV file.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    separator: str = "|"
    delimiter: str = ","

    def to_json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: Any) -> "Layout":
        """That of ``to_json``; one without columns for anything else."""
        try:
            layout = cls(**json.loads(text))
            columns = {str(name): str(field) for name, field in layout.columns.items()}
            if len(layout.delimiter) != 1 or not layout.separator:
                return cls(columns)
            return cls(columns, str(layout.separator), layout.delimiter)
        except (ValueError, TypeError, AttributeError, RecursionError):
            return cls()
