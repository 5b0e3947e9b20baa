"""The room of decisions: a pipeline is loaded and saved with them, without what serves pages."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "spacy_arbo_el"
FILES = [PACKAGE / "pipelines.py", *sorted((PACKAGE / "decisions").glob("*.py"))]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_imports_neither_pages_nor_commands(path):
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf8")))
    modules = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    assert not [name for name in modules if name.split(".")[0] in ("serve", "cli")]
    if path.stem != "pipelines":
        assert "pipelines" not in modules
