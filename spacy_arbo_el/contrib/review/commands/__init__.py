"""The commands of the review: ``arbo serve``, ``diff`` and ``new``."""

import typer

from .diff import diff_command
from .new import new_cli
from .serve import serve_command

add_on = typer.Typer()
add_on.command("serve")(serve_command)
add_on.command("diff")(diff_command)
add_on.add_typer(new_cli)
