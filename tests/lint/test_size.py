"""The package does not grow without anyone saying so."""

import json
from pathlib import Path

import pytest
from spacy.util import import_file

ROOT = Path(__file__).parents[2]
size = import_file("size", ROOT / "benchmarks" / "size.py")


def test_no_package_grew():
    table, grown = size.compare(size.sizes(), json.loads(size.LIMITS.read_text(encoding="utf8")))
    assert not grown, table


def test_a_package_that_grew_is_named():
    table, grown = size.compare({"graph": 12, "kb": 3}, {"graph": 11, "kb": 3})
    assert grown == 1 and "grew" in table.splitlines()[1] and "grew" not in table.splitlines()[2]


def test_each_file_counts_once():
    lines = sum(len(path.read_text("utf8").splitlines()) for path in size.PACKAGE.rglob("*.py"))
    parts = size.sizes()
    assert parts.pop("package") == lines
    assert parts.pop("tests") and sum(parts.values()) == lines


MOST_LINES = {"project.yml": 149, "experiments/project.yml": 250}


@pytest.mark.parametrize(("path", "lines"), MOST_LINES.items())
def test_projects_are_short(path, lines):
    assert len((ROOT / path).read_text(encoding="utf8").splitlines()) <= lines
