"""The commands of add-ons. Packages register theirs by the entry points ``spacy_arbo_el_commands``.

An add-on is a ``typer.Typer`` with commands or groups of commands, named by its entry point. They
are commands of ``arbo``; its help lists them under the name of the add-on.
"""

import catalogue
import typer

add_ons = catalogue.create("spacy_arbo_el", "commands", entry_points=True)


def add_commands(app: typer.Typer) -> None:
    """Add the commands of all add-ons to ``arbo``."""
    for name, add_on in sorted(add_ons.get_all().items()):
        for command in (*add_on.registered_commands, *add_on.registered_groups):
            command.rich_help_panel = f"Commands of {name}"
        app.registered_commands += add_on.registered_commands
        app.registered_groups += add_on.registered_groups
