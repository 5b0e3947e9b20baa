"""Folders made by strangers: whatever they hold, nothing outside is read, changed or run."""

import contextlib
import json
import os
import shutil
import signal
import sqlite3

import pytest
from spacy.vocab import Vocab

from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.kb.storage import restore
from spacy_arbo_el.kb.vectors import VectorFile
from spacy_arbo_el.kb.verbalizations import Names
from spacy_arbo_el.kb.verification import verify

from .test_folder import build, refused
from .test_store import encode


@pytest.fixture
def kb(tmp_path):
    return build(tmp_path / "place" / "kb", 8)


@pytest.fixture
def precious(tmp_path):
    """A file outside the folder, which must stay as it is."""
    path = tmp_path / "place" / "precious.faiss"
    path.parent.mkdir(exist_ok=True)
    path.write_text("all of it")
    yield path
    assert path.read_text() == "all of it"


@contextlib.contextmanager
def edited(kb):
    """The database of a folder, edited by a stranger, who removes its checksum too."""
    connection = sqlite3.connect(kb / "entities.sqlite", isolation_level=None)
    yield connection
    connection.execute("PRAGMA user_version = 0")
    connection.close()


def refused_everywhere(kb, name):
    """The folder can't be read, edited or verified, and the message names the file."""
    assert name in refused(kb)
    with pytest.raises((ValueError, OSError), match=r"^\[arbo-E0") as error:
        ArboKB.open(kb)
    assert name in str(error.value)
    assert any(name in problem for problem in verify(kb))


ENTRY = {"file": "index-1.faiss", "suffix": ".faiss", "size": 9, "crc": 0, "rows": 8, "kind": "x"}


def manifest(key, value):
    return "INSERT OR REPLACE INTO manifest VALUES (?, ?)", (key, value)


def owners(*numbers):
    return b"".join(number.to_bytes(8, "little", signed=True) for number in numbers)


EDITS = [
    *(
        manifest("index", json.dumps(entry))
        for entry in (
            {**ENTRY, "file": "../precious.faiss"},
            {**ENTRY, "file": "/precious.faiss"},
            {**ENTRY, "file": "index-1.faiss/../../precious.faiss"},
            {**ENTRY, "file": "entities.sqlite"},
            {**ENTRY, "file": "index-1.faiss\n"},
            {**ENTRY, "file": 7},
            {**ENTRY, "suffix": ".faiss/../../../precious"},
            {**ENTRY, "size": "9"},
            {**ENTRY, "size": 1 << 80},
            ["index-1.faiss"],
            "index-1.faiss",
        )
    ),
    manifest("files", "1/../../precious"),
    *(manifest("files", value) for value in (-1, 1.5, None)),
    *(manifest("index", value) for value in ("nonsense", "[" * 100_000)),
    manifest("settled", "0 UNION SELECT 1"),
    *(manifest("rows", value) for value in (-1, 1 << 62)),
    *(manifest("width", value) for value in (1 << 39, 0)),
    manifest("positions", 3),
    manifest("generation", "many"),
    manifest("uuid", "x" * 10_000_000),
    *(manifest("dtype", value) for value in ("O", "float64")),
    *(manifest("encoder", value) for value in (7, b"bytes")),
    manifest("indexes", "1"),
    *(
        ("UPDATE owner SET positions = ?", (value,))
        for value in (
            *(owners(*range(7), last) for last in (8, -2, 1 << 62)),
            *(b"", b"x", "text", 7.5),
        )
    ),
    *(
        (statement, ())
        for statement in (
            "UPDATE owned SET first = 1000000",
            "UPDATE owned SET first = -1 WHERE position = 2",
            "UPDATE owned SET count = -5",
            "INSERT INTO dead VALUES (-9, 3)",
            "UPDATE text SET row = row + 9223372036854770000",
            "UPDATE name SET position = 1000000",
            "INSERT INTO type VALUES ('x', -2)",
            "UPDATE owner SET first = 1",
        )
    ),
]


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: repr(edit)[:60])
def test_impossible_values_are_refused(kb, precious, edit):
    """Names of files elsewhere, numbers out of range, values of another type."""
    with edited(kb) as database:
        assert database.execute("SELECT positions FROM owner").fetchone()[0]
        database.execute(*edit)
    assert len(refused(kb)) < 1000
    refused_everywhere(kb, "entities.sqlite")


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON entity BEGIN DELETE FROM name; END",
        "CREATE VIEW v AS SELECT * FROM entity",
        "CREATE TABLE more (x)",
        "CREATE INDEX i ON entity (title)",
        "DROP INDEX name_settled",
        "CREATE VIRTUAL TABLE f USING fts5(x)",
        "DROP TABLE entity; CREATE VIEW entity AS SELECT 1 AS position",
        "DROP TABLE dirty; CREATE TABLE dirty (position INTEGER PRIMARY KEY CHECK (position > 0))",
        "DROP TABLE trigram_count; "
        "CREATE VIRTUAL TABLE trigram_count USING fts5vocab(trigram, col)",
    ],
)
def test_other_schemas_are_refused(kb, statement):
    with edited(kb) as database:
        database.executescript(statement)
    assert "other tables, triggers or views" in refused(kb)
    refused_everywhere(kb, "entities.sqlite")


def test_bytes_with_another_schema_are_refused():
    kb = ArboKB(Vocab(), [Entity("a", "A")])
    kb.database.rows("CREATE TRIGGER t AFTER INSERT ON entity BEGIN DELETE FROM name; END")
    with pytest.raises(ValueError, match="other tables, triggers or views"):
        restore(kb.to_bytes())
    kb = ArboKB(Vocab(), [Entity("a", "A")])
    kb.database.set(settled="0 UNION SELECT 1")
    with pytest.raises(ValueError, match="settled is '0 UNION"):
        restore(kb.to_bytes())


LINKED = [
    "entities.sqlite",
    "entities.sqlite-journal",
    "entities.sqlite-wal",
    "vectors-1.bin",
    "vectors-2.bin",
    "index-1.faiss",
    "write.lock",
]


@pytest.mark.parametrize("kind", ["link", "dangling", "pipe", "folder"])
@pytest.mark.parametrize("name", LINKED)
def test_links_pipes_and_folders_instead_of_files_are_refused(kb, precious, name, kind):
    place = kb.parent / "outside"
    if (kb / name).exists():
        os.rename(kb / name, place)
    else:
        shutil.copy(precious, place)
    if kind == "pipe":
        os.mkfifo(kb / name)
    elif kind == "folder":
        (kb / name).mkdir()
    else:
        (kb / name).symlink_to(place if kind == "link" else kb.parent / "nowhere")
    before = place.read_bytes()
    refused_everywhere(kb, name)
    assert ("cp -rL" in refused(kb)) == (kind in ("link", "dangling"))
    with pytest.raises(ValueError, match=name):
        ArboKB(Vocab()).to_disk(kb)
    assert place.read_bytes() == before and not (kb.parent / "nowhere").exists()


def test_a_journal_that_names_another_file_is_refused(kb, precious):
    # SQLite removes the file whose name is at the end of a journal when it rolls back.
    name = str(precious).encode()
    journal = bytes.fromhex("d9d505f920a163d7") + bytes(4) + bytes(500)
    journal += b"\0\0\0\1" + name + len(name).to_bytes(4, "big")
    journal += sum(name).to_bytes(4, "big") + bytes.fromhex("d9d505f920a163d7")
    (kb / "entities.sqlite-journal").write_bytes(journal)
    refused_everywhere(kb, "entities.sqlite-journal")


@pytest.mark.parametrize("header", [b"", b"{" * 4096, b'{"width": 99999999999999}'.ljust(4096)])
def test_other_headers_are_refused(kb, header):
    data = (kb / "vectors-1.bin").read_bytes()
    (kb / "vectors-1.bin").write_bytes(header + data[4096:])
    refused_everywhere(kb, "vectors-1.bin")


@pytest.mark.parametrize("column", ["aliases", "types", "meta", "title", "frequency", "id"])
@pytest.mark.parametrize("value", ["nonsense", "[" * 100_000, "7", b"bytes", 1.5])
def test_entities_that_are_no_entities_are_refused(kb, column, value):
    """The stranger knows how checksums are made."""
    from spacy_arbo_el.kb.store import COLUMNS, checksum

    with edited(kb) as database:
        database.execute(f"UPDATE entity SET {column} = ? WHERE position = 3", (value,))
        row = database.execute(f"SELECT {COLUMNS} FROM entity WHERE position = 3").fetchone()
        database.execute("UPDATE entity SET crc = ? WHERE position = 3", (checksum(row[:-1]),))
    try:
        entity = ArboKB.for_reading(kb).entities.at(3)
    except ValueError as error:
        assert str(error).startswith("[arbo-E0")
    else:
        assert isinstance(entity.title, str) and isinstance(entity.frequency, float)
        assert all(isinstance(text, str) for text in (*entity.aliases, *entity.types))


def test_verify_names_files_that_do_not_belong_and_a_writer_removes_its_own(kb, precious):
    digits = "0" * 32
    ours = ["vectors-2.bin", "owners-7.bin", "index-3.faiss", f".entities.sqlite.{digits}.tmp"]
    others = ["notes.txt", ".DS_Store", "vectors-x.bin"]
    for name in [*ours, *others]:
        (kb / name).write_text(name)
    problems = verify(kb)
    assert len(problems) == len(ours) + len(others)
    assert all("does not belong" in problem for problem in problems)
    assert all(any(name in problem for problem in problems) for name in [*ours, *others])
    with ArboKB.open(kb) as opened:
        opened.add(Entity("new", "new"))
    assert [problem.split()[0] for problem in verify(kb)] == sorted(others)
    assert len(ArboKB.for_reading(kb)) == 9


def test_an_encoding_that_is_killed_leaves_nothing_after_the_next_opening(kb):
    child = os.fork()
    if not child:
        try:
            opened = ArboKB.open(kb)
            VectorFile.write = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
            opened.sync(Names(), encode, "another")
        finally:
            os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    assert {problem.split()[0] for problem in verify(kb)} == {"vectors-2.bin"}
    ArboKB.open(kb).close()
    assert verify(kb) == [] and ArboKB.for_reading(kb).fingerprint == "x"


def test_an_encoding_that_fails_leaves_nothing(kb):
    def failing(texts):
        raise RuntimeError("the encoder broke")

    with ArboKB.open(kb) as opened, pytest.raises(RuntimeError):
        opened.sync(Names(), failing, "another")
    assert verify(kb) == []
