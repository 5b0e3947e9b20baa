"""Which reader is taken for a file, and the options that a command gives it."""

import bz2
import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import catalogue
import pytest

from spacy_arbo_el.records.formats import BY_START, certainty, format_of, parsed_options
from spacy_arbo_el.records.lines import files_in, plain_name, read_lines, unpacked_start

from ..expecting import raises


@dataclass(frozen=True)
class Lines:
    """Reads files whose names end with .lines, and any that begins with a colon, for certain."""

    words: tuple[str, ...] = ()
    whole: bool = False
    mark: str = ""

    @staticmethod
    def sniff(name, start):
        return 1 if start[:1] == b":" else certainty(name, start, (".lines",))


@dataclass(frozen=True)
class Folders(Lines):
    reads_folders: ClassVar[bool] = True

    @staticmethod
    def sniff(name, start):
        return BY_START if name.endswith(".lines") else 0


class Named:
    """Has no ``sniff``: it is taken where it is named alone."""


@pytest.fixture
def formats():
    registry = catalogue.create("spacy_arbo_el_test", "formats")
    for name, reader in (("b-folders", Folders), ("a-lines", Lines), ("c-named", Named)):
        registry(name, reader)
    return registry


@pytest.mark.parametrize(
    "name, content, format",
    [
        ("x.LINES.gz", "text", "b-folders"),
        ("x.txt", "\ufeff  : text", "a-lines"),
        ("x.lines", ": text", "a-lines"),
        ("x.txt", "text", ""),
    ],
)
def test_the_most_certain_reader_is_taken(formats, write, name, content, format):
    assert format_of(formats, write(content, name)) == format


def test_the_beginning_is_that_of_the_text_however_it_is_stored(formats, tmp_path):
    for name, content in (("x.gz", gzip.compress(b": x")), ("x.txt", ": x".encode("utf-16"))):
        (tmp_path / name).write_bytes(content)
        (tmp_path / f"to.{name}").symlink_to(name)
        assert format_of(formats, tmp_path / f"to.{name}") == "a-lines"


def test_only_readers_of_folders_are_asked_about_them(formats, tmp_path):
    folder = tmp_path / "deep" / "deeper"
    folder.mkdir(parents=True)
    assert format_of(formats, tmp_path) == ""
    Path(folder, "a.lines").write_text(": text")
    assert format_of(formats, tmp_path) == "b-folders"


def test_hidden_files_are_not_read(tmp_path):
    for name in ("b.lines", "a/c.lines", ".b.lines", ".git/c.lines"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert files_in(tmp_path, ".lines") == [tmp_path / "a" / "c.lines", tmp_path / "b.lines"]
    assert files_in(tmp_path / ".b.lines") == [tmp_path / ".b.lines"]


@pytest.mark.parametrize("end", [".gz", ".GZ", ".Bz2", ""])
def test_endings_of_packed_files_are_known_in_any_case(tmp_path, end):
    pack = {".gz": gzip.compress, ".bz2": bz2.compress}.get(end.lower(), bytes)
    path = tmp_path / f"A.JSONL{end}"
    path.write_bytes(pack(b"first\n"))
    assert plain_name(path) == "a.jsonl"
    assert list(read_lines(path)) == [(1, "first")]
    assert unpacked_start(path, 5) == b"first"


def test_options_are_of_the_kinds_that_the_fields_have():
    given = ["words=a, b", "words=c", "whole=true", "mark=x=y", "other=1"]
    expected = {"words": ("a", "b", "c"), "whole": True, "mark": "x=y", "other": "1"}
    assert parsed_options(Lines, given) == expected
    with raises("E751.*whole must be true or false, not 'yes'"):
        parsed_options(Lines, ["whole=yes"])
