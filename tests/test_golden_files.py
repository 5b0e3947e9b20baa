"""Files in every format of documents and entities, and what is to be read of each.

Beside a file or folder of ``tests/data`` lies ``NAME.expected.jsonl``. It may begin with the format
and options; without a format, name and content of the file say it. Then come the documents or the
entities, and what is counted, warned of, and refused, by parts of the messages. A second reading
with other options is ``NAME.WORD.expected.jsonl``. A line of ``errors.jsonl`` is the content of a
file that is an error. A bug report becomes a file.
"""

import json
import warnings
from collections import Counter
from pathlib import Path

import pytest
from spacy.util import import_file

from spacy_arbo_el.corpora.read import read
from spacy_arbo_el.kb.importers import ImportReport
from spacy_arbo_el.kb.loaders import known_format_of
from spacy_arbo_el.records.formats import entity_formats

DATA = Path(__file__).parent / "data"
# The formats of the example: doccano and spacy-json.
import_file("example_readers", Path(__file__).parents[1] / "examples" / "readers.py")


def files_of(kind):
    return sorted((DATA / kind).rglob("*.expected.jsonl"), key=str)


def name_of(expected):
    return str(expected.relative_to(DATA)).removesuffix(".expected.jsonl")


def rows_in(path):
    return [json.loads(line) for line in path.read_text(encoding="utf8").splitlines()]


class Expected:
    """What a file of expectations says.

    path: The file or folder that is to be read.
    head: Its format and options. records: The documents or entities.
    """

    def __init__(self, file):
        path = file.with_name(file.name.removesuffix(".expected.jsonl"))
        self.path = path if path.exists() else path.with_suffix("")
        rows = rows_in(file)
        self.head = rows.pop(0) if rows[0].keys() <= {"format", "options"} else {}
        self.options = self.head.get("options", {})
        self.records = [row for row in rows if "id" in row]
        self.errors = [row["error"] for row in rows if "error" in row]
        self.warnings = [row["warning"] for row in rows if "warning" in row]
        (self.counts,) = [row for row in rows if row.keys() & COUNTS] or [{}]


COUNTS = {"counts", "skipped", "redirects"}


def check_messages(expected, messages):
    assert len(messages) == len(expected), messages
    for parts, message in zip(expected, messages):
        for part in [parts] if isinstance(parts, str) else parts:
            assert part in message


def until_error(records):
    """Records up to the first error, and its message."""
    found = []
    try:
        found.extend(records)
    except ValueError as error:
        return found, [str(error)]
    return found, []


def as_record(text):
    mentions = []
    for one in text.mentions:
        cluster = [one.cluster] if one.cluster else []
        mentions.append([one.start, one.end, one.label, "|".join(one.kb_ids), *cluster])
    return {"id": text.id, "text": text.text, "mentions": mentions}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("file", files_of("corpora"), ids=name_of)
def test_documents_of_a_file(file):
    expected, bad, counts = Expected(file), [], Counter()
    format = expected.head.get("format", "")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        texts = list(read(expected.path, format, bad.append, counts, **expected.options))
    assert list(map(as_record, texts)) == expected.records
    assert counts == expected.counts.get("counts", {})
    check_messages(expected.warnings, [str(one.message) for one in caught])
    check_messages(expected.errors, list(map(str, bad)))
    # Without a place for errors, it is read up to the first one.
    found, error = until_error(map(as_record, read(expected.path, format, **expected.options)))
    assert found == expected.records[: len(found)]
    assert error == list(map(str, bad[:1]))
    assert error or len(found) == len(expected.records)


def entities_of(path, format, options, skip_bad=False):
    """Entities of a file up to the first error, the report, and messages."""
    reader, report = entity_formats.get(format), ImportReport()
    given = {name: tuple(v) if isinstance(v, list) else v for name, v in options.items()}
    if skip_bad and hasattr(reader, "skip_bad"):
        given["skip_bad"] = True
    entities, error = until_error(reader(**given).read(path, report))
    found = json.loads(json.dumps([one.to_dict() for one in entities]))
    return found, report, report.places + error


@pytest.mark.parametrize("file", files_of("entities"), ids=name_of)
def test_entities_of_a_file(file):
    expected = Expected(file)
    if file.parent.name == "skos":
        pytest.importorskip("rdflib")
    format = expected.head.get("format") or known_format_of(expected.path)
    found, report, messages = entities_of(expected.path, format, expected.options, True)
    assert found == expected.records
    check_messages(expected.errors, messages)
    skipped = {name: count for name, count in report.skipped.items() if name != "invalid"}
    assert skipped == expected.counts.get("skipped", {})
    assert report.redirects == expected.counts.get("redirects", {})
    # Without the option, it is read up to the first error.
    found, _, first = entities_of(expected.path, format, expected.options)
    assert found == expected.records[: len(found)]
    assert first == messages[:1]


def errors_of(kind):
    for file in sorted((DATA / kind).glob("*/errors.jsonl")):
        for number, row in enumerate(rows_in(file), 1):
            yield pytest.param(file.parent.name, row, id=f"{file.parent.name}-{number}")


@pytest.mark.parametrize("format, row", errors_of("corpora"))
def test_an_error_in_documents_has_its_place(write, format, row):
    path = write(row["content"].encode("utf8"), "a.data")
    message = str(pytest.raises(ValueError, lambda: list(read(path, format))).value)
    assert f"{path}, line " in message
    assert row["error"] in message
    bad = []
    _, error = until_error(read(path, format, bad.append))
    assert message in error + list(map(str, bad)), "the same where it is read on"


@pytest.mark.parametrize("format, row", errors_of("entities"))
def test_an_error_in_entities_has_its_place(write, format, row):
    if format == "skos":
        pytest.importorskip("rdflib")
    path = write(row["content"].encode("utf8"), row.get("file", "a.data"))
    (message,) = entities_of(path, format, row.get("options", {}))[2]
    assert f"{path}, line " in message
    assert row["error"] in message
