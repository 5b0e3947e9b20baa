"""The formats of ``--format`` by name, and the one that a file is in.

The reader of a format is a frozen dataclass whose fields are its options. Packages register theirs
by the entry points ``spacy_arbo_el_entity_formats`` and ``spacy_arbo_el_corpus_formats``, a file
given by ``--code`` by these registries as decorators.
"""

import codecs
import dataclasses
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol, get_origin, get_type_hints

import catalogue

from ..base.errors import Errors
from .lines import files_in, plain_name, unpacked_start

# Readers of entities, see ``EntityFormat`` in kb/importers/common.py.
entity_formats = catalogue.create("spacy_arbo_el", "entity_formats", entry_points=True)
# Readers of annotated corpora, see ``CorpusFormat`` in corpora/annotated.py.
corpus_formats = catalogue.create("spacy_arbo_el", "corpus_formats", entry_points=True)

# Writers of links by the end of a file's name, functions like ``corpora.links.write_table``.
link_formats = catalogue.create("spacy_arbo_el", "link_formats", entry_points=True)

# How sure ``sniff`` is, from 0 to 1: by the end of the file's name, and by its beginning.
BY_NAME = 0.5
BY_START = 0.9
# Bytes of a file's beginning that ``sniff`` gets.
START = 4096
# Characters that are hard to give in a shell.
ESCAPED = {"\\t": "\t", "\\n": "\n"}
# Kinds of files that no reader reads, by their beginning or the end of their names.
UNREAD_STARTS = {b"PK\x03\x04": "zip archive or .xlsx",
                 b"\xfd7zXZ": ".xz archive", b"\x28\xb5\x2f\xfd": ".zst archive",
                 b"\x80\x04": "pickle", b"\x80\x05": "pickle"}  # fmt: skip
UNREAD_SUFFIXES = {".xmi": "UIMA CAS in XMI", ".conll": "CoNLL file", ".yaml": "YAML file",
                   ".yml": "YAML file", ".xlsx": ".xlsx file",
                   ".html": "HTML page"}  # fmt: skip


class Sniffing(Protocol):
    """A reader that tells files of its format."""

    @staticmethod
    def sniff(name: str, start: bytes) -> float:
        """Estimate from 0 to 1 how certainly a file is in the format; see ``certainty``.

        name: The name of the file, in small letters and without ".gz" and ".bz2".
        start: Its first bytes, without white space before them.
        """


def certainty(
    name: str,
    start: bytes,
    suffixes: tuple[str, ...] = (),
    pattern: re.Pattern[bytes] | None = None,
) -> float:
    """The certainty that a file is in a format, by the end of its name or its beginning."""
    if pattern is not None and pattern.match(start):
        return BY_START
    return BY_NAME if name.endswith(suffixes) else 0.0


def names_of(formats: catalogue.Registry) -> list[str]:
    """The formats that packages register, whose readers are not imported."""
    points = catalogue.AVAILABLE_ENTRY_POINTS.select(
        group=formats.entry_point_namespace
    )
    return sorted({point.name for point in points})


def make_reader(
    formats: catalogue.Registry, format: str, options: Mapping[str, Any]
) -> Any:
    """The reader of a format. ValueError for a format or an option that there is not."""
    if format not in formats:
        choices = ", ".join(sorted(formats.get_all()))
        details = {
            "value": format,
            "choices": choices,
            "registry": formats.namespace[-1],
        }
        raise Errors.E024(**details)
    reader = formats.get(format)
    field_names = [field.name for field in dataclasses.fields(reader)]
    unknown = [name for name in options if name not in field_names]
    if unknown:
        choices = ", ".join(field_names) or "none"
        raise Errors.E043(format=format, name=unknown[0], choices=choices)
    return reader(**options)


def parsed_options(reader: Any, assignments: Iterable[str]) -> dict[str, Any]:
    """Read options of a reader as a command has them: ``name=value``.

    A list has commas between its values, or is given several times. A table is given as
    ``name=key=value``, once or several times. True and false are such words. A tab and the end of a
    line may be written as ``\\t`` and ``\\n``. ValueError where a value is of another kind.
    """
    kinds = get_type_hints(reader)
    options: dict[str, Any] = {}
    for assignment in assignments:
        name, _, value = assignment.partition("=")
        kind = kinds.get(name, str)
        if get_origin(kind) is Mapping:
            key, _, value = value.partition("=")
            options.setdefault(name, {}).setdefault(key, []).append(value)
        elif get_origin(kind) is tuple:
            values = (item.strip() for item in value.split(","))
            options[name] = (*options.get(name, ()), *values)
        elif kind is bool and value not in ("true", "false"):
            raise Errors.E751(name=name, kind="true or false", value=value)
        else:
            options[name] = (
                value == "true" if kind is bool else ESCAPED.get(value, value)
            )
    return options


def format_of(formats: catalogue.Registry, path: Path) -> str:
    """Infer the format of a file, or of a folder by its first file of each suffix.

    RETURNS: That of the most certain reader, the first by name; "" where no reader knows it.
    """
    best = 0.0
    best_format = ""
    samples = [_sniffed(file, unpacked_start(file, START)) for file in _files(path)]
    for format, reader in sorted(formats.get_all().items()):
        if path.is_dir() and not getattr(reader, "reads_folders", False):
            continue
        sure = max(
            (_sure(reader, name, start) for name, start in samples), default=0.0
        )
        if sure > best:
            best = sure
            best_format = format
    return best_format


def _sure(reader: Any, name: str, start: bytes) -> float:
    """The certainty of a reader for a file; 0 for one without ``sniff``, which must be named."""
    return float(reader.sniff(name, start)) if hasattr(reader, "sniff") else 0.0


def _files(path: Path) -> list[Path]:
    return list(
        {
            Path(plain_name(file)).suffix: file for file in reversed(files_in(path))
        }.values()
    )


def _sniffed(path: Path, beginning: bytes) -> tuple[str, bytes]:
    """The name in small letters without ".gz" or ".bz2", and the beginning without white space."""
    return plain_name(path), beginning.removeprefix(codecs.BOM_UTF8).lstrip()


def check_readable(path: Path, reader: Any) -> None:
    """Raise ValueError with the kind of a file that is of another format than a reader's."""
    beginning = unpacked_start(path, START)
    name, start = _sniffed(path, beginning)
    # White space at the beginning may be a part of the mark.
    kind = next(
        (kind for mark, kind in UNREAD_STARTS.items() if beginning.startswith(mark)),
        None,
    )
    confidence = _sure(reader, name, start)
    if kind is None and confidence < BY_START and start[:1] not in (b"{", b"["):
        kind = UNREAD_SUFFIXES.get(path.suffix.lower()) or _other_format(name, start)
        if kind is None and start[:1] == b"<":
            kind = "XML file"
    if kind is not None:
        raise Errors.E119(path=path, kind=kind)


def _other_format(name: str, start: bytes) -> str | None:
    """The format that a file begins like, of entities or corpora; None for none."""
    readers = {**entity_formats.get_all(), **corpus_formats.get_all()}
    return next(
        (key for key in readers if _sure(readers[key], name, start) >= BY_START), None
    )
