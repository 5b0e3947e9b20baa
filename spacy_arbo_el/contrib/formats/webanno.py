r"""WebAnno TSV 3, as WebAnno and INCEpTION export it: one token per line, with its offsets.

    #FORMAT=WebAnno TSV 3.3
    #T_SP=de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity|identifier|value

    #Text=He was in Port Veil.
    1-4<tab>10-14<tab>Port<tab>http://www.wikidata.org/entity/Q1[1]<tab>PLACE[1]<tab>
    1-5<tab>15-19<tab>Veil<tab>http://www.wikidata.org/entity/Q1[1]<tab>PLACE[1]<tab>

The layer is the first one with an ``identifier``. Tokens with the same number in brackets are one
mention. Ids of Wikidata lose their address.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from ...corpora.annotated import AnnotatedText, split_ids
from ...records.formats import certainty
from ...records.lines import OnBad, PathLike, check_exists, files_in, read_lines
from ...records.offsets import Given, Misplaced, place
from ...records.source import LineProblem, Source
from .tokens import Growing, Numbered, read_parts

TEXT, LAYERS, IDENTIFIER, VALUE = (
    "#Text=",
    ("#T_SP=", "#T_CH=", "#T_RL="),
    "identifier",
    "value",
)
TOKEN = re.compile(r"[0-9]+-[0-9]+(?:\.[0-9]+)?")
PLACE = re.compile(r"([0-9]{1,15})-([0-9]{1,15})")
# A value of a cell, and the number of its mention.
CELL = re.compile(r"((?:\\.|[^\\|\[])*)(?:\[([0-9]+)\])?(?:\||$)", re.S)
ESCAPED = re.compile(r"\\(.)", re.S)
CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
# The most line breaks between two sentences. Their text is not in the file.
MOST_BETWEEN = 1000
WIKIDATA = re.compile(r"https?://www\.wikidata\.org/(?:entity|wiki)/(?=Q[0-9]+$)")
FORM = "Expected '1-1<tab>0-3<tab>token' and the columns of the layers"


START = re.compile(rb"#FORMAT=WebAnno")


@dataclass(frozen=True)
class WebAnnoReader:
    """Reads a file of WebAnno TSV 3, or those of a folder. The id is the name of the file.

    Documents with invalid lines are left out whole. Raises ValueError with file, line and problem
    at an invalid line.
    """

    reads_folders: ClassVar[bool] = True

    sniff = staticmethod(partial(certainty, pattern=START))

    def read(
        self, path: PathLike, bad: OnBad, counts: Counter
    ) -> Iterator[AnnotatedText]:
        """Yield the documents."""
        path = check_exists(path)
        for file in files_in(path, ".tsv"):
            # INCEpTION has a folder for each document.
            name = (
                file.relative_to(path).with_suffix("").as_posix()
                if path.is_dir()
                else file.stem
            )
            source = Source(file, bad)
            yield from read_parts(
                source, [(name, list(read_lines(file, bad)))], _grown
            )


def _grown(lines: Numbered) -> Growing:
    columns = _columns(lines)
    text = Growing()
    spans = _JoinedSpans()
    end = 0
    for words, rows in _sentences(lines):
        end = _add(text, spans, words, rows, columns, end)
    for start, last, label, ids in spans.values():
        text.annotate(start, last, label, split_ids(ids))
    return text


class _JoinedSpans(dict[tuple[object, ...], tuple[int, int, str, str]]):
    """The place, label and id of each mention, by number or by line."""

    def join(
        self, key: tuple[object, ...], at: tuple[int, int], label: str, id_: str
    ) -> None:
        start, end, label, id_ = self.get(key, (*at, label, id_))
        self[key] = (min(start, at[0]), max(end, at[1]), label, id_)


TokenRow = tuple[int, list[str]]


def _columns(lines: Numbered) -> tuple[int, int]:
    """The columns of the id and of the label; -1 for no label."""
    at = 3
    for _, line in lines:
        if line.startswith(TEXT):
            break
        if line.startswith(LAYERS):
            layer = line.rstrip("\r\n").split("|")[1:] or [""]
            if line.startswith(LAYERS[0]) and IDENTIFIER in layer:
                label = at + layer.index(VALUE) if VALUE in layer else -1
                return at + layer.index(IDENTIFIER), label
            at += len(layer)
    raise LineProblem(
        lines[0][0],
        "no layer has an 'identifier'. Export a layer of entities with that feature.",
    )


def _sentences(lines: Numbered) -> Iterator[tuple[str, list[TokenRow]]]:
    """The text of each sentence, and the columns of its tokens."""
    words: list[str] = []
    rows: list[TokenRow] = []
    for number, line in lines:
        if line.startswith(TEXT):
            if rows:
                yield "\n".join(words), rows
                words = []
                rows = []
            words.append(_plain(line.removeprefix(TEXT)))
        elif line.strip() and not line.startswith("#"):
            cells = line.split("\t")
            if (
                len(cells) < 3
                or not TOKEN.fullmatch(cells[0])
                or not PLACE.fullmatch(cells[1])
            ):
                raise LineProblem(
                    number, f"{line[:40]!r} is no line of WebAnno. {FORM}."
                )
            rows.append((number, cells))
    if rows:
        yield "\n".join(words), rows


def _add(
    text: Growing,
    spans: _JoinedSpans,
    words: str,
    rows: Sequence[TokenRow],
    columns: tuple[int, int],
    end: int,
) -> int:
    """Add a sentence with its mentions.

    end: The offset of the end of the last sentence, as the file counts.
    RETURNS: That of this one.
    """
    offsets = [tuple(map(int, cells[1].split("-"))) for _, cells in rows]
    forms = [_plain(cells[2]) for _, cells in rows]
    first = offsets[0][0] - max(words.find(forms[0]), 0)
    mentions = [
        Given(a - first, b - first, form) for (a, b), form in zip(offsets, forms)
    ]
    try:
        # Java counts UTF-16 units; other writers of the format count characters.
        places, _ = place(words, mentions)
    except Misplaced as problem:
        raise LineProblem(
            rows[problem.position][0], f"in the sentence, {problem}"
        ) from None
    text.add("\n" * min(max(first - end, 0), MOST_BETWEEN))
    start, _ = text.add(words)
    for (number, cells), (a, b) in zip(rows, places):
        for key, label, id_ in _annotations(number, cells, *columns):
            spans.join(key, (start + a, start + b), label, id_)
    last_place = places[-1]
    last_offset = offsets[-1]
    return last_offset[1] + len(words) - last_place[1]


def _annotations(
    number: int, cells: list[str], identifier: int, value: int
) -> Iterator[tuple[tuple[object, ...], str, str]]:
    """The mentions of a token: the key of each, its label and its id."""
    if len(cells) <= max(identifier, value):
        raise LineProblem(
            number, f"{len(cells)} columns, but the layers have more. {FORM}."
        )
    if cells[identifier] == "_":
        return
    ids = _values(number, cells[identifier])
    labels = (
        _values(number, cells[value])
        if value >= 0
        else [("", mark) for _, mark in ids]
    )
    if len(ids) != len(labels):
        raise LineProblem(
            number, "identifier and value have different numbers of annotations."
        )
    for place_, ((id_, mark), (label, _)) in enumerate(zip(ids, labels)):
        yield (mark,) if mark else (number, place_), label, WIKIDATA.sub("", id_)


def _values(number: int, cell: str) -> list[tuple[str, str]]:
    """The values of a cell, and the numbers in brackets behind them. "*" is no value."""
    pairs = []
    end = 0
    while end < len(cell):
        match = CELL.match(cell, end)
        if match is None:
            raise LineProblem(
                number, f"{cell!r:.80} has a bracket without a backslash before it."
            )
        pairs.append(
            ("" if match[1] in ("*", "_") else _plain(match[1]), match[2] or "")
        )
        end = match.end()
    return pairs


def _plain(words: str) -> str:
    return ESCAPED.sub(lambda match: CONTROLS.get(match[1], match[1]), words)
