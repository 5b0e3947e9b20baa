"""Linked documents as JSONL and CSV, for other programs."""

import csv
import io
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from spacy.tokens import Doc

from ..base.errors import Errors
from ..mentions.annotations import links_of
from ..mentions.getters import SpanGetter, find_mentions
from ..mentions.record import document_id
from ..mentions.sentences import sentence_of
from ..records.cells import cell
from ..records.formats import link_formats
from ..show.frames import LINK, link_row
from ..storage.files import json_lines, replacing

# Endings of files that are not written. Without one of these, a name is that of a folder.
OTHER_FILES = (".json", ".tsv", ".txt", ".html", ".xml", ".gz", ".zip", ".parquet")


def writer_of(path: Path) -> Callable[..., int] | None:
    """The function that writes links into a file; None for ``.spacy`` files.

    Raises ValueError for a format that is not supported.
    """
    writers = {"jsonl": write_links, "csv": write_table, **link_formats.get_all()}
    for ending, write in writers.items():
        if path.name.lower().endswith(f".{ending}"):
            return write
    if path.suffix.lower() in OTHER_FILES:
        raise Errors.E722(path=path, suffix=path.suffix)
    return None


def write_links(
    docs: Iterable[Doc], path: Path, get_spans: SpanGetter, extension: str
) -> int:
    """Write documents with links as JSONL, all or none of them. RETURNS: How many."""
    count = 0
    with replacing(path) as file:
        for doc in docs:
            record = doc_record(doc, str(count), get_spans, extension)
            file.write(json_lines([record]))
            count += 1
    return count


def write_table(
    docs: Iterable[Doc], path: Path, get_spans: SpanGetter, extension: str
) -> int:
    """Write links as CSV with a mention in each line, all or none of them.

    The columns are those of the rows of ``arbo scale link``, but for the evidence, and the sentence
    of the mention. The parameters are those of ``write_links``. RETURNS: The number of documents.
    """
    count = 0
    with replacing(path) as file:
        text = io.TextIOWrapper(file, encoding="utf8", newline="", write_through=True)
        rows = csv.writer(text, lineterminator="\n")
        columns = (*LINK, "sentence")
        rows.writerow(columns)
        for doc in docs:
            record = doc_record(doc, str(count), get_spans, extension)
            for span, mention in zip(
                find_mentions(doc, get_spans), record["mentions"]
            ):
                details = {
                    "document": record["id"],
                    "new_entity": mention.get("cluster", ""),
                }
                details["sentence"] = " ".join(
                    "".join(sentence_of(span, record["text"])).split()
                )
                cells = {**mention, **details}
                rows.writerow([cell(cells.get(column, "")) for column in columns])
            count += 1
        text.detach()
    return count


def doc_record(
    doc: Doc, name: str, get_spans: SpanGetter, extension: str
) -> dict[str, Any]:
    """Convert a linked document to a record.

    ``arbo convert`` reads it too.

    name: Its id where it has none.
    """
    mentions = []
    spans = find_mentions(doc, get_spans)
    for span, link in zip(spans, links_of(doc, spans, extension, with_annotated=True)):
        record = {"start": span.start_char, "end": span.end_char, "text": span.text}
        record.update(label=span.label_, kb_id=None)
        if link is not None:
            record = link_row(record, link)
            record["cluster"] = record.pop("new_entity")
        mentions.append(record)
    return {"id": document_id(doc) or name, "text": doc.text, "mentions": mentions}
