"""Write docs/reference.md: every registered part, with its settings, from the docstrings.

    python docs/build_reference.py

The parts are those of the entry points in setup.cfg.
"""

import configparser
import dataclasses
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from spacy.language import Language

from spacy_arbo_el.cli import arbo_cli

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference.md"
# What follows the generated part: errors, words, the Python API.
END = ROOT / "docs" / "parts" / "reference_end.md"
# Entry points that are no parts of a config.
OTHER = ("spacy_cli", "spacy_arbo_el_")
# What the registry of an entry point is called in a config.
REGISTRIES = {
    "thinc_losses": "losses",
    "thinc_schedules": "schedules",
    "spacy_factories": "factory",
}
# Some parts take their settings over from a class, which describes them.
DESCRIBED_BY = {
    "arbo_linker": "spacy_arbo_el.linker:ArboLinker",
    "arbo_names": "spacy_arbo_el.find.finders:ArboNames",
    "spacy-arbo-el.Documents.v1": "spacy_arbo_el.corpora.read:documents_reader",
    "spacy-arbo-el.MentionCorpus.v1": "spacy_arbo_el.corpora.reader:MentionCorpus",
}
# Arguments that spaCy gives.
GIVEN = ("nlp", "name", "vocab")
SECTIONS = (
    ("The component", ("factory",)),
    ("Mentions: `mentions`", ("mentions",)),
    ("Encoders: `model`", ("encoders",)),
    ("Knowledge bases", ("kb", "corpora")),
    ("Search: `retriever`", ("retrieval",)),
    ("Rerankers and inference: `reranker`, `inference`", ("ranking", "linking")),
    ("Discovery: `discovery`", ("discovery",)),
    ("Training", ("training", "runs")),
    ("Evaluation", ("evaluation", "fitting")),
    ("The add-on of papers", ("contrib.papers",)),
)
INTRODUCTION = """# Reference

<!-- Written by docs/build_reference.py. Do not edit. -->

All parts that a config can name and their settings, then [the default config](#the-default-config),
[commands](#commands), [errors](#errors), [words](#words) and the [Python API](#python-api). A
setting without a default must be given. The docstring of each part has more, and an example.
"""
COMMANDS = """
All begin with `python -m spacy`. They take the pipeline first, then the data; `--help` shows the
options and an example. `--code FILE` first imports a Python file with parts and formats of yours.
"""


@dataclasses.dataclass(frozen=True)
class Part:
    """A registered part.

    name: As configs write it.
    registry: The registry, as configs write it.
    package: The package of spacy_arbo_el that it is in.
    function: What is registered.
    """

    name: str
    registry: str
    package: str
    function: Any

    @property
    def doc(self) -> str:
        return textwrap.dedent(inspect.getdoc(self.function) or "")

    def settings(self) -> dict[str, str]:
        """The default of each setting as a config writes it, "" for none."""
        parameters = inspect.signature(self.function).parameters.values()
        defaults = {}
        for parameter in parameters:
            is_given = self.registry == "factory" and parameter.name in GIVEN
            if not is_given and parameter.kind is not parameter.VAR_POSITIONAL:
                defaults[parameter.name] = self.default(parameter)
        return defaults

    def default(self, parameter: inspect.Parameter) -> str:
        """The default of a setting as a config writes it, "" for none."""
        value = parameter.default
        if self.registry == "factory":
            value = Language.get_factory_meta(self.name).default_config[parameter.name]
            if isinstance(value, dict) and any(key.startswith("@") for key in value):
                return "a section"
        return "" if value is parameter.empty else as_config(value)

    def descriptions(self) -> dict[str, str]:
        """What the docstrings say of each setting."""
        described = parameters_in(self.doc)[1]
        if self.name in DESCRIBED_BY:
            other = inspect.getdoc(load(DESCRIBED_BY[self.name])) or ""
            described = {**parameters_in(other)[1], **described}
        return described


def as_config(value: Any) -> str:
    """A default as a config writes it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple):
        return str(list(value))
    return repr(value)


def load(place: str) -> Any:
    module, name = place.split(":")
    return getattr(importlib.import_module(module), name)


def entry_points() -> Iterator[tuple[str, str, str]]:
    """The kind, the name and the place of each entry point."""
    config = configparser.ConfigParser()
    config.optionxform = str  # type: ignore[assignment, method-assign]
    config.read(ROOT / "setup.cfg", encoding="utf8")
    for kind, lines in config["options.entry_points"].items():
        for line in lines.strip().splitlines():
            name, place = (side.strip() for side in line.split("="))
            yield kind, name, place


def room_of(place: str) -> str:
    """The room of the package that a place is in; for an add-on, its name too."""
    rooms = place.partition(":")[0].split(".")[1:]
    return ".".join(rooms[:2] if rooms[0] == "contrib" else rooms[:1])


def parts() -> list[Part]:
    """All registered parts, in the order of setup.cfg."""
    return [
        Part(
            name,
            REGISTRIES.get(kind, kind.split("_")[1]),
            room_of(place),
            load(place),
        )
        for kind, name, place in entry_points()
        if not kind.startswith(OTHER)
    ]


def parameters_in(doc: str) -> tuple[list[str], dict[str, str]]:
    """The lines of a docstring without its parameters, and the text of each parameter."""
    rest: list[str] = []
    found: dict[str, str] = {}
    current = ""
    for line in doc.splitlines():
        start = re.match(r"([a-z]\w*|L2\w*): (.+)", line)
        if start:
            current = start[1]
            found[current] = start[2]
        elif current and line.startswith("    "):
            found[current] += " " + line.strip()
        else:
            current = ""
            rest.append(line)
    return rest, found


def as_markdown(lines: list[str]) -> str:
    """The first sentence of a docstring, and when to use the part."""
    text = re.sub(r"RETURNS:.*(\n    .*)*", "", "\n".join(lines)).partition("::\n")[0]
    sentences = [one for part in text.split("\n\n") for one in sentences_of(part)]
    use = [one for one in sentences[1:] if one.startswith("Use it")]
    return plain(" ".join([*sentences[:1], *use[:1]]))


def sentences_of(text: str) -> list[str]:
    """The sentences of a text, each on one line, with a full stop."""
    parts = re.split(
        r"(?<=[.])(?<!e\.g\.)(?<!i\.e\.) (?=[A-Z0-9`\"(])", " ".join(text.split())
    )
    return [
        part if part.endswith(".") else f"{part.rstrip(':;,')}."
        for part in parts
        if part
    ]


def first_clause(text: str) -> str:
    """What a text says first: up to a full stop or a semicolon."""
    return "".join(sentences_of("".join(sentences_of(text)[:1]).partition("; ")[0]))


def plain(text: str) -> str:
    """Markdown's backticks for those of docstrings."""
    return text.replace("``", "`")


def escaped(cell: str) -> str:
    """A cell of a table, whose bars do not end it."""
    return cell.replace("|", "\\|")


def table(part: Part) -> str:
    settings, described = part.settings(), part.descriptions()
    if not settings:
        return ""
    rows = ["| setting | default | |", "|---|---|---|"]
    for name, default in settings.items():
        shown = default if default in ("", "a section") else f"`{default}`"
        meaning = escaped(plain(first_clause(described.get(name, ""))))
        rows.append(f"| `{name}` | {shown} | {meaning} |")
    return "\n".join(rows)


def entry(part: Part) -> str:
    lines = parameters_in(part.doc)[0]
    if part.name == "arbo_linker":
        lines = [
            'The component: `nlp.add_pipe("arbo_linker")`. It links spans to entities.'
        ]
    elif part.name == "arbo_names":
        lines = [
            "Finds names of the linker's knowledge base in raw text: put it before the linker."
        ]
    key = "factory" if part.registry == "factory" else f"@{part.registry}"
    about = f"`{key}`. {as_markdown(lines)}"
    return "\n\n".join(
        piece for piece in (f"### {part.name}", about, table(part)) if piece
    )


def formats(kind: str) -> str:
    """A table of the formats of an entry point, with the options of their readers."""
    rows = ["| format | what it is | options |", "|---|---|---|"]
    for name, place in sorted(
        (name, place) for one, name, place in entry_points() if one == kind
    ):
        reader = load(place)
        lines, described = parameters_in(textwrap.dedent(inspect.getdoc(reader) or ""))
        about = as_markdown(lines).removeprefix("Reads ")
        options = [
            f"`{field.name}`: {plain(first_clause(described[field.name]))}"
            for field in dataclasses.fields(reader)
        ]
        cells = (f"`{name}`", about[:1].upper() + about[1:], " ".join(options))
        rows.append(f"| {' | '.join(map(escaped, cells))} |")
    return "\n".join(rows)


def commands() -> str:
    """A table of all commands, with the first line of their help."""
    rows = ["| command | what it does |", "|---|---|"]
    for name, command in typer.main.get_command(arbo_cli).commands.items():
        inner = getattr(command, "commands", None) or {"": command}
        for key, one in inner.items():
            about = plain(sentences_of(one.help.partition("\n\n")[0])[0])
            rows.append(f"| `{f'arbo {name} {key}'.strip()}` | {about} |")
    return "\n".join(rows)


def reference() -> str:
    """The page."""
    from spacy_arbo_el.factory import DEFAULT_CONFIG

    everything, pieces = parts(), [INTRODUCTION.strip()]
    for title, packages in SECTIONS:
        pieces.append(f"## {title}")
        pieces += [entry(part) for part in everything if part.package in packages]
    for title, group in (
        (
            "Formats of entities: `arbo kb build --format`",
            "spacy_arbo_el_entity_formats",
        ),
        (
            "Formats of corpora: `arbo convert --format`",
            "spacy_arbo_el_corpus_formats",
        ),
    ):
        pieces += [f"## {title}", formats(group)]
    config = (
        DEFAULT_CONFIG.read_text(encoding="utf8")
        .strip()
        .replace("[arbo_linker", "[components.arbo_linker")
    )
    config = config.replace("]\n", ']\nfactory = "arbo_linker"\n', 1)
    pieces += ["## The default config", f"```ini\n{config}\n```"]
    pieces += [
        "## Commands",
        COMMANDS.strip(),
        commands(),
        END.read_text(encoding="utf8").strip(),
    ]
    return "\n\n".join(pieces) + "\n"


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf8")
