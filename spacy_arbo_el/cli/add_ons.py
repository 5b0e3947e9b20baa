"""The commands of add-ons. Packages register theirs by the entry points ``spacy_arbo_el_commands``.

An add-on is a ``typer.Typer`` with commands or groups of commands, named by its entry point. They
are commands of ``arbo``; its help lists them under the name of the add-on.
"""

from typing import Any

import catalogue
import typer
from typer.core import TyperGroup

add_ons = catalogue.create("spacy_arbo_el", "commands", entry_points=True)


class CommandsByAddOn(TyperGroup):
    """The commands of ``arbo``. Its help lists those of each add-on for themselves."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands and the first lines of their help, by add-on."""
        rows: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            panel = getattr(command, "rich_help_panel", None)
            title = panel if isinstance(panel, str) else "Commands"
            rows.setdefault(title, []).append((name, command.get_short_help_str(80)))
        for title, commands in rows.items():
            with formatter.section(title):
                formatter.write_dl(commands)


def add_commands(app: typer.Typer) -> None:
    """Add the commands of all add-ons to ``arbo``."""
    for name, add_on in sorted(add_ons.get_all().items()):
        for command in (*add_on.registered_commands, *add_on.registered_groups):
            command.rich_help_panel = f"Commands of {name}"
        app.registered_commands += add_on.registered_commands
        app.registered_groups += add_on.registered_groups
