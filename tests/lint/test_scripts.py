"""The scripts beside the package import only what the package has."""

import ast
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted([*ROOT.glob("benchmarks/*.py"), *ROOT.glob("experiments/*.py")])


def imported(script: Path) -> Iterator[tuple[str, str]]:
    """What a script imports from the package: modules and names in them."""
    for node in ast.walk(ast.parse(script.read_text(encoding="utf8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("spacy_arbo_el"):
            yield from ((node.module, alias.name) for alias in node.names)


def test_there_are_scripts():
    assert sum(1 for script in SCRIPTS for _ in imported(script)) > 50


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_imports_of_scripts_exist(script):
    for module, name in imported(script):
        found = hasattr(import_module(module), name) or find_spec(f"{module}.{name}")
        assert found, f"{module} has no {name}"
