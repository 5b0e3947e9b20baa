"""``arbo new``: the new entities that a pipeline keeps, to inspect and to correct."""

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Iterator, List

import typer
from spacy.cli._util import Arg, Opt
from wasabi import msg

from ._util import errors_for_people, plain, visible

if TYPE_CHECKING:
    from ..linker import ArboLinker

new_cli = typer.Typer(
    name="new",
    help="New entities that a pipeline keeps, from `arbo discover --keep` or from streaming.",
    no_args_is_help=True,
)
MODEL = Arg(..., help="Pipeline with a linker that keeps new entities")
NAME = Arg(..., help="Id of the new entity")


@contextmanager
def _edited_linker(model: Path) -> Iterator["ArboLinker"]:
    """The pipeline's linker. The pipeline is saved if no error occurs."""
    from ..linker import find_linker
    from ..pipelines import edit_pipeline

    with errors_for_people(), edit_pipeline(model) as nlp:
        yield find_linker(nlp)


@new_cli.command("list")
def list_command(
    # fmt: off
    model: Path = MODEL,
    limit: int = Opt(20, "--limit", "-n", help="Maximum number of new entities to list"),
    # fmt: on
) -> None:
    """List the new entities with their names and the nearest entities, the largest first."""
    from rich.console import Console
    from rich.table import Table

    from ..linker import find_linker
    from ..pipelines import load_pipeline

    with errors_for_people():
        new_entities = find_linker(load_pipeline(model)).new_entities
    table = Table(title=f"{len(new_entities)} new entities", title_justify="left")
    for column in ("id", "name", "mentions", "documents", "cohesion", "nearest in the KB"):
        table.add_column(column, overflow="fold")
    for one in new_entities[:limit]:
        nearest = "; ".join(f"{n.title} ({n.kb_id}, {n.probability:.2f})" for n in one.nearest)
        counts = str(len(one.members)), str(one.documents), f"{one.cohesion:.2f}"
        table.add_row(*map(plain, (one.id, one.name, *counts, nearest)))
    Console(width=130).print(table)


@new_cli.command("show")
def show_command(
    # fmt: off
    model: Path = MODEL,
    name: str = NAME,
    # fmt: on
) -> None:
    """Show the mentions of a new entity. `arbo new split` takes their numbers."""
    from ..discovery.entities import one_line
    from ..linker import find_linker
    from ..pipelines import load_pipeline

    with errors_for_people():
        entity = find_linker(load_pipeline(model)).new_entities[name]
    print(visible(f"{entity.id}: {entity.name}, cohesion {entity.cohesion:.2f}"))
    for number, member in enumerate(entity.members):
        before, after = one_line(member.before), one_line(member.after)
        line = f"{number:4d}  … {before} [{member.text}] {after} …  ({member.document})"
        print(visible(line))


@new_cli.command("accept")
def accept_command(
    # fmt: off
    model: Path = MODEL,
    name: str = NAME,
    kb_id: str = Opt("", "--id", help="Its id in the knowledge base; by default the present one"),
    title: str = Opt("", "--title", help="Its title; by default its name"),
    description: str = Opt("", "--description", help="Its description"),
    yes: bool = Opt(False, "--yes", "-y", help="Don't ask where the id was merged into another"),
    # fmt: on
) -> None:
    """Add a new entity to the knowledge base, with its mentions as exemplars."""
    with _edited_linker(model) as linker:
        new = linker.new_entities[name]
        if new.id != name:
            what = f"{new.id} “{new.name}” ({len(new.members)} mentions)"
            print(visible(f"{name} was merged into {what}."))
            if not yes:
                typer.confirm("Accept that one?", abort=True)
        entity = linker.accept(new, kb_id or None, title=title, description=description)
    accepted = f"{new.id} “{new.name}”, {len(new.members)} mentions"
    msg.good(visible(f"{accepted}: accepted as {entity.id}: {entity.title}"))


@new_cli.command("merge")
def merge_command(
    # fmt: off
    model: Path = MODEL,
    into: str = Arg(..., help="Id of the new entity that stays"),
    others: List[str] = Arg(..., help="Ids of the new entities to merge into it"),
    # fmt: on
) -> None:
    """Merge new entities."""
    with _edited_linker(model) as linker:
        entity = linker.new_entities.merge(into, *others)
    msg.good(visible(f"{entity.id}: “{entity.name}”, {len(entity.members)} mentions"))


@new_cli.command("split")
def split_command(
    # fmt: off
    model: Path = MODEL,
    name: str = NAME,
    members: List[int] = Arg(..., help="Numbers of the mentions to split off, from 0"),
    # fmt: on
) -> None:
    """Split some mentions off from a new entity. They become another new entity."""
    with _edited_linker(model) as linker:
        entity = linker.new_entities.split(name, members)
    about = f"“{entity.name}”, {len(entity.members)} mentions"
    msg.good(visible(f"{entity.id}: {about}, split off from {name}"))


@new_cli.command("reject")
def reject_command(
    # fmt: off
    model: Path = MODEL,
    name: str = NAME,
    # fmt: on
) -> None:
    """Mark a new entity as no entity."""
    with _edited_linker(model) as linker:
        new = linker.new_entities.named(name)
        linker.new_entities.reject(new)
    msg.good(visible(f"{name} “{new.name}”: rejected"))


@new_cli.command("undo")
def undo_command(
    # fmt: off
    model: Path = MODEL,
    # fmt: on
) -> None:
    """Take back the last decision: a merge, a split, a rejection or an acceptance."""
    with _edited_linker(model) as linker:
        entry = linker.undo()
    others = (entry.get(key) for key in ("into", "off", "kb_id"))
    about = " ".join([entry["action"], entry["id"], *(other for other in others if other)])
    msg.good(visible(f"{about}: taken back"))
