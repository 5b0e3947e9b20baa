"""The recipes of docs/knowledge_base.md, on the small made-up files of tests/data/recipes."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from spacy_arbo_el.kb.knowledge_base import ArboKB

from ..commands import run

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data" / "recipes"
PAGE = (ROOT / "docs" / "knowledge_base.md").read_text(encoding="utf8")
LINES = PAGE.partition("Recipes for")[2].partition("```\n")[2].partition("```")[0].splitlines()
READER = re.search(r"```python\n(.*?mesh.*?)```", PAGE, re.S)[1]
COMMANDS = [line.split()[6:] for line in LINES if line.startswith("python -m spacy arbo kb")]


@pytest.mark.parametrize("arguments", COMMANDS, ids=[command[0] for command in COMMANDS])
def test_recipes(arguments, tmp_path, monkeypatch):
    source = arguments[0]
    if source == "META":
        pytest.skip("read in test_golden_files.py")
    if source.endswith(".ttl"):
        pytest.importorskip("rdflib")
    monkeypatch.chdir(tmp_path)
    shutil.copytree(DATA, tmp_path, dirs_exist_ok=True)
    Path("readers.py").write_text(READER)
    Path("experiments").mkdir()
    shutil.copy(ROOT / "experiments" / "readers.py", "experiments")
    for line in LINES:
        if line.startswith("cut "):
            subprocess.run(line, shell=True, check=True)
    options = [argument.strip('"') for argument in arguments]
    run("kb", "build", *options)
    kb = ArboKB.for_reading(tmp_path / "kb")
    expected = json.loads((DATA / "expected.json").read_text("utf8"))
    assert {entity.id: entity.names for entity in kb} == expected[source]
