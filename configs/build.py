"""Build the complete config of each system from what it shares with the others.

    python configs/build.py           # write configs/<system>.cfg for each configs/systems/*.cfg
    python configs/build.py --check   # write nothing, fail where a file is out of date

``base.cfg`` has the settings that the systems share, ``systems/<system>.cfg`` only those that
differ. A setting of the system replaces that of the base. A section that names another registered
function replaces the section of the base as a whole. Then all defaults are filled in, as ``spacy
init fill-config`` does, so the result does not change with the defaults of the package.

Those that ``arbo init-config`` offers are written to the package too.
"""

import re
import sys
from pathlib import Path
from typing import Dict, Tuple

from spacy.util import CONFIG_SECTION_ORDER, load_model_from_config
from thinc.api import Config

CONFIGS = Path(__file__).resolve().parent
SYSTEMS = sorted(path.stem for path in (CONFIGS / "systems").glob("*.cfg"))
# What `arbo init-config --task` writes, by task.
PACKAGED = CONFIGS.parent / "spacy_arbo_el" / "configs"
TASKS = {"names": "linker", "descriptions": "descriptions", "exemplars-only": "exemplars_only"}
# The config of `arbo pretrain` is in the package too.
PRETRAIN = {"pretrain": "pretrain"}
# The config of `arbo rerank` has no pipeline, so there is nothing to build: it is copied.
COPIED = ("reranker",)
HEADER = (
    "# Made by configs/build.py from configs/base.cfg and configs/systems/{}.cfg: edit those.\n"
)


def build(system: str) -> str:
    """The text of the complete config of a system."""
    text = (CONFIGS / "systems" / f"{system}.cfg").read_text(encoding="utf8")
    merged = Config().from_disk(CONFIGS / "base.cfg", interpolate=False).merge(read_partial(text))
    filled = load_model_from_config(merged, auto_fill=True, validate=False).config
    comment = text[: text.index("[")]
    return HEADER.format(system) + comment + in_order(filled.to_str(interpolate=False))


def read_partial(text: str) -> Config:
    """A config whose sections may stand without their parents: ``[a.b]`` without ``[a]``."""
    sections = split(text)
    parents = {name[: dot.start()] for name in sections for dot in re.finditer(r"\.", name)}
    sections.update((name, "\n") for name in parents - set(sections) if not name.endswith("*"))
    parents_first = sorted(sections, key=lambda name: name.count("."))
    whole = "".join(f"[{name}]{sections[name]}" for name in parents_first)
    return Config().from_str(whole, interpolate=False)


def split(text: str) -> Dict[str, str]:
    """The sections of a config by name."""
    _, *parts = re.split(r"^\[(.+)\]$", text, flags=re.M)
    return dict(zip(parts[::2], parts[1::2]))


def in_order(text: str) -> str:
    """A config with each section before its subsections, in the same order for all systems."""
    sections = split(text)
    blocks = []
    for name in sorted(sections, key=place):
        settings = sorted(filter(None, sections[name].split("\n")))
        blocks.append("\n".join([f"[{name}]", *settings, ""]))
    return "\n".join(blocks)


def place(name: str) -> Tuple[object, ...]:
    """Where a section stands. The parts of a list, those below a ``*``, keep their order."""
    parts = name.split(".")
    above = ["", *parts]
    names = ["" if parent == "*" else part for parent, part in zip(above, parts)]
    return (CONFIG_SECTION_ORDER.index(parts[0]), *names)


def main() -> int:
    outdated = []
    texts = {CONFIGS / f"{system}.cfg": build(system) for system in SYSTEMS}
    for task, system in {**TASKS, **PRETRAIN}.items():
        # Without the header: there is nothing to edit elsewhere.
        texts[PACKAGED / f"{task}.cfg"] = texts[CONFIGS / f"{system}.cfg"].partition("\n")[2]
    texts.update(
        (PACKAGED / f"{name}.cfg", (CONFIGS / f"{name}.cfg").read_text(encoding="utf8"))
        for name in COPIED
    )
    PACKAGED.mkdir(exist_ok=True)
    for path, text in texts.items():
        if not path.exists() or path.read_text(encoding="utf8") != text:
            outdated.append(path.name)
            if "--check" not in sys.argv:
                path.write_text(text, encoding="utf8")
    print("Out of date:" if outdated else "All configs are up to date.", *outdated)
    return int("--check" in sys.argv and bool(outdated))


if __name__ == "__main__":
    sys.exit(main())
