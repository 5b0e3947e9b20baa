"""``arbo diff``: what has changed since yesterday."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacy.cli._util import Arg, Opt
from wasabi import msg

from ....base.errors import ArboError, Errors
from ....cli._util import print_table, user_errors, visible
from ....cli.arguments import CODE, check_needs, is_pipeline, open_model
from ....cli.documents import FIND, Reading, document_reader
from ..errors import ReviewMessages

if TYPE_CHECKING:
    from ....kb.knowledge_base import ArboKB
    from ..differences import Difference, Key, Linked

# How many differences are printed.
SHOWN = 20


def diff_command(
    # fmt: off
    old: Path = Arg(..., help="Output of `arbo link`, or a pipeline"),
    new: Path = Arg(..., help="A later output, or a pipeline"),
    texts: Path | None = Opt(None, "--texts", help="Documents that both pipelines link"),
    find: str = FIND,
    old_kb: Path | None = Opt(None, "--old-kb", help="Knowledge base of OLD, for the reasons"),
    new_kb: Path | None = Opt(None, "--new-kb", help="Knowledge base of NEW"),
    output: list[Path] = Opt(
        [], "--output", "-o", help="An .html page or a .csv table of all; may be repeated"
    ),
    code: Path | None = CODE,
    # fmt: on
) -> None:
    """List the links that have changed, and why.

    They are others, appeared or went. Reasons: the entity was added, merged or removed; there is an
    exemplar; the mention was not found in one of them; or the probability has moved.

    \b
    Example:
      python -m spacy arbo diff monday.jsonl tuesday.jsonl -o diff.html
      python -m spacy arbo diff model_1 model_2 --texts corpus.spacy
    """
    from ..differences import differences

    with user_errors():
        for path in output:
            if path.suffix.lower() not in (".html", ".csv"):
                raise ArboError(Errors.E835.format(path=path, suffixes=".html or .csv"))
        options = {"--texts": texts is not None, "--find": bool(find)}
        if not (is_pipeline(old) and is_pipeline(new)):
            check_needs(options, "two pipelines", "an output has its links already")
        elif texts is None:
            raise ArboError(ReviewMessages.E849)
        before, known = _links(old, texts, find, old_kb)
        after, known_now = _links(new, texts, find, new_kb)
        found = differences(before, after, known, known_now)
        total = len({*before, *after})
        for path in output:
            _write(path, found, f"{old.name} and {new.name}", total)
    _print(found)
    written = "".join(f", {visible(path)}" for path in output)
    msg.good(f"{len(found):,} of {total:,} mentions are linked differently{written}")


def _write(path: Path, found: "list[Difference]", title: str, total: int) -> None:
    from ....storage.files import write_file
    from ..differences import as_csv, to_html

    is_page = path.suffix.lower() == ".html"
    text = to_html(found, title, total) if is_page else as_csv(found)
    write_file(path, text.encode("utf8", "replace"))


def _print(found: "list[Difference]") -> None:
    from ..differences import counts_of

    shown = ("kind", "document", "text", "before", "after", "reason")
    cells = [one.cells for one in found[:SHOWN]]
    print_table(shown, [[one[name] for name in shown] for one in cells])
    if len(found) > SHOWN:
        msg.text(f"… and {len(found) - SHOWN:,} more; -o diff.csv has all")
    for (kind, why), count in counts_of(found).most_common():
        msg.info(f"{count:,} × {kind}: {why}")


def _links(
    path: Path, texts: Path | None, find: str, kb: Path | None
) -> "tuple[dict[Key, Linked], ArboKB | None]":
    from spacy.vocab import Vocab

    from ....kb.knowledge_base import ArboKB
    from ....linker import find_linker
    from ....show.frames import rows_of
    from ..differences import by_mention, read_links

    given = ArboKB(Vocab()).from_disk(kb) if kb is not None else None
    if texts is None:
        return read_links(path), given
    nlp: Any = open_model(path)
    linker = find_linker(nlp)
    with document_reader(nlp, linker, texts, Reading(find, "utf8", False)) as read:
        docs = linker.pipe(read())
        rows = rows_of(docs, linker.mentions.getter, linker.cfg["extension"])
        return by_mention(rows), given or linker.kb
