"""What setup.cfg promises of Python agrees with what the installed requirements need."""

import re
from configparser import ConfigParser
from importlib.metadata import metadata
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[1]


def setup():
    parser = ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf8")
    return parser


def promised():
    """The versions of Python among the classifiers."""
    found = re.findall(r"Python :: (3\.\d+)$", setup()["metadata"]["classifiers"], re.M)
    assert found
    return found


def test_classifiers_are_the_versions_that_can_be_installed():
    allowed = SpecifierSet(setup()["options"]["python_requires"])
    assert [f"3.{n}" for n in range(6, 20) if f"3.{n}.0" in allowed] == promised()


@pytest.mark.parametrize("name", ["spacy", "spacy-transformers", "thinc"])
def test_the_main_requirements_can_be_installed_with_each_version(name):
    """Others have older releases for older versions."""
    needs = SpecifierSet(metadata(name)["Requires-Python"])
    assert [one for one in promised() if f"{one}.5" not in needs] == []
