"""Consoles that are not UTF-8, hostile texts in tables, options, and what commands import."""

import io
import json
import subprocess
import sys
import warnings

import pytest
from rich.console import Console
from rich.table import Table
from wasabi import msg, util

from spacy_arbo_el.cli import console
from spacy_arbo_el.cli._util import plain, print_table, user_errors, visible

from ..cases import cases
from ..commands import run

NAME = "Łódź – “ü”"


@pytest.mark.parametrize(
    "encoding, plain",
    [
        ("cp1252", "\\u0141ód\\u017a – “ü”".encode("cp1252")),
        ("ascii", b"\\u0141\\xf3d\\u017a \\u2013 \\u201c\\xfc\\u201d"),
        ("utf8", NAME.encode()),
    ],
)
def test_all_text_is_printed(encoding, plain, monkeypatch):
    streams = [io.TextIOWrapper(io.BytesIO(), encoding, write_through=True) for _ in range(2)]
    monkeypatch.setattr(util, "ENCODING", util.ENCODING)
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)
    with monkeypatch.context() as patch:
        for name, stream in zip(("stdout", "stderr"), streams):
            patch.setattr(sys, name, stream)
        console.prepare_console()
        print(NAME)
        msg.good(NAME)
        print(NAME, file=sys.stderr)
    out, error = (stream.buffer.getvalue() for stream in streams)
    first, good = out.splitlines()
    assert (first, error.strip()) == (plain, plain)
    assert plain in good
    assert plain != good


def test_entities_are_exported_as_utf_8_to_any_console(monkeypatch, tmp_path):
    from spacy_arbo_el.cli.kb import export_command
    from spacy_arbo_el.kb.knowledge_base import ArboKB

    with ArboKB.create(tmp_path / "kb") as kb:
        kb.add({"id": "a", "title": NAME})
    data = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(data, encoding="cp437", write_through=True))
    export_command(tmp_path / "kb", "-")
    assert json.loads(data.getvalue().decode("utf8")) == {"id": "a", "title": NAME}


# What the commands print of texts that come from others.


@pytest.mark.parametrize("text, shown", cases("shown_text"))
def test_text_is_shown_as_it_is_without_control_characters(text, shown):
    assert visible(text) == shown
    assert shown == plain(text).plain
    table = Table("name")
    table.add_row(plain(text))
    output = io.StringIO()
    Console(file=output, width=60, force_terminal=True, color_system=None).print(table)
    line = next(line for line in output.getvalue().splitlines() if shown[:3] in line)
    assert shown in line
    assert not any(c in line for c in text if ord(c) < 32)


def test_messages_do_not_control_the_terminal(capsys):
    with pytest.raises(SystemExit), user_errors():
        raise ValueError("no entity \x1b[2J\nsecond line")
    output = "".join(capsys.readouterr())
    assert "no entity \\x1b[2J" in output
    assert "\x1b[2J" not in output
    assert "second line" in output


def test_an_option_that_does_not_exist_is_a_message(tmp_path):
    (tmp_path / "a.cfg").write_text("")
    arguments = ("train", tmp_path / "a.cfg", "--output", tmp_path / "out")
    assert "--stepz" in run(*arguments, "--stepz", 3, code=1)
    assert not (tmp_path / "out").exists()


# What a command imports before it works.


HEAVY = {"transformers", "spacy_transformers", "faiss", "numba", "sklearn", "scipy", "rich"}


def test_help_imports_nothing_heavy_beyond_spacy():
    code = (
        "import sys, spacy.cli\n"
        "before = set(sys.modules)\n"
        "import spacy_arbo_el.cli\n"
        "import typer; typer.main.get_command(spacy_arbo_el.cli.arbo_cli)\n"
        "print(*(set(sys.modules) - before))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    imported = result.stdout.split()
    commands = ("spacy_arbo_el.cli", "spacy_arbo_el.contrib")
    others = [module for module in imported if not module.startswith(commands)]
    assert len(others) > 0, others
    assert len(others) < 30, others
    assert not HEAVY & {module.split(".")[0] for module in imported}
    of_add_ons = [module for module in imported if module.startswith("spacy_arbo_el.contrib.")]
    # The folders themselves are imported with what is in them.
    inner = [one for one in of_add_ons if one.count(".") > 2 and not one.endswith(".errors")]
    assert not [one for one in inner if ".commands" not in one]
    assert "spacy_arbo_el.linker" not in imported


@pytest.mark.parametrize("command, option, other", cases("dependent_options"))
def test_options_that_need_others(command, option, other, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = run(*command.split(), code=1)
    assert "E896" in said
    assert option in said
    assert f"needs {other}:" in said
    assert not list(tmp_path.iterdir())


def test_names_in_tables_are_no_markup_and_do_not_control_the_terminal(capsys):
    print_table(("id", "title"), [("E[1]", "benzo[a]pyrene [/bold]\x1b[2J"), ("[red]x[/red]", "")])
    output = capsys.readouterr().out
    for text in ("benzo[a]pyrene [/bold]\\x1b[2J", "E[1]", "[red]x[/red]"):
        assert text in output
    assert "\x1b[2J" not in output
