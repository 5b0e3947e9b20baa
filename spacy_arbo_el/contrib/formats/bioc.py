"""BioC, in XML and JSON, as PubTator Central and many biomedical corpora are distributed."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from ...corpora.annotated import LABEL, AnnotatedText
from ...corpora.json_documents import About, placed, read_each
from ...records.formats import certainty
from ...records.id_fields import find_id
from ...records.lines import (
    OnBad,
    PathLike,
    check_exists,
    line_error,
    unpacked_start,
    unpacking,
)
from ...records.objects import check_object, id_in, integer, items, json_values
from ...records.offsets import Given, Misplaced
from ...records.source import Source
from .pubtator import ids_in

# An object of JSON.
Json = dict[str, Any]
# Keys of infons that hold the type of a mention.
TYPES = ("type", "label", "class")


START = re.compile(
    rb"(?:<\?xml[^>]*>\s*)?(?:<!DOCTYPE[^>]*>\s*)?<collection|\{.{0,2000}\"passages\"",
    re.S,
)


@dataclass(frozen=True)
class BiocReader:
    """Reads BioC in XML or JSON. Errors name the number of a document.

    The text is that of the passages at their offsets. A mention in several pieces is left out
    and counted.

    offsets: How the file counts offsets, such as utf16; "" to find it out.
    id_key: The field that has the ids of mentions; "" to know it by its name.
    """

    offsets: str = ""
    id_key: str = ""

    sniff = staticmethod(partial(certainty, suffixes=(".xml", ".bioc"), pattern=START))

    def read(
        self, path: PathLike, bad: OnBad, counts: Counter
    ) -> Iterator[AnnotatedText]:
        """Yield the documents."""
        path = check_exists(path)
        source = Source(path, bad, offsets=self.offsets)
        is_xml = (
            unpacked_start(path, 100).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")
        )
        documents = _xml_documents(path) if is_xml else _json_documents(source)
        return read_each(source, self._text_of, enumerate(documents, 1))

    def _text_of(self, document: Any, id_: str) -> AnnotatedText:
        check_object(document)
        text = ""
        mentions = []
        in_pieces = 0
        unread: list[str] = []
        for passage in _parts(items(document.get("passages") or [], "passages")):
            start = integer(passage, "offset")
            words = passage.get("text") or ""
            # Offsets in other units can lie within the text so far.
            text += " " * max(
                start - len(text), int(bool(text) and not text.endswith(" "))
            )
            given_mentions, annotations, several, keys = _mentions(
                passage, start, self.id_key
            )
            in_pieces += several
            unread += keys
            try:
                placed_mentions = placed(
                    words, given_mentions, annotations, self.offsets
                )
            except Misplaced as problem:
                raise ValueError(
                    f"mention {problem.position + 1} of a passage: {problem}"
                ) from None
            for mention in placed_mentions:
                moved = replace(
                    mention,
                    start=mention.start + len(text),
                    end=mention.end + len(text),
                )
                mentions.append(moved)
            text += words
        name = id_in(document, "id", id_)
        return AnnotatedText(name, text, tuple(mentions), in_pieces, tuple(unread))


def _json_documents(source: Source) -> Iterator[Any]:
    for _, value in json_values(source):
        inner = value if isinstance(value, dict) else {}
        nested = next(
            (inner[key] for key in ("documents", "PubTator3") if key in inner), None
        )
        yield from nested if isinstance(nested, list) else [value]


def _xml_documents(path: Path) -> Iterator[Json]:
    """Documents in the form that they have in JSON."""
    try:
        with unpacking(path) as file:
            for _, element in ElementTree.iterparse(file):
                if element.tag == "document":
                    passages = [
                        _passage(passage) for passage in element.iter("passage")
                    ]
                    yield {"id": element.findtext("id"), "passages": passages}
                    element.clear()
    except ElementTree.ParseError as error:
        raise line_error(path, error.position[0], f"no valid XML: {error}.") from None


def _passage(element: ElementTree.Element) -> Json:
    return {
        "offset": _number(element.findtext("offset")),
        "text": element.findtext("text"),
        "sentences": [_passage(sentence) for sentence in element.findall("sentence")],
        "annotations": [
            _annotation(annotation) for annotation in element.findall("annotation")
        ],
    }


def _annotation(element: ElementTree.Element) -> Json:
    locations = [
        {key: _number(location.get(key)) for key in ("offset", "length")}
        for location in element.findall("location")
    ]
    infons = {
        infon.get("key", ""): infon.text or "" for infon in element.findall("infon")
    }
    return {"text": element.findtext("text"), "infons": infons, "locations": locations}


def _number(value: Any) -> Any:
    """A whole number; the value itself where it is none."""
    return (
        int(value) if isinstance(value, str) and value.strip().isdecimal() else value
    )


def _parts(passages: list[Any]) -> Iterator[Json]:
    """Passages with a text, or their sentences."""
    for passage in passages:
        check_object(passage)
        if passage.get("text"):
            yield {**passage, "annotations": [*_annotations(passage)]}
        else:
            yield from _parts(items(passage.get("sentences") or [], "sentences"))


def _annotations(passage: Json) -> Iterator[Any]:
    yield from items(passage.get("annotations") or [], "annotations")
    for sentence in items(passage.get("sentences") or [], "sentences"):
        check_object(sentence)
        yield from _annotations(sentence)


def _mentions(
    passage: Json, start: int, id_key: str
) -> tuple[list[Given], list[About], int, list[str]]:
    """The places, labels and ids of a passage's mentions, and how many have several pieces.

    RETURNS: Also the keys of infons that may have an id and were not read.
    """
    unread: list[str] = []
    given_mentions: list[Given] = []
    annotations: list[About] = []
    in_pieces = 0
    for annotation in passage["annotations"]:
        check_object(annotation)
        locations = items(annotation.get("locations") or [], "locations")
        infons = annotation.get("infons") or {}
        if len(locations) != 1:
            in_pieces += len(locations) > 1
            continue
        check_object(locations[0])
        first = integer(locations[0], "offset") - start
        words = annotation.get("text")
        end = first + integer(locations[0], "length")
        given_mentions.append(
            Given(first, end, words if isinstance(words, str) else "")
        )
        lower = {str(key).lower(): value for key, value in infons.items() if value}
        found_id = find_id(infons, id_key)
        unread += found_id.unread
        label = next((str(lower[key]) for key in TYPES if key in lower), LABEL)
        annotations.append((label.strip() or LABEL, ids_in(found_id.value), ""))
    return given_mentions, annotations, in_pieces, unread
