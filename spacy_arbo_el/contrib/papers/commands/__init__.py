"""The commands of the papers: ``arbo rerank`` and ``silver``."""

import typer

from .rerank import rerank_command
from .silver import silver_command

OVERRIDES = {"allow_extra_args": True, "ignore_unknown_options": True}

add_on = typer.Typer()
add_on.command("rerank", context_settings=OVERRIDES)(rerank_command)
add_on.command("silver")(silver_command)
