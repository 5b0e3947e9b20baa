"""Commands ``python -m spacy arbo …``. spaCy finds them by the entry point ``spacy_cli``.

Commands import what they need only when they run, so that spaCy's other commands start fast.
"""

import typer
from spacy.cli._util import app

from .add_ons import CommandsByAddOn
from .check import check_command
from .console import prepare_console
from .convert import convert_command
from .discover import discover_command, link_command
from .evaluate import evaluate_command
from .fit import fit_command
from .init import init_command, init_config_command
from .kb import kb_cli
from .show import show_command
from .train import train_command

arbo_cli = typer.Typer(
    name="arbo",
    help="Entity linking and discovery.",
    no_args_is_help=True,
    cls=CommandsByAddOn,
)
arbo_cli.callback()(prepare_console)
# Settings of the config are overridden by options of their names, see ``config_overrides``.
OVERRIDES = {"allow_extra_args": True, "ignore_unknown_options": True}
arbo_cli.command("convert")(convert_command)
arbo_cli.command("check")(check_command)
arbo_cli.command("init")(init_command)
arbo_cli.command("init-config", context_settings=OVERRIDES)(init_config_command)
arbo_cli.command("train", context_settings=OVERRIDES)(train_command)
arbo_cli.command("fit")(fit_command)
arbo_cli.command("evaluate", context_settings=OVERRIDES)(evaluate_command)
arbo_cli.command("link", context_settings=OVERRIDES)(link_command)
arbo_cli.command("discover", context_settings=OVERRIDES)(discover_command)
arbo_cli.command("show")(show_command)
arbo_cli.add_typer(kb_cli)
app.add_typer(arbo_cli)
