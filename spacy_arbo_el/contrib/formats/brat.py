"""Brat's standoff format: a folder of ``.txt`` files with ``.ann`` files beside them.

    T1<tab>Disease 7 17<tab>blue fever
    N1<tab>Reference T1 MESH:D1<tab>blue fever

The id is that of a normalization (N); of a mention without any, that of an attribute (A) whose name
says so. A note (#) is read where ``id_key`` names its kind. Relations and events are not read.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ...corpora.annotated import AnnotatedText, split_ids
from ...corpora.json_documents import placed_or_reported
from ...records.formats import BY_START
from ...records.id_fields import FoundId, find_id
from ...records.lines import (
    OnBad,
    PathLike,
    check_exists,
    files_in,
    read_lines,
    read_text,
)
from ...records.offsets import Given
from ...records.source import Source


@dataclass(frozen=True)
class BratReader:
    """Reads the documents of a folder of brat, or that of an ``.ann`` file.

    A mention in several pieces is left out and counted. Raises ValueError with
    file and line at an invalid line.

    offsets: How the file counts offsets, such as utf16; "" to find it out.
    id_key: The field that has the ids of mentions; "" to know it by its name.
    """

    reads_folders: ClassVar[bool] = True
    offsets: str = ""
    id_key: str = ""

    @staticmethod
    def sniff(name: str, start: bytes) -> float:
        """Know files by their name, which no other format has."""
        return BY_START if name.endswith(".ann") else 0.0

    def read(
        self, path: PathLike, bad: OnBad, counts: Counter
    ) -> Iterator[AnnotatedText]:
        """Yield the documents."""
        path = check_exists(path)
        folder = path if path.is_dir() else path.parent
        for file in (
            files_in(path, ".ann") if path.is_dir() else [_beside(path, ".ann")]
        ):
            text = _beside(file, ".txt")
            try:
                content = read_text(
                    check_exists(text, "Brat has the text beside the .ann file.")
                )
            except (ValueError, FileNotFoundError) as error:
                bad(ValueError(str(error)))
                continue
            name = _without_suffix(file).relative_to(folder).as_posix()
            source = Source(file, bad, offsets=self.offsets)
            yield self._document(source, name, content)

    def _document(self, source: Source, name: str, text: str) -> AnnotatedText:
        mentions: dict[str, tuple[int, Given, str]] = {}
        ids: dict[str, list[str]] = {}
        # The attributes and notes of each mention.
        fields: dict[str, dict[str, str]] = {}
        unread: list[str] = []
        in_pieces = 0
        for number, line in read_lines(source.path, source.on_error):
            columns = line.split("\t")
            try:
                if line.startswith("T"):
                    mention = _mention(columns, text)
                    if mention is None:
                        in_pieces += 1
                    else:
                        mentions[columns[0]] = (number, *mention)
                elif line.startswith("N") and len(columns) > 1:
                    _, target, kb_id = columns[1].split(" ", 2)
                    ids.setdefault(target, []).append(kb_id.strip())
                elif line[:1] in ("A", "M", "#") and len(columns) > 1:
                    key, _, target_and_value = columns[1].partition(" ")
                    target, _, value = target_and_value.partition(" ")
                    fields.setdefault(target, {})[key] = (
                        value or "".join(columns[2:3]).strip()
                    )
            except ValueError as problem:
                source.report(number, ValueError(f"no line of brat: {problem}"))
        rows = []
        for key, (number, mention_given, label) in mentions.items():
            found_id = FoundId("|".join(ids.get(key, ())))
            if self.id_key or key not in ids:
                found_id = find_id(fields.get(key, {}), self.id_key)
            unread += found_id.unread
            rows.append(
                (number, mention_given, (label, split_ids(found_id.value), ""))
            )
        placed = filter(None, placed_or_reported(source, text, rows))
        return AnnotatedText(name, text, tuple(placed), in_pieces, tuple(unread))


def _without_suffix(file: Path) -> Path:
    is_packed = file.suffix.lower() in (".gz", ".bz2")
    return (file.with_suffix("") if is_packed else file).with_suffix("")


def _beside(file: Path, suffix: str) -> Path:
    """The file with another suffix, in any case, packed or not."""
    base = _without_suffix(file)
    names = (
        f"{base.name}{ending}{packed}"
        for ending in (suffix, suffix.upper())
        for packed in ("", ".gz", ".bz2", ".GZ", ".BZ2")
    )
    files = (base.with_name(name) for name in names)
    return next(
        (beside for beside in files if beside.exists()),
        base.with_name(base.name + suffix),
    )


def _mention(columns: list[str], text: str) -> "tuple[Given, str] | None":
    """The place, words and label of a line, or None for a mention in several pieces.

    Pieces with nothing but white space between them are one: brat ends a piece at a line break.
    """
    if len(columns) < 3:
        raise ValueError("expected 'T1<tab>Label start end<tab>words'.")
    label, _, place = columns[1].partition(" ")
    pieces = [tuple(map(int, piece.split())) for piece in place.split(";")]
    start, end = pieces[0]
    for next_start, next_end in pieces[1:]:
        if not text[end:next_start].isspace():
            return None
        end = next_end
    return Given(start, end, columns[2]), label
