"""What people see of objects: short texts, small tables for notebooks, and data frames."""

from typing import TYPE_CHECKING, Any, Iterable, List, Mapping, Sequence

from .errors import Errors
from .markup import escaped

if TYPE_CHECKING:
    import pandas

# Rows of a table in a notebook.
SHOWN_ROWS = 10
# Characters of a text that a table or a line shows.
SHOWN_CHARACTERS = 80

_CELL = "style='text-align: start; vertical-align: top'"


def shortened(text: str, length: int = SHOWN_CHARACTERS) -> str:
    """The text on one line, cut to ``length`` characters at most."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def shown_probability(probability: float) -> str:
    """A probability in two digits, or as many as it takes to tell it from 0 and 1."""
    is_plain = 0.005 <= probability < 0.995 or probability in (0.0, 1.0)
    return f"{probability:.2f}" if is_plain else f"{probability:.4f}"


def counted(count: int, singular: str, plural: str = "") -> str:
    """A number with its noun: "1 entity", "6,574 entities"."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def html_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], more: int = 0
) -> str:
    """A small table for notebooks. All texts are escaped, and each keeps its direction.

    title: The line above the table.
    columns: Their names; none for a table without a head.
    more: How many rows are left out.
    """
    head = "".join(f"<th {_CELL}>{escaped(column)}</th>" for column in columns)
    head = f"<thead><tr>{head}</tr></thead>" if columns else ""
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    rest = f"<p>… and {more:,} more</p>" if more > 0 else ""
    return (
        f"<div><p><b><bdi>{escaped(title)}</bdi></b></p>"
        f"<table>{head}<tbody>{body}</tbody></table>{rest}</div>"
    )


def html_rows(rows: Iterable[Sequence[object]]) -> str:
    """A table of a page, without a head and with whole texts, escaped."""
    cells = ("".join(f"<td><bdi>{escaped(value)}</bdi></td>" for value in row) for row in rows)
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


def _cell(value: object) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else shortened(str(value))
    return f"<td {_CELL}><bdi>{escaped(text)}</bdi></td>"


def make_frame(
    rows: Iterable[Mapping[str, Any]], columns: Sequence[str], instead: str
) -> "pandas.DataFrame":
    """Rows as a data frame of pandas; ImportError where pandas is not installed.

    columns: Their names in order, which a frame without rows has too.
    instead: What gives the same rows without pandas.
    """
    try:
        import pandas
    except ImportError as error:
        raise ImportError(Errors.E771.format(instead=instead)) from error
    records: List[Mapping[str, Any]] = list(rows)
    return pandas.DataFrame.from_records(records, columns=list(columns))
