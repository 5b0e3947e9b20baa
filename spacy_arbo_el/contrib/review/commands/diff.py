"""``arbo diff``: what has changed since yesterday."""

from pathlib import Path
from typing import TYPE_CHECKING

from spacy.cli._util import Arg, Opt
from wasabi import msg

from ....base.errors import Errors
from ....cli._util import print_table, user_errors, visible

if TYPE_CHECKING:
    from ....kb.knowledge_base import ArboKB
    from ..differences import Difference

# How many differences are printed.
SHOWN = 20


def diff_command(
    # fmt: off
    old: Path = Arg(..., help="Output of `arbo link`"),
    new: Path = Arg(..., help="A later output"),
    old_kb: Path | None = Opt(
        None, "--old-kb", help="Knowledge base of OLD, for the reasons"
    ),
    new_kb: Path | None = Opt(None, "--new-kb", help="Knowledge base of NEW"),
    output: Path | None = Opt(
        None, "--output", "-o", help="A .csv table of all differences"
    ),
    # fmt: on
) -> None:
    """List the links that have changed, and why.

    They are others, appeared or went. Reasons: the entity was added, merged or removed; there is an
    exemplar; the mention was not found in one of them; or the probability has moved.

    \b
    Example:
      python -m spacy arbo diff monday.jsonl tuesday.jsonl -o diff.csv
    """
    from ....storage.files import write_file
    from ..differences import as_csv, differences, read_links

    with user_errors():
        if output is not None and output.suffix.lower() != ".csv":
            raise Errors.E835(path=output, suffixes=".csv")
        before = read_links(old)
        after = read_links(new)
        changes = differences(before, after, _kb(old_kb), _kb(new_kb))
        if output is not None:
            write_file(output, as_csv(changes).encode("utf8", "replace"))
    _print(changes)
    total = len({*before, *after})
    written = "" if output is None else f", {visible(output)}"
    msg.good(f"{len(changes):,} of {total:,} mentions are linked differently{written}")


def _print(changes: "list[Difference]") -> None:
    from ..differences import counts_of

    shown = ("kind", "document", "text", "before", "after", "reason")
    cells = [change.cells for change in changes[:SHOWN]]
    print_table(shown, [[values[name] for name in shown] for values in cells])
    if len(changes) > SHOWN:
        msg.text(f"… and {len(changes) - SHOWN:,} more; -o diff.csv has all")
    for (kind, why), count in counts_of(changes).most_common():
        msg.info(f"{count:,} × {kind}: {why}")


def _kb(path: Path | None) -> "ArboKB | None":
    from ....kb.knowledge_base import ArboKB

    return None if path is None else ArboKB.for_reading(path)
