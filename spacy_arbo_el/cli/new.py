"""``arbo new``: the new entities that a pipeline keeps, looked at and corrected."""

from contextlib import contextmanager
from pathlib import Path
from typing import List

import typer
from spacy.cli._util import Arg, Opt
from wasabi import msg

from ._util import errors_for_people

new_cli = typer.Typer(
    name="new",
    help="New entities that a pipeline keeps (`arbo discover --keep`, or streaming).",
    no_args_is_help=True,
)
MODEL = Arg(..., help="Pipeline with a linker that keeps new entities")


@contextmanager
def _editing(model: Path):
    """The pipeline's linker, which is written when all went well."""
    import spacy

    from ..evaluation.report import find_linker

    with errors_for_people():
        nlp = spacy.load(model)
        yield find_linker(nlp)
        nlp.to_disk(model)


@new_cli.command("list")
def list_command(
    # fmt: off
    model: Path = MODEL,
    limit: int = Opt(20, "--limit", "-n", help="At most this many, the largest first"),
    # fmt: on
) -> None:
    """New entities, the largest first, with their names and what came near."""
    import spacy
    from rich.console import Console
    from rich.table import Table

    from ..evaluation.report import find_linker

    with errors_for_people():
        found = find_linker(spacy.load(model)).new_entities
    table = Table(title=f"{len(found)} new entities", title_justify="left")
    for column in ("id", "name", "mentions", "documents", "cohesion", "nearest in the KB"):
        table.add_column(column, overflow="fold")
    for one in found[:limit]:
        near = "; ".join(f"{n.title} ({n.kb_id}, {n.chance:.2f})" for n in one.nearest)
        counts = str(len(one.members)), str(one.documents), f"{one.cohesion:.2f}"
        table.add_row(one.id, one.name, *counts, near)
    Console(width=130).print(table)


@new_cli.command("show")
def show_command(
    # fmt: off
    model: Path = MODEL,
    name: str = Arg(..., help="The new entity"),
    # fmt: on
) -> None:
    """The mentions of a new entity, with the numbers that `split` takes."""
    import spacy

    from ..evaluation.report import find_linker

    with errors_for_people():
        one = find_linker(spacy.load(model)).new_entities[name]
    print(f"{one.id}: {one.name}, cohesion {one.cohesion:.2f}")
    for number, member in enumerate(one.members):
        where = member.doc_id or f"document {member.document + 1}"
        print(f"{number:4d}  … {member.before} [{member.text}] {member.after} …  ({where})")


@new_cli.command("accept")
def accept_command(
    # fmt: off
    model: Path = MODEL,
    name: str = Arg(..., help="The new entity"),
    kb_id: str = Opt("", "--id", help="Its id in the knowledge base; its own by default"),
    title: str = Opt("", "--title", help="Its title; its name by default"),
    description: str = Opt("", "--description", help="What it is"),
    # fmt: on
) -> None:
    """Take a new entity into the knowledge base, its mentions as exemplars."""
    with _editing(model) as linker:
        texts = {"title": title, "description": description}
        entity = linker.accept(name, kb_id or None, **texts)
    msg.good(f"{entity.id}: {entity.title}")


@new_cli.command("merge")
def merge_command(
    # fmt: off
    model: Path = MODEL,
    into: str = Arg(..., help="The new entity that stays"),
    others: List[str] = Arg(..., help="Those that become part of it"),
    # fmt: on
) -> None:
    """Make one new entity of several."""
    with _editing(model) as linker:
        one = linker.new_entities.merge(into, *others)
    msg.good(f"{one.id}: {len(one.members)} mentions")


@new_cli.command("split")
def split_command(
    # fmt: off
    model: Path = MODEL,
    name: str = Arg(..., help="The new entity"),
    members: List[int] = Arg(..., help="The numbers of mentions to split off, from 0"),
    # fmt: on
) -> None:
    """Make a new entity of its own of some of one's mentions."""
    with _editing(model) as linker:
        one = linker.new_entities.split(name, members)
    msg.good(f"{one.id}: {len(one.members)} mentions, apart from {name}")


@new_cli.command("reject")
def reject_command(
    # fmt: off
    model: Path = MODEL,
    name: str = Arg(..., help="The new entity"),
    # fmt: on
) -> None:
    """Say that this is no entity."""
    with _editing(model) as linker:
        linker.new_entities.reject(name)
    msg.good(f"{name}: rejected")
