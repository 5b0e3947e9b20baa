"""The command ``arbo new``: inspect and correct stored new entities.

Only ``accept`` needs the encoder, since it adds an entity. The others read and write one file.
"""

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Iterator, List, Optional

import typer
from spacy.cli._util import Arg, Opt
from wasabi import msg

from ._util import errors_for_people, print_table, visible
from .arguments import CODE
from .decisions import described, write_decisions
from .saved_new_entities import edited_new_entities, read_new_entities

if TYPE_CHECKING:
    from ..linker import ArboLinker

new_cli = typer.Typer(
    name="new",
    help="Inspect and correct new entities.",
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
    output: Optional[Path] = Opt(
        None, "--output", "-o", help="CSV file of all of them, for `arbo new apply`"
    ),
    # fmt: on
) -> None:
    """List the new entities, the largest first.

    With --output, a table is written whose column "decision" you can fill in, for `arbo new apply`.

    \b
    Example:
      python -m spacy arbo new list with_new --output decisions.csv
    """
    with errors_for_people():
        new_entities = read_new_entities(model)
        if output is not None:
            write_decisions(new_entities, output)
            msg.good(f"{output}: {len(new_entities)} new entities")
            return
    columns = ("id", "name", "mentions", "documents", "cohesion", "nearest in the KB")
    rows = map(described, new_entities[:limit])
    print_table(columns, rows, f"{len(new_entities)} new entities")


@new_cli.command("show")
def show_command(
    # fmt: off
    model: Path = MODEL,
    name: str = NAME,
    # fmt: on
) -> None:
    """Show the mentions of a new entity.

    `arbo new split` takes their numbers.

    \b
    Example:
      python -m spacy arbo new show with_new NEW-5a0c1e2f
    """
    from ..display import one_line

    with errors_for_people():
        entity = read_new_entities(model)[name]
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
    yes: bool = Opt(False, "--yes", "-y", help="Don't ask if the id was merged into another"),
    code: Optional[Path] = CODE,
    # fmt: on
) -> None:
    """Add a new entity to the knowledge base.

    Its mentions become exemplars.

    \b
    Example:
      python -m spacy arbo new accept with_new NEW-5a0c1e2f --id E900 --title Kathmandu
    """
    with _edited_linker(model) as linker:
        new = linker.new_entities[name]
        if new.id != name:
            what = f"{new.id} “{new.name}” ({len(new.members)} mentions)"
            print(visible(f"{name} was merged into {what}."))
            if not yes:
                typer.confirm("Accept that one?", abort=True)
        entity = linker.new_entities.accept(
            new, kb_id or None, title=title, description=description
        )
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
    """Merge new entities.

    \b
    Example:
      python -m spacy arbo new merge with_new NEW-5a0c1e2f NEW-77b1d003
    """
    with errors_for_people(), edited_new_entities(model) as new_entities:
        entity = new_entities.merge(into, *others)
    msg.good(visible(f"{entity.id}: “{entity.name}”, {len(entity.members)} mentions"))


@new_cli.command("split")
def split_command(
    # fmt: off
    model: Path = MODEL,
    name: str = NAME,
    members: List[int] = Arg(..., help="Numbers of the mentions to split off, from 0"),
    # fmt: on
) -> None:
    """Split mentions off from a new entity.

    They become another new entity. `arbo new show` has their numbers.

    \b
    Example:
      python -m spacy arbo new split with_new NEW-5a0c1e2f 0 3
    """
    with errors_for_people(), edited_new_entities(model) as new_entities:
        entity = new_entities.split(name, members)
    about = f"“{entity.name}”, {len(entity.members)} mentions"
    msg.good(visible(f"{entity.id}: {about}, split off from {name}"))


@new_cli.command("reject")
def reject_command(
    # fmt: off
    model: Path = MODEL,
    name: str = NAME,
    # fmt: on
) -> None:
    """Mark a new entity as no entity.

    \b
    Example:
      python -m spacy arbo new reject with_new NEW-5a0c1e2f
    """
    with errors_for_people(), edited_new_entities(model) as new_entities:
        new = new_entities.named(name)
        new_entities.reject(new)
    msg.good(visible(f"{name} “{new.name}”: rejected"))


@new_cli.command("undo")
def undo_command(
    # fmt: off
    model: Path = MODEL,
    # fmt: on
) -> None:
    """Take back the last decision.

    It was a merge, a split, a rejection or an acceptance. An entity that was added is removed from
    the knowledge base.

    \b
    Example:
      python -m spacy arbo new undo with_new
    """
    with errors_for_people():
        is_acceptance = read_new_entities(model).history.standing()[0]["action"] == "accept"
    if is_acceptance:
        with _edited_linker(model) as linker:
            entry = linker.new_entities.undo()
    else:
        with errors_for_people(), edited_new_entities(model) as new_entities:
            entry = new_entities.undo()
    others = (entry.get(key) for key in ("into", "off", "kb_id"))
    about = " ".join([entry["action"], entry["id"], *(other for other in others if other)])
    msg.good(visible(f"{about}: taken back"))


@new_cli.command("apply")
def apply_command(
    # fmt: off
    model: Path = MODEL,
    decisions: Path = Arg(..., help="CSV file with a decision per line, see `arbo new list -o`"),
    # fmt: on
) -> None:
    """Make the decisions of a table, all or none.

    Its columns are "id" and "decision": accept, reject, merge or split; or empty. An acceptance may
    have "kb_id", "title" and "description". A merge has the id that stays in "into". A split has
    the numbers of mentions, separated by spaces, in "members".

    \b
    Example:
      python -m spacy arbo new apply with_new decisions.csv
    """
    from .decisions import ACCEPT, apply_all, read_decisions

    with errors_for_people():
        rows = list(read_decisions(decisions))
        if any(row["decision"] == ACCEPT for _, row in rows):
            with _edited_linker(model) as linker:
                counts = apply_all(decisions, rows, linker.new_entities, linker)
        else:
            with edited_new_entities(model) as new_entities:
                counts = apply_all(decisions, rows, new_entities, None)
    made = ", ".join(f"{count} {name}" for name, count in counts.items()) or "no decisions"
    msg.good(visible(f"{model}: {made}"))
