"""docs/reference.md is made from the docstrings, and describes every setting."""

import runpy
from pathlib import Path

BUILD = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "build_reference.py"))


def test_reference_is_up_to_date():
    page = BUILD["PAGE"].read_text(encoding="utf8")
    assert page == BUILD["reference"](), "Run: python docs/build_reference.py"


def test_reference_describes_every_setting_of_every_part():
    page = BUILD["PAGE"].read_text(encoding="utf8")
    parts = BUILD["parts"]()
    assert len(parts) >= 50
    for part in parts:
        assert page.count(f"\n### {part.name}\n") == 1, part.name
        missing = set(part.settings()) - set(part.descriptions())
        assert not missing, (part.name, missing)
        described = set(BUILD["parameters_in"](part.doc)[1])
        assert "[components" not in described and part.doc, part.name
