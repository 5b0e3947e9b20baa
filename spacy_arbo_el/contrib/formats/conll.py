"""Columns with one token per line: AIDA-CoNLL, and CoNLL-U with entities in MISC.

AIDA-CoNLL: a token, B or I, the mention, and the title of its Wikipedia page, "--NME--" for NIL.
Sentences become lines, and tokens are separated by spaces::

    -DOCSTART- (1 EU)
    Port<tab>B<tab>Port Veil<tab>Port_Veil<tab>http://en.wikipedia.org/wiki/Port_Veil<tab>11867
    Veil<tab>I<tab>Port Veil<tab>Port_Veil<tab>http://en.wikipedia.org/wiki/Port_Veil<tab>11867
    sleeps

CoNLL-U: brackets of entities as in CorefUD and GUM. A comment names their fields; ``etype`` is the
label, and ``identity`` the id::

    # global.Entity = GRP-etype-identity
    # newdoc id = d1
    1<tab>Port<tab>...<tab>Entity=(e1-place-Port_Veil
    2<tab>Veil<tab>...<tab>Entity=e1)|SpaceAfter=No

Or tags of tokens in ``NE``, with the id beside that of the first token::

    1<tab>Port<tab>...<tab>NE=B-LOC|Wiki=Port_Veil
    2<tab>Veil<tab>...<tab>NE=I-LOC
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import unquote

from ...corpora.annotated import LABEL, AnnotatedText, split_ids, unique
from ...records.formats import certainty
from ...records.id_fields import find_id
from ...records.lines import OnBad, PathLike
from ...records.source import LineProblem, Source
from .tokens import Growing, Numbered, NumberedLines, read_parts, split_at

NO_ENTITY = "--NME--"
DOCSTART = re.compile(r"-DOCSTART-(?:\s+\((.*)\))?\s*")
TAG = re.compile(r"([BI])(?:-(.+))?")
# Some files have "\u00e9" for "é".
ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")
SPACE = re.compile(r"\s")
AIDA_START = re.compile(rb"-DOCSTART- \(")
AIDA = "a token, or token, B or I, mention and title, separated by tabs"

CONLLU_START = re.compile(rb"# *(?:newdoc|sent_id|global\.|text) *[\w.]* *=")
FIELDS = re.compile(r"#\s*global\.Entity\s*=\s*(\S+)")
NEWDOC = re.compile(r"#\s*newdoc(?:\s+id\s*=\s*(.*))?")
# A number, those of a token of several words, or that of an empty node.
WORD_ID = re.compile(r"([0-9]+)(?:([-.])([0-9]+))?")
CONLLU = "expected 10 columns, separated by tabs, of which the first is a number"
UNDECLARED = (
    "an entity, but no comment names its fields: '# global.Entity = eid-etype-…'."
)
BRACKET = re.compile(r"\([^()]*\)?|(?<![^()])[^()]+\)")
# The number of a piece of a mention, behind its name.
PIECE = re.compile(r"\[([0-9]+)/")
IDENTITIES = ("identity", "wiki")
# The keys of MISC with the tag of a token in an entity.
TAGS = ("NE", "NER", "Ne", "Ner", "ne", "ner")
NE_TAG = re.compile(r"([BIESLU])-(.+)")


@dataclass(frozen=True)
class AidaReader:
    """Reads the documents of an AIDA-CoNLL file. Those with invalid lines are left out whole.

    Raises ValueError with file, line and problem at an invalid line.
    """

    sniff = staticmethod(partial(certainty, pattern=AIDA_START))

    def read(
        self, path: PathLike, bad: OnBad, counts: Counter
    ) -> Iterator[AnnotatedText]:
        """Yield the documents."""
        source = Source(path, bad)
        articles = (
            (id_, _stripped(lines)) for id_, lines in split_at(source, DOCSTART)
        )
        return read_parts(source, articles, _article)


def _stripped(lines: Numbered) -> Numbered:
    """Lines without the empty ones at both ends."""
    filled = [place for place, (_, line) in enumerate(lines) if line.strip()]
    return lines[filled[0] : filled[-1] + 1] if filled else []


def _article(lines: Numbered) -> Growing:
    text = Growing()
    between = ""
    # The number of the line that begins the mention, of the part of the text, and its columns.
    opened: tuple[int, int, list[str]] | None = None
    for number, line in [*lines, (lines[-1][0] + 1, "")]:
        columns = [*line.split("\t"), ""]
        tag = TAG.fullmatch(columns[1].strip())
        if opened and (tag is None or tag[1] == "B"):
            _close(text, *opened)
            opened = None
        if not line.strip():
            between = "\n"
            continue
        is_known = columns[1].strip() in ("", "O") if tag is None else len(columns) > 4
        if not columns[0] or SPACE.search(columns[0]) or not is_known:
            raise LineProblem(
                number, f"{line[:40]!r} is no line of AIDA. Expected {AIDA}."
            )
        if tag and tag[1] == "I" and not opened:
            raise LineProblem(number, "I without a B before it.")
        text.add(between)
        if tag and tag[1] == "B":
            opened = (number, len(text.parts), [tag[2] or LABEL, *columns[2:4]])
        text.add(columns[0])
        between = " "
    return text


def _close(text: Growing, number: int, first: int, columns: list[str]) -> None:
    """Add the mention of the parts from ``first`` on, whose words are compared."""
    label, words, title = columns
    words_found = "".join(text.parts[first:])
    if "".join(words_found.split()) != "".join(words.split()):
        problem = (
            f"the mention is {words!r:.80}, but its tokens are {words_found!r:.80}."
        )
        raise LineProblem(number, problem)
    title = ESCAPE.sub(lambda code: chr(int(code[1], 16)), title.strip())
    ids = () if title == NO_ENTITY else unique([title])
    text.annotate(text.length - len(words_found), text.length, label, ids)


@dataclass(frozen=True)
class ConlluReader:
    """Reads the documents of a CoNLL-U file. It is one document without ``# newdoc``.

    Sentences are separated by spaces, and paragraphs by line breaks. Documents with invalid lines
    are left out whole. Raises ValueError with file, line and problem at an invalid line.
    """

    sniff = staticmethod(
        partial(certainty, suffixes=(".conllu",), pattern=CONLLU_START)
    )

    def read(
        self, path: PathLike, bad: OnBad, counts: Counter
    ) -> Iterator[AnnotatedText]:
        """Yield the documents."""
        source = Source(path, bad)
        fields: list[str] = []

        def documents() -> Iterator[NumberedLines]:
            for id_, lines in split_at(source, NEWDOC):
                for declared in filter(
                    None, (FIELDS.match(line) for _, line in lines)
                ):
                    fields[:] = declared[1].split("-")
                has_tokens = any(line[:1].isdigit() for _, line in lines)
                yield id_, lines if has_tokens else []

        return read_parts(source, documents(), lambda lines: _grown(lines, fields))


def _grown(lines: Numbered, fields: Sequence[str]) -> Growing:
    text = Growing()
    end = 0
    # By the name of an entity: the beginnings of its open mentions, and their fields.
    opened: dict[str, list[tuple[int, dict[str, str]]]] = {}
    start = 0
    number = 0
    tagged = _Tagged(text)
    for number, before, form, misc in _words(lines):
        entities = misc.get("Entity", "")
        if form:
            text.add(before)
            start, end = text.add(form)
            tagged.add(start, end, misc)
        elif form is None:
            start = text.length + len(before)
        for bracket in BRACKET.findall(entities):
            if not fields:
                raise LineProblem(number, UNDECLARED)
            values = bracket.strip("()").split("-", len(fields) - 1)
            if bracket.startswith("("):
                opened.setdefault(values[0], []).append(
                    (start, dict(zip(fields, values)))
                )
            if bracket.endswith(")"):
                if not opened.get(values[0]):
                    raise LineProblem(
                        number, f"the entity {values[0]!r} is closed, but not opened."
                    )
                _annotate(text, end, *opened[values[0]].pop())
    tagged.close()
    if still := [name for name, places in opened.items() if places]:
        raise LineProblem(
            number, f"the entity {still[0]!r} is opened, but not closed."
        )
    return text


@dataclass
class _Tagged:
    """The mentions that tags of tokens make.

    text: The text that they are added to.
    start, end, label: The place and the label of the open mention; no label where none is open.
    misc: What MISC says of its first token.
    """

    text: Growing
    start: int = 0
    end: int = 0
    label: str = ""
    misc: dict[str, str] = field(default_factory=dict)

    def add(self, start: int, end: int, misc: dict[str, str]) -> None:
        """Add the next token."""
        tag = NE_TAG.fullmatch(next((misc[key] for key in TAGS if key in misc), ""))
        if tag is None or tag[1] in "BSU" or tag[2] != self.label:
            self.close()
        if tag is None:
            return
        if not self.label:
            self.start = start
            self.label = tag[2]
            self.misc = {key: value for key, value in misc.items() if key not in TAGS}
        self.end = end

    def close(self) -> None:
        """Add the mention that is open, if one is."""
        if self.label:
            fields = {
                key: value
                for key, value in self.misc.items()
                if value not in ("", "_")
            }
            found_id = find_id(fields)
            ids = split_ids(unquote(found_id.value))
            self.text.annotate(self.start, self.end, self.label, ids)
            self.text.unread += found_id.unread
        self.label = ""


def _annotate(text: Growing, end: int, start: int, values: dict[str, str]) -> None:
    if piece := PIECE.search(next(iter(values.values()))):
        text.pieces += piece[1] == "1"
    # Those of empty nodes have no words.
    elif start < end:
        ids = [
            unquote(values[key]) for key in IDENTITIES if values.get(key, "_") != "_"
        ]
        text.annotate(start, end, values.get("etype", ""), unique(ids[:1]))


def _words(lines: Numbered) -> Iterator[tuple[int, str, str | None, dict[str, str]]]:
    """The words of CoNLL-U: line, the text before them, their own, and what MISC says.

    The text of a word within a longer token is "", since it has that of the token. That of an empty
    node is None.
    """
    before = ""
    covered = 0
    for number, line in lines:
        if not line.strip():
            covered = 0
        elif line.startswith("#"):
            before = "\n" if line.startswith("# newpar") and before else before
        else:
            columns = line.split("\t")
            ids = WORD_ID.fullmatch(columns[0])
            if ids is None or len(columns) != 10 or not columns[1].strip():
                raise LineProblem(
                    number, f"{line[:40]!r} is no line of CoNLL-U: {CONLLU}."
                )
            misc = dict(item.partition("=")[::2] for item in columns[9].split("|"))
            if ids[2] == ".":
                yield number, before, None, misc
            elif ids[2] != "-" and int(ids[1]) <= covered:
                yield number, "", "", misc
            else:
                covered = int(ids[3] or 0)
                yield number, before, columns[1], misc
                before = "" if misc.get("SpaceAfter") == "No" else " "
