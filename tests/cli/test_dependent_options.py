"""Options that would have no effect are refused."""

import pytest

from ..commands import run

SILVER = "silver texts --kb kb -o silver.spacy"


@pytest.mark.parametrize(
    "command, option, other",
    [
        ("show model dev.spacy --mention Amazon", "--mention", "--text"),
        ("show model dev.spacy --page out.html", "--page", "--text"),
        ("scale link model texts -o out --one-graph --part 1/2", "--one-graph", "no --part"),
        (f"{SILVER} --hide 0.1", "--hide", "--dev and --hidden-kb"),
        (f"{SILVER} --dev-share 0.1", "--dev-share", "--dev and --hidden-kb"),
        (f"{SILVER} --replace", "--replace", "--dev and --hidden-kb"),
    ],
)
def test_options_that_need_others(command, option, other, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = run(*command.split(), code=1)
    assert "E896" in said and option in said and f"needs {other}:" in said
    assert not list(tmp_path.iterdir())


def test_show_takes_documents_or_a_text():
    assert "E836" in run("show", "model", code=1)
    assert "E836" in run("show", "model", "dev.spacy", "--text", "A text.", code=1)
