"""Complete training configs, built from what distinguishes each system.

``default.cfg`` has the settings of the component, as ``nlp.add_pipe`` gives it, and
``configs/training.cfg`` what only training needs. ``<system>.cfg``, in that folder or in one that
an add-on registers, has what differs from both and nothing else. A section that names another
registered function replaces the section as a whole. Then the defaults of these functions are filled
in, as ``spacy init fill-config`` does, so the result does not change with the defaults of the
package.
"""

import re
from collections.abc import Mapping
from configparser import Error as ParserError
from pathlib import Path
from typing import Any

import catalogue
from spacy.util import CONFIG_SECTION_ORDER, SimpleFrozenDict, load_model_from_config
from thinc.api import Config, ConfigValidationError

from .base.errors import Errors

FOLDER = Path(__file__).parent / "configs"
# The complete settings of the component.
DEFAULT_CONFIG = FOLDER.with_name("default.cfg")
_NO_SYSTEMS = {"training"}
# Folders of systems, which packages register by the entry points ``spacy_arbo_el_systems``.
systems = catalogue.create("spacy_arbo_el", "systems", entry_points=True)
_FOLDERS = (FOLDER, *(folder for _, folder in sorted(systems.get_all().items())))
SOURCES = {
    path.stem: path for folder in _FOLDERS for path in sorted(folder.glob("*.cfg"))
}
SYSTEMS = sorted(set(SOURCES) - _NO_SYSTEMS)


def complete_config(
    system: str, overrides: Mapping[str, Any] = SimpleFrozenDict()
) -> str:
    """The text of a complete config. Raises ValueError for a system that is not there or broken.

    system: One of ``SYSTEMS``, or the path of a file with what differs from the default.
    overrides: Values of settings, such as "nlp.lang", in the place of the system's.
    """
    path = _source(system)
    try:
        text = path.read_text(encoding="utf8")
        merged = default_training().merge(read_partial(text))
        config = load_model_from_config(merged, auto_fill=True, validate=False).config
    except (ValueError, KeyError, ImportError, ParserError) as error:
        raise Errors.E796(path=path, error=_reason(error)) from error
    config = Config().from_str(
        config.to_str(), overrides=dict(overrides), interpolate=False
    )
    comment = re.split(r"^\[", text, maxsplit=1, flags=re.M)[0]
    return comment + in_order(config.to_str(interpolate=False))


def default_training() -> Config:
    """The default component with what training needs. ``paths.encoder`` names its encoder."""
    config = Config().from_disk(FOLDER / "training.cfg", interpolate=False)
    component = Config().from_disk(DEFAULT_CONFIG, interpolate=False)["arbo_linker"]
    config["components"]["arbo_linker"].update(component)
    tower = component["model"]["mention"]
    config["paths"]["encoder"] = tower["name"]
    tower["name"] = "${paths.encoder}"
    return config


def _source(system: str) -> Path:
    if system in SYSTEMS:
        return SOURCES[system]
    if not Path(system).is_file():
        raise Errors.E794(value=system, choices=", ".join(SYSTEMS))
    return Path(system)


def _reason(error: Exception) -> str:
    if isinstance(error, ConfigValidationError):
        # Without the section as a whole, which has all defaults.
        error = ConfigValidationError.from_error(error, show_config=False)
    return str(error).strip()


def read_partial(text: str) -> Config:
    """Read a config whose sections may lack their parents. ``[a.b]`` without ``[a]``."""
    sections = split(text)
    parents = {
        name[: dot.start()] for name in sections for dot in re.finditer(r"\.", name)
    }
    sections.update(
        (name, "\n") for name in parents - set(sections) if not name.endswith("*")
    )
    parents_first = sorted(sections, key=lambda name: name.count("."))
    joined = "".join(f"[{name}]{sections[name]}" for name in parents_first)
    return Config().from_str(joined, interpolate=False)


def split(text: str) -> dict[str, str]:
    """The sections of a config by name. Raises ValueError where one is there twice."""
    start, *pieces = re.split(r"^\[(.+)\]$", text, flags=re.M)
    unread = [
        line for line in start.splitlines() if line.strip() and line[0] not in "#;"
    ]
    if unread:
        raise Errors.E797(line=unread[0])
    names = pieces[::2]
    for name in names:
        if names.count(name) > 1:
            raise Errors.E798(section=name)
    return dict(zip(names, pieces[1::2]))


def in_order(text: str) -> str:
    """Sort a config so that subsections follow their sections, in one order for all systems."""
    sections = split(text)
    blocks = []
    for name in sorted(sections, key=_place):
        settings = sorted(filter(None, sections[name].split("\n")))
        blocks.append("\n".join([f"[{name}]", *settings, ""]))
    return "\n".join(blocks)


def _place(name: str) -> tuple[object, ...]:
    """Position of a section. The parts of a list, those below a ``*``, keep their order."""
    names_above = name.split(".")
    above = ["", *names_above]
    names = [
        "" if parent == "*" else name_here
        for parent, name_here in zip(above, names_above)
    ]
    is_listed = names_above[0] in CONFIG_SECTION_ORDER
    first = (
        CONFIG_SECTION_ORDER.index(names_above[0])
        if is_listed
        else len(CONFIG_SECTION_ORDER)
    )
    return (first, *names)
