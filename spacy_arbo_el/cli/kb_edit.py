"""The commands ``arbo kb add``, ``remove``, ``merge``, ``encode``, ``export``. Each edit is a
transaction.
"""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from spacy.cli._util import Arg, Opt
from wasabi import msg

from ._util import errors_for_people, visible
from .arguments import CODE, KB, load_linker
from .console import write_line

if TYPE_CHECKING:
    from ..kb.entity import Entity
    from ..kb.importers import ImportReport
    from ..kb.knowledge_base import ArboKB
    from ..linker import ArboLinker


def encode_with(linker: "ArboLinker", kb: "ArboKB") -> int:
    """Encode the texts of a knowledge base that have no vector yet. RETURNS: How many."""
    from ..retrieval.entity_texts import encode_texts

    encoder = linker.encoder
    verbalization = linker.datastore.settings.verbalization
    return kb.sync(verbalization, partial(encode_texts, encoder), encoder.text_fingerprint)


COLUMNS = Opt([], "--column", help="table: field=column, such as title=Name")
HEADER = Opt("", "--header", help="table: names of columns, where no line has them")


def table_options(columns: list[str], header: str) -> dict[str, Any]:
    """Arguments of the reader of tables; none of those that were not given."""
    names = tuple(name.strip() for name in header.split(",")) if header else ()
    options = {"columns": pairs(columns), "header": names}
    return {name: value for name, value in options.items() if value}


def pairs(options: Iterable[str]) -> dict[str, list[str]]:
    """Options of the form name=value. Those of one name are joined."""
    found: dict[str, list[str]] = {}
    for name, _, value in (option.partition("=") for option in options):
        found.setdefault(name, []).append(value)
    return found


def progress(entities: "Iterable[Entity]") -> "Iterable[Entity]":
    """The entities, with a progress bar."""
    from tqdm import tqdm

    return tqdm(entities, unit=" entities", leave=False)


def show_skipped(report: "ImportReport") -> None:
    """Print what an import left out and why, and what became of merged ids."""
    for reason, count in report.skipped.most_common():
        msg.info(visible(f"{count} left out: {reason}"))
    for place in report.places:
        msg.text(visible(place))
    for count, what in (
        (len(report.merged.kept), "kept"),
        (report.merged.lost, "dropped: the entity that they led to is not in the list"),
        (report.merged.own, "dropped: they are entities of the list again"),
    ):
        if count:
            msg.info(f"{count} merged ids of the replaced knowledge base {what}")


def add_command(
    # fmt: off
    path: Path = KB,
    source: Path | None = Arg(None, help="File of entities, unless --id is given"),
    format: str = Opt("", "--format", "-f", help="Format of the file, see arbo kb build"),
    columns: list[str] = COLUMNS,
    header: str = HEADER,
    replace: bool = Opt(False, "--replace", help="Replace entities with the same ids"),
    id: str = Opt("", "--id", help="Id of a single entity"),
    title: str = Opt("", "--title", help="Title of a single entity"),
    description: str = Opt("", "--description", help="Description of a single entity"),
    aliases: list[str] = Opt([], "--alias", help="Alias of a single entity; may be repeated"),
    types: list[str] = Opt([], "--type", help="Type of a single entity; may be repeated"),
    model: Path | None = Opt(None, "--model", "-m", help="Pipeline whose linker encodes them"),
    code: Path | None = CODE,
    # fmt: on
) -> None:
    """Add entities to a knowledge base.

    All are added or, on an error, none. With --model, what has no vector yet is encoded.

    \b
    Example:
      python -m spacy arbo kb add kb more.jsonl --model out/model-best
      python -m spacy arbo kb add kb --id E900 --title Kathmandu --alias Katmandu
    """
    from ..kb.entity import Entity
    from ..kb.knowledge_base import ArboKB
    from ..kb.loaders import import_into

    if (source is None) == (not id):
        msg.fail("Give either a file of entities or --id.", exits=1)
    with errors_for_people(), ArboKB.open(path) as kb:
        linker = load_linker(model) if model else None
        if source is None:
            entity = Entity(id, title, description, tuple(aliases), tuple(types))
            count = kb.upsert(entity) if replace else kb.add(entity)
        else:
            options = table_options(columns, header)
            report = import_into(kb, source, format, replace=replace, watch=progress, **options)
            count = report.count
            show_skipped(report)
        texts = encode_with(linker, kb) if linker else 0
        total = len(kb)
    msg.good(f"{path}: {count} added, {total} entities, {texts} texts encoded")


def remove_command(
    path: Path = KB,
    ids: list[str] = Arg(..., help="Ids of the entities to remove"),
) -> None:
    """Remove entities, all of these or none.

    \b
    Example:
      python -m spacy arbo kb remove kb E902 E903
    """
    from ..kb.knowledge_base import ArboKB

    with errors_for_people(), ArboKB.open(path) as kb:
        kb.remove(ids)
        total = len(kb)
    msg.good(f"{path}: {len(ids)} removed, {total} entities")


def merge_command(
    path: Path = KB,
    old: str = Arg(..., help="Id that leads to the other one afterwards"),
    new: str = Arg(..., help="Id that stays"),
) -> None:
    """Merge two entities into one.

    It has the names of both.

    \b
    Example:
      python -m spacy arbo kb merge kb E901 E900
    """
    from ..kb.knowledge_base import ArboKB

    with errors_for_people(), ArboKB.open(path) as kb:
        entity = kb.merge(old, new)
    msg.good(visible(f"{path}: {old} leads to {new} ({'; '.join(entity.names)})"))


def encode_command(
    # fmt: off
    path: Path = KB,
    model: Path = Arg(..., help="Pipeline whose linker encodes it"),
    code: Path | None = CODE,
    # fmt: on
) -> None:
    """Encode the texts that have no vector yet.

    The vectors are those of a pipeline's encoder.

    Vectors of other encoders stay beside these.

    \b
    Example:
      python -m spacy arbo kb encode kb out/model-best
    """
    from ..kb.knowledge_base import ArboKB

    with errors_for_people(), ArboKB.open(path) as kb:
        count = encode_with(load_linker(model), kb)
    msg.good(f"{path}: {count} texts encoded")


def export_command(
    path: Path = KB,
    output: Path = Arg(..., help="JSONL file to write; - for standard output"),
) -> None:
    """Write the entities as JSONL, one per line.

    Merged ids, and others that lead to an entity, are in its "alt_ids".

    \b
    Example:
      python -m spacy arbo kb export kb entities.jsonl
    """
    from ..kb.importers.jsonl import entity_lines, write_entities_jsonl
    from ..kb.knowledge_base import ArboKB

    with errors_for_people():
        kb = ArboKB.for_reading(path)
        if str(output) == "-":
            for line in entity_lines(kb):
                write_line(line)
            return
        count = write_entities_jsonl(kb, output)
        merged = len(kb.entities.redirects())
    also = f", {merged} ids that lead to them" if merged else ""
    msg.good(f"{output}: {count} entities{also}")


def add_edit_commands(app: typer.Typer) -> None:
    """Add these commands to ``arbo kb``."""
    app.command("add")(add_command)
    app.command("remove")(remove_command)
    app.command("merge")(merge_command)
    app.command("encode")(encode_command)
    app.command("export")(export_command)
