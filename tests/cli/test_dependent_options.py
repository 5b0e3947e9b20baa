"""Options that would have no effect are refused."""

import pytest

from ..cases import cases
from ..commands import run


@pytest.mark.parametrize(("command", "option", "other"), cases("dependent_options"))
def test_options_that_need_others(command, option, other, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = run(*command.split(), code=1)
    assert "E896" in said and option in said and f"needs {other}:" in said
    assert not list(tmp_path.iterdir())


def test_show_takes_documents_or_a_text():
    assert "E836" in run("show", "model", code=1)
    assert "E836" in run("show", "model", "dev.spacy", "--text", "A text.", code=1)
