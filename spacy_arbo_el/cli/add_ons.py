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
    """The commands of ``arbo``, and those of all add-ons. Its help lists each add-on for itself.

    Add-ons are imported when a command line is run, not with this module, since their modules
    import others of this folder. A command of an add-on takes no name that is taken.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, add_on in sorted(add_ons.get_all().items()):
            add_on.rich_markup_mode = self.rich_markup_mode
            for called, command in typer.main.get_group(add_on).commands.items():
                command.rich_help_panel = f"Commands of {name}"  # type: ignore[attr-defined]
                self.commands.setdefault(called, command)

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
