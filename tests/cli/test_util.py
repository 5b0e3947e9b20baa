"""What the commands print of texts that come from others."""

import io

import pytest
from rich.console import Console
from rich.table import Table

from spacy_arbo_el.cli._util import plain, user_errors, visible

from ..commands import run


@pytest.mark.parametrize(
    "text, shown",
    [
        ("benzo[a]pyrene", "benzo[a]pyrene"),
        ("[/bold]", "[/bold]"),
        ("\x1b]0;title\x07 \x1b[31mred", "\\x1b]0;title\\x07 \\x1b[31mred"),
        ("a\u009b31m", "a\\x9b31m"),
        ("one\ntwo\tthree", "one two three"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("half \ud83d", "half \\ud83d"),
        ("λ ☢ 日本 🎉 e\u0301", "λ ☢ 日本 🎉 e\u0301"),
        ("\\[x]", "\\[x]"),
    ],
)
def test_text_is_shown_as_it_is_without_control_characters(text, shown):
    assert visible(text) == shown == plain(text).plain
    table = Table("name")
    table.add_row(plain(text))
    output = io.StringIO()
    Console(file=output, width=60, force_terminal=True, color_system=None).print(table)
    line = next(line for line in output.getvalue().splitlines() if shown[:3] in line)
    assert shown in line and not any(c in line for c in text if ord(c) < 32)


def test_messages_do_not_control_the_terminal(capsys):
    with pytest.raises(SystemExit), user_errors():
        raise ValueError("no entity \x1b[2J\nsecond line")
    output = "".join(capsys.readouterr())
    assert "no entity \\x1b[2J" in output and "\x1b[2J" not in output and "second line" in output


@pytest.mark.parametrize(
    "command",
    [
        "train a.cfg --output out",
        "distill model -c a.cfg -t train.spacy -o out",
        "rerank model train.spacy dev.spacy --output out",
    ],
)
def test_an_option_that_does_not_exist_is_a_message(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.cfg", "a.spacy", "kb.jsonl", "train.spacy", "dev.spacy"):
        (tmp_path / name).write_text("")
    assert "--stepz" in run(*command.split(), "--stepz", 3, code=1)
    assert not (tmp_path / "out").exists()
