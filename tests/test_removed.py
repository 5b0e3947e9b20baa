"""Removed parts: each registered one says what replaced it, whatever settings the config gives."""

from configparser import ConfigParser
from pathlib import Path

import pytest
from spacy.util import registry
from thinc.api import Config

from spacy_arbo_el.removed import removed

SETUP = Path(__file__).parents[1] / "setup.cfg"


def names():
    """The registry and the full name of each removed part in ``setup.cfg``."""
    setup = ConfigParser()
    setup.optionxform = str
    setup.read(SETUP, encoding="utf8")
    for group, lines in setup["options.entry_points"].items():
        for line in filter(None, lines.split("\n")):
            name, _, place = line.partition(" = ")
            if "removed:" in place:
                yield group.partition("_")[2], name


@pytest.mark.parametrize("kind, name", sorted(names()))
def test_a_removed_part_says_what_replaced_it(kind, name):
    with pytest.raises(ValueError, match=f"{name} was removed. [A-Z]"):
        registry.resolve({"part": {f"@{kind}": name}})


def test_the_old_settings_are_accepted():
    registry.misc.register("test.Removed.v1", func=removed("Removed.v1", "Use this.", "old"))
    with pytest.raises(ValueError, match="Removed.v1 was removed. Use this."):
        registry.resolve(Config().from_str('[part]\n@misc = "test.Removed.v1"\nold = 3'))
