"""Options that would have no effect are refused."""

import pytest
from typer.testing import CliRunner

from spacy_arbo_el.cli import arbo_cli

SILVER = "silver texts --kb kb -o silver.spacy"


@pytest.mark.parametrize(
    "command, option, other",
    [
        ("link model texts -o out --format jsonl", "--format", "--each or --ray"),
        ("link model texts -o out --shard 7", "--shard", "--each or --ray"),
        ("link model texts -o out --part 1/2", "--part", "--each"),
        (f"{SILVER} --hide 0.1", "--hide", "--dev and --hidden-kb"),
        (f"{SILVER} --dev-share 0.1", "--dev-share", "--dev and --hidden-kb"),
        (f"{SILVER} --replace", "--replace", "--dev and --hidden-kb"),
        (f"{SILVER} --shard 7", "--shard", "--ray"),
        (f"{SILVER} --workers 2", "--workers", "--ray"),
    ],
)
def test_options_that_need_others(command, option, other, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(arbo_cli, command.split())
    output = " ".join(result.output.split())
    assert result.exit_code == 1 and "E896" in output
    assert option in output and f"needs {other}:" in output
    assert not list(tmp_path.iterdir())
