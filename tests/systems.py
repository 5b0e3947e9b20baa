"""The complete configs of all systems: those of the package, and those of this repository."""

from functools import cache
from pathlib import Path

from spacy.util import load_config_from_str

from spacy_arbo_el import config_sources
from spacy_arbo_el.config_sources import SYSTEMS, complete_config

ROOT = Path(__file__).parents[1]
SOURCES = {system: config_sources.SOURCES[system] for system in SYSTEMS}
SOURCES.update({path.stem: path for path in sorted((ROOT / "configs").glob("*.cfg"))})


@cache
def text_of(system):
    """The text of the complete config, as `arbo init-config` writes it."""
    return complete_config(str(SOURCES[system]))


def load_system(system, overrides=None, interpolate=False):
    """The complete config, as spaCy reads it."""
    return load_config_from_str(text_of(system), overrides or {}, interpolate)


def write_system(system, folder):
    """The path of the complete config, which is written to a folder."""
    path = folder / f"{system}.cfg"
    path.write_text(text_of(system), encoding="utf8")
    return path
