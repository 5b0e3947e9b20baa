"""The command ``arbo new``: decide on stored new entities by a table."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer
from spacy.cli._util import Arg, Opt
from wasabi import msg

from ....cli._util import print_table, user_errors, visible
from ....cli.arguments import CODE, check_model

if TYPE_CHECKING:
    from ....discovery.new_entities import NewEntities

PART = "new_entities"
new_cli = typer.Typer(
    name="new",
    help="List new entities, and decide on them.",
    no_args_is_help=True,
)
MODEL = Arg(..., help="Pipeline with a linker that keeps new entities")


@new_cli.command("list")
def list_command(
    # fmt: off
    model: Path = MODEL,
    limit: int = Opt(
        20, "--limit", "-n", help="Maximum number of new entities to list"
    ),
    output: Path | None = Opt(
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
    from ..decisions.decision_table import described, write_decisions

    with user_errors():
        new_entities = read_new_entities(model)
        if output is not None:
            write_decisions(new_entities, output)
            msg.good(f"{output}: {len(new_entities)} new entities")
            return
    columns = ("id", "name", "mentions", "documents", "cohesion", "nearest in the KB")
    rows = map(described, new_entities[:limit])
    print_table(columns, rows, f"{len(new_entities)} new entities")


@new_cli.command("apply")
def apply_command(
    # fmt: off
    model: Path = MODEL,
    decisions: Path = Arg(
        ..., help="CSV file with a decision per line, see `arbo new list -o`"
    ),
    code: Path | None = CODE,
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
    from ....linker import find_linker
    from ....pipelines import edit_pipeline
    from ..decisions.decision_table import apply_all, read_decisions

    with user_errors():
        check_model(model)
        rows = list(read_decisions(decisions))
        with edit_pipeline(model) as nlp:
            counts = apply_all(decisions, rows, find_linker(nlp).new_entities)
    made = (
        ", ".join(f"{count} {name}" for name, count in counts.items())
        or "no decisions"
    )
    msg.good(visible(f"{model}: {made}"))


def read_new_entities(model: Path) -> "NewEntities":
    """The new entities that a pipeline keeps, read without its encoder."""
    from ....discovery.new_entities import NewEntities
    from ....linking.component_folder import ComponentFolder
    from ..decisions.journal import is_pending

    component = _component(model)
    if is_pending(model):
        from ....linker import find_linker
        from ....pipelines import load_pipeline

        return find_linker(load_pipeline(model)).new_entities
    return NewEntities.from_bytes(ComponentFolder(component).read([PART], None)[PART])


def _component(model: Path) -> Path:
    import srsly

    from ....base.errors import Errors
    from ....records.lines import check_exists
    from ....storage.folders import restore

    restore(model)
    check_model(model)
    check_exists(model / "meta.json", "Give the folder of a pipeline.")
    for name in srsly.read_json(model / "meta.json").get("pipeline", ()):
        # Only linkers have one.
        if (model / name / "manifest.json").is_file():
            return model / name
    raise Errors.E792(path=model, name="")
