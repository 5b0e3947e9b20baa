"""Display of objects as short texts and data frames."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .errors import Errors

if TYPE_CHECKING:
    import pandas

# Rows of a table in a notebook.
SHOWN_ROWS = 10
# Characters of a text that a table or a line shows.
SHOWN_CHARACTERS = 80


def one_line(text: str) -> str:
    return " ".join(text.split())


def shortened(text: str, length: int = SHOWN_CHARACTERS) -> str:
    """Shorten a text to one line of at most ``length``."""
    line = one_line(text)
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def shown_probability(probability: float) -> str:
    """Format a probability in two digits. More are used where it would look like 0 or 1."""
    is_plain = 0.005 <= probability < 0.995 or probability in (0.0, 1.0)
    return f"{probability:.2f}" if is_plain else f"{probability:.4f}"


def counted(count: int, singular: str, plural: str = "") -> str:
    """A number with its noun: "1 entity", "6,574 entities"."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def make_frame(
    rows: Iterable[Mapping[str, Any]], columns: Sequence[str], instead: str
) -> "pandas.DataFrame":
    """Rows as a data frame of pandas. ImportError where pandas is not installed.

    columns: Their names in order, which a frame without rows has too.
    instead: What gives the same rows without pandas.
    """
    try:
        import pandas
    except ImportError as error:
        raise ImportError(Errors.E771.format(instead=instead)) from error
    records: list[Mapping[str, Any]] = list(rows)
    return pandas.DataFrame.from_records(records, columns=list(columns))
