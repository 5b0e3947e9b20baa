"""Ontologies in OBO format, such as the Disease Ontology."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...kb.entity import Entity
from ...kb.importers.common import ImportReport
from ...records.formats import certainty
from ...records.lines import PathLike, read_lines
from ...records.source import Source, check_unique

SCOPES = ("EXACT", "NARROW", "BROAD", "RELATED")
# The tags of synonyms by their scope; "" is that of the scope behind the text. The others are those
# of OBO 1.0.
_SYNONYMS = {"synonym": "", **{f"{scope.lower()}_synonym": scope for scope in SCOPES}}
# A quote within the text should be escaped, but often is not: the text ends at the one that a scope
# or references follow.
_END = r'"(?=\s*(?:[\[{]|$|(?:EXACT|NARROW|BROAD|RELATED)\b))'
_QUOTED = re.compile(rf'"((?:[^"\\]|\\.|(?!{_END})")*)"\s*(\w*)')
# Modifiers behind a text, and a comment behind these. Other braces are part of a name. A search
# begins at the first of several blanks alone, or it would take the square of their number.
_MODIFIER = r'[\w:.-]+="(?:[^"\\]|\\.)*"'
_MODIFIERS = re.compile(
    rf"(?<!\s)\s*\{{\s*{_MODIFIER}(?:\s*,\s*{_MODIFIER})*\s*\}}\s*(?:!.*)?\Z"
)
_BEHIND_ID = re.compile(r"(?<!\s)\s+(?:!\s|\{)")
# Tags whose values are texts; others have ids, behind which a comment may say their names.
_TEXTS = ("name", "comment")
_ESCAPED = re.compile(r"\\(.)")
_ESCAPES = {"n": "\n", "t": "\t", "W": " "}
# The values of a stanza by tag, and a stanza with its kind.
Tags = dict[str, list[str]]
Stanza = tuple[str, Tags]
START = re.compile(rb"format-version:\s")


@dataclass(frozen=True)
class OboReader:
    """Reads the terms of an OBO file. Obsolete terms and those without a name are left out.

    ``meta`` has "xrefs", "parents", "subsets" and "synonyms" (with their scopes) if there are any.
    Alternative ids lead to the term, and so do the ids of an obsolete one that it alone replaces.

    Raises ValueError with file, line and problem at an invalid line.

    scopes: The scopes of synonyms that become aliases: EXACT, NARROW, BROAD or RELATED.
    xrefs: The prefixes of cross-references, such as MESH, that lead to their term as further ids.
    encoding: That of the file.
    skip_bad: Whether invalid lines and terms are counted and left out.
    """

    scopes: tuple[str, ...] = ("EXACT",)
    xrefs: tuple[str, ...] = ()
    encoding: str = "utf8"
    skip_bad: bool = False

    sniff = staticmethod(partial(certainty, suffixes=(".obo",), pattern=START))

    def __post_init__(self) -> None:
        wrong = [scope for scope in self.scopes if scope not in SCOPES]
        if wrong:
            raise ValueError(
                f"There is no scope {wrong[0]!r}. Choose from: {', '.join(SCOPES)}."
            )

    def read(self, path: PathLike, report: ImportReport) -> Iterator[Entity]:
        """Yield the terms.

        report: Gets the number of terms left out, and the ids that lead to others.
        """
        source = Source(path, report.on_bad(self.skip_bad), encoding=self.encoding)
        lines_of: dict[str, int] = {}
        namespace = ""

        def read(number: int, stanza: Stanza) -> Entity | None:
            nonlocal namespace
            kind, tags = stanza
            if kind == "header":
                namespace = _one(tags, "default-namespace")
            if kind != "Term":
                return None
            id_ = _one(tags, "id")
            if not id_ or "|" in id_:
                raise ValueError(f"a [Term] needs an 'id' without '|' (got {id_!r}).")
            check_unique("entity", id_, number, lines_of)
            term = self._term(tags, _one(tags, "namespace") or namespace, report)
            if term is not None:
                xrefs = ids_of_xrefs(term.meta.get("xrefs", ()), self.xrefs)
                report.note_xrefs(xrefs, term.id)
            return term

        return source.read(_stanzas(source), read)

    def _term(self, tags: Tags, kind: str, report: ImportReport) -> Entity | None:
        title = _one(tags, "name")
        ids = [_one(tags, "id"), *tags.get("alt_id", [])]
        if _one(tags, "is_obsolete").lower() in ("true", "1"):
            report.skip("obsolete")
            replace_ids(report, ids, tags.get("replaced_by", []))
            return None
        if not title:
            report.skip("no name")
            return None
        synonyms = list(_synonyms(tags))
        meta: dict[str, Any] = {
            "xrefs": [xref.split(" ")[0] for xref in tags.get("xref", [])],
            "parents": [parent.split(" ")[0] for parent in tags.get("is_a", [])],
            "subsets": tags.get("subset", []),
            "synonyms": synonyms,
        }
        return report.entity(
            ids,
            [title, *(text for text, scope in synonyms if scope in self.scopes)],
            _quoted(_one(tags, "def"))[0],
            [kind] if kind else [],
            meta={key: value for key, value in meta.items() if value},
        )


def replace_ids(report: ImportReport, ids: list[str], replacements: list[str]) -> None:
    """Let obsolete ids lead to what replaces them. Which of several is meant, no id says."""
    if len(set(replacements)) == 1:
        report.redirect(ids, replacements[0])


def _synonyms(tags: Tags) -> Iterator[list[str]]:
    """[text, scope] of each synonym."""
    for tag, scope in _SYNONYMS.items():
        for value in tags.get(tag, []):
            text, word = _quoted(value)
            if text:
                yield [text, scope or (word if word in SCOPES else "RELATED")]


def _stanzas(source: Source) -> Iterator[tuple[int, Stanza]]:
    """Each stanza with its first line. The header of the file comes first."""
    start = 1
    kind = "header"
    tags: Tags = {}
    for number, line in read_lines(
        source.path, source.on_error, encoding=source.encoding
    ):
        line = line.strip()
        if not line or line.startswith("!"):
            continue
        if line.startswith("["):
            yield start, (kind, tags)
            start = number
            kind = line[1:-1]
            tags = {}
            if not line.endswith("]"):
                kind = ""
                problem = f"a stanza begins with [Name] (got {line!r:.40})."
                source.report(number, ValueError(problem))
            continue
        tag, colon, value = line.partition(":")
        if not colon:
            problem = f"expected 'tag: value' (got {line!r:.40})."
            source.report(number, ValueError(problem))
            continue
        tags.setdefault(tag.strip(), []).append(_plain(value, tag.strip()))
    yield start, (kind, tags)


def _plain(value: str, tag: str) -> str:
    """Strip the comment and modifiers behind a value."""
    value = value.strip()
    if tag == "def" or tag in _SYNONYMS:
        return value
    if tag in _TEXTS:
        return _unescaped(_MODIFIERS.sub("", value))
    return _unescaped(_BEHIND_ID.split(value, maxsplit=1)[0])


def _quoted(value: str) -> tuple[str, str]:
    """Split a value into leading quoted text and next word."""
    match = _QUOTED.match(value)
    return (_unescaped(match[1]), match[2]) if match else ("", "")


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: _ESCAPES.get(match[1], match[1]), text).strip()


def _one(tags: Tags, name: str) -> str:
    return tags.get(name, [""])[0]


def ids_of_xrefs(xrefs: Iterable[str], prefixes: Sequence[str]) -> Iterator[str]:
    """Cross-references into vocabularies, each with its prefix and without it.

    prefixes: Of CURIEs, such as "MESH", in any case; or beginnings of URIs, as "http://mesh/".
    """
    starts = [
        prefix if prefix.endswith((":", "/", "#", "_")) else f"{prefix}:"
        for prefix in prefixes
    ]
    for xref in xrefs:
        for start in starts:
            local = xref[len(start) :]
            if local and xref.lower().startswith(start.lower()):
                yield from (xref, start + local, local)
