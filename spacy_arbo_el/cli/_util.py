"""Helpers of the commands."""

import re
import unicodedata
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from wasabi import msg

from ..base.display import counted
from ..base.errors import message_of

if TYPE_CHECKING:
    import typer
    from rich.text import Text

# The beginning of the messages of this package and of spaCy.
_CODED = re.compile(r"\[(arbo-)?E\d+\]")


@contextmanager
def user_errors(only_coded: bool = False) -> Iterator[None]:
    """Print an error's message and exit with 1, without traceback.

    only_coded: Whether errors without a code, such as "[arbo-E101]", are raised. A ``KeyError`` or
        an ``ImportError`` without a code always is.
    """
    try:
        yield
    except (ValueError, OSError, KeyError, ImportError) as error:
        text = message_of(error)
        needs_code = only_coded or isinstance(error, (KeyError, ImportError))
        if needs_code and not _CODED.match(text):
            raise
        msg.fail(visible_lines(text), exits=1)


def config_overrides(ctx: "typer.Context") -> dict[str, Any]:
    """Read a command's further options as overrides of the config, as ``spacy train`` does."""
    from spacy.cli import _util

    try:
        return _util.parse_config_overrides(ctx.args)
    except _util.NoSuchOption as error:
        # Newer versions of typer vendor click, and don't know this exception.
        msg.fail(visible_lines(error.format_message()))
        raise SystemExit(1) from None


# What reverses the direction of the text behind it.
_DIRECTIONS = {*range(0x202A, 0x202F), *range(0x2066, 0x206A)}


def visible(text: object) -> str:
    """Format a text on one line, controls as ``\\x1b``."""
    return "".join(map(_visible, str(text)))


def visible_lines(text: object) -> str:
    return "\n".join(map(visible, str(text).split("\n")))


def _visible(character: str) -> str:
    if character in "\t\n\r\v\f\u2028\u2029":
        return " "
    is_control = (
        unicodedata.category(character) in ("Cc", "Cs")
        or ord(character) in _DIRECTIONS
    )
    if is_control:
        return character.encode("unicode_escape").decode("ascii")
    return character


# Ids that are named.
SHOWN_IDS = 5


def warn_of_lacking(gold: Counter[str], entity_ids: Container[str]) -> None:
    """Say how many gold ids a list lacks. gold: How many mentions have each."""
    lacking = Counter(
        {kb_id: n for kb_id, n in gold.items() if kb_id not in entity_ids}
    )
    if lacking:
        named = ", ".join(kb_id for kb_id, _ in lacking.most_common(SHOWN_IDS))
        mentions = counted(lacking.total(), "mention")
        counts = f"{len(lacking):,} of {len(gold):,} gold ids ({mentions})"
        more = ", …" * (len(lacking) > SHOWN_IDS)
        msg.warn(visible(f"The list lacks {counts}: {named}{more}"))


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = ""
) -> None:
    """Print texts as a table. Long ones are folded."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title or None, title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*map(plain, row))
    Console(width=130).print(table)


def plain(text: object) -> "Text":
    """Text for a table of rich, without markup. See ``visible``."""
    from rich.text import Text

    return Text(visible(text))
