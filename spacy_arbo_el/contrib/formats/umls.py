"""UMLS in its Rich Release Format: MRCONSO, MRDEF and MRSTY, each sorted by concept."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import ClassVar

from ...kb.entity import Entity
from ...kb.importers.common import ImportReport
from ...records.formats import BY_START
from ...records.lines import PathLike, check_exists, line_error, plain_name, read_lines
from ...records.source import Source

# The columns, from the reference manual.
MRCONSO = "CUI LAT TS LUI STT SUI ISPREF AUI SAUI SCUI SDUI SAB TTY CODE STR SRL SUPPRESS CVF"
MRDEF = "CUI AUI ATUI SATUI SAB DEF SUPPRESS CVF"
MRSTY = "CUI TUI STN STY ATUI CVF"

Columns = dict[str, str]
# An id, and its rows.
Concept = tuple[str, list[Columns]]


@dataclass(frozen=True)
class UmlsReader:
    """Reads concepts of UMLS from a folder of its RRF files, or from MRCONSO.RRF in it.

    They may also be in META/ of the folder. MRDEF.RRF and MRSTY.RRF may be beside MRCONSO.RRF.
    Files may be packed (.gz, .bz2).

    The title is the preferred name and the description the first definition. Suppressed names are
    left out. The three files are read in parallel, so each must be sorted by concept, as in the
    distribution.

    Raises ValueError with file, line and problem at an invalid line, or where a file is not sorted.

    languages: The languages (LAT) of names, that of the title first.
    sources: The vocabularies (SAB) of names and definitions; empty for all.
    type_names: Whether types are names ("Disease or Syndrome") instead of ids ("T047").
    """

    reads_folders: ClassVar[bool] = True
    languages: tuple[str, ...] = ("ENG",)
    sources: tuple[str, ...] = ()
    type_names: bool = False

    @staticmethod
    def sniff(name: str, start: bytes) -> float:
        """Know folders by the file of names."""
        return BY_START if name == "mrconso.rrf" else 0.0

    def read(self, path: PathLike, report: ImportReport) -> Iterator[Entity]:
        """Yield the concepts. report: Gets the number of concepts left out."""
        folder = check_exists(path)
        file = folder
        if folder.is_dir():
            file = _file_in(folder, "MRCONSO.RRF")
            if not file.exists():
                file = _file_in(folder / "META", "MRCONSO.RRF")
        definitions = _OptionalFile(_file_in(file.parent, "MRDEF.RRF"), MRDEF)
        types = _OptionalFile(_file_in(file.parent, "MRSTY.RRF"), MRSTY)
        column = "STY" if self.type_names else "TUI"

        def read(number: int, concept: Concept) -> Entity | None:
            id_, rows = concept
            definition_rows = definitions.of(id_)
            type_rows = types.of(id_)
            names = [row for row in rows if row["SUPPRESS"] not in ("O", "Y", "E")]
            if not names:
                report.skip("all names suppressed")
                return None
            names = [row for row in names if row["LAT"] in self.languages]
            if not names:
                report.skip(f"no name in {', '.join(self.languages)}")
                return None
            names = self._of_sources(names)
            if not names:
                report.skip(f"no name from {', '.join(self.sources)}")
                return None
            names.sort(key=self._rank)
            shown = [
                row for row in definition_rows if row["SUPPRESS"] not in ("O", "Y")
            ]
            return report.entity(
                [id_],
                (row["STR"] for row in names),
                next((row["DEF"] for row in self._of_sources(shown)), ""),
                (row[column] for row in type_rows),
                meta={"sources": sorted({row["SAB"] for row in names})},
            )

        return Source(file).read(_concepts(file, MRCONSO), read)

    def _of_sources(self, rows: list[Columns]) -> list[Columns]:
        return [row for row in rows if not self.sources or row["SAB"] in self.sources]

    def _rank(self, row: Columns) -> tuple[int, bool, bool, bool]:
        """By which names are sorted: by language, and preferred ones first."""
        language = self.languages.index(row["LAT"])
        return language, row["TS"] != "P", row["STT"] != "PF", row["ISPREF"] != "Y"


def _file_in(folder: Path, name: str) -> Path:
    """A file of a folder, packed or not, its name in any case, and none of a folder in it."""
    files = sorted(
        file for file in folder.glob("*") if plain_name(file) == name.lower()
    )
    return next(iter(files), folder / name)


class _OptionalFile:
    """A file sorted by concept, read in step. It may not exist."""

    def __init__(self, path: Path, columns: str):
        self._groups = _concepts(path, columns) if path.is_file() else iter(())
        self._next = self._of_next()

    def _of_next(self) -> Concept | None:
        return next((concept for _, concept in self._groups), None)

    def of(self, id_: str) -> list[Columns]:
        while self._next is not None and self._next[0] < id_:
            self._next = self._of_next()
        return self._next[1] if self._next is not None and self._next[0] == id_ else []


def _concepts(path: Path, columns: str) -> Iterator[tuple[int, Concept]]:
    """The concepts of a file with the numbers of their first lines."""
    before = ""
    for concept, rows in groupby(
        _rows(path, columns.split()), key=lambda item: item[1]["CUI"]
    ):
        group = list(rows)
        if concept <= before:
            problem = f"{concept} comes after {before}. Sort the file: LC_ALL=C sort."
            raise line_error(path, group[0][0], problem)
        before = concept
        yield group[0][0], (concept, [row for _, row in group])


def _rows(path: Path, columns: list[str]) -> Iterator[tuple[int, Columns]]:
    for number, line in read_lines(path):
        if not line:
            continue
        values = line.split("|")
        # There is a bar after each value, also after the last one.
        if len(values) not in (len(columns), len(columns) + 1):
            problem = (
                f"expected {len(columns)} values separated by '|', got {len(values)}."
            )
            raise line_error(path, number, problem)
        row = dict(zip(columns, values))
        if not row["CUI"]:
            raise line_error(
                path, number, "the first value, the concept's id, is empty."
            )
        yield number, row
