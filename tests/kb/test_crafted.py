"""Folders made by strangers: whatever they hold, nothing outside is read, changed or run."""

import contextlib
import json
import os
import shutil
import sqlite3
import struct
import zlib
from dataclasses import replace

import numpy as np
import pytest
from spacy.vocab import Vocab

from spacy_arbo_el import ArboKB, Entity
from spacy_arbo_el.kb.folder import unpack_kb
from spacy_arbo_el.kb.store import COLUMNS, checksum
from spacy_arbo_el.kb.texts import TextRows, file_of
from spacy_arbo_el.kb.vector_files import VectorKind
from spacy_arbo_el.kb.verbalizations import Names
from spacy_arbo_el.kb.verification import verify

from ..cases import cases
from ..expecting import raises
from .encoding import encode, kb_of, sync
from .test_folder import build, refused

VECTORS = VectorKind("x").name


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
    """The database of a folder, edited by a stranger."""
    connection = sqlite3.connect(kb / "entities.sqlite", isolation_level=None)
    yield connection
    connection.close()


def refused_everywhere(kb, name):
    """The folder can't be read, edited or verified, and the message names the file."""
    assert name in refused(kb)
    with pytest.raises((ValueError, OSError), match=r"^\[arbo-E0") as error:
        ArboKB.open(kb)
    assert name in str(error.value)
    assert any(name in problem for problem in verify(kb))


def manifest(key, value):
    return "INSERT OR REPLACE INTO manifest VALUES (?, ?)", (key, value)


EDITS = [
    manifest("entities", "0 UNION SELECT 1"),
    manifest("positions", 3),
    manifest("generation", "many"),
    manifest("uuid", "x" * 10_000_000),
    *(manifest("dtype", value) for value in ("O", "float64")),
    *(
        (statement, ())
        for statement in (
            "UPDATE changed SET position = position + 1000000",
            "UPDATE changed SET generation = 1000000",
            "UPDATE name SET position = 1000000",
            "INSERT INTO type VALUES ('x', -2)",
        )
    ),
]


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: repr(edit)[:60])
def test_impossible_values_are_refused(kb, precious, edit):
    """Names of files elsewhere, numbers out of range, values of another type."""
    with edited(kb) as database:
        database.execute(*edit)
    assert len(refused(kb)) < 1000
    refused_everywhere(kb, "entities.sqlite")


@pytest.mark.parametrize("statement", cases("foreign_schemas"))
def test_other_schemas_are_refused(kb, statement):
    with edited(kb) as database:
        database.executescript(statement)
    assert "other tables, triggers or views" in refused(kb)
    refused_everywhere(kb, "entities.sqlite")


def test_bytes_with_another_schema_are_refused(tmp_path):
    kb = kb_of(Entity("a", "A"))
    kb.database.rows("CREATE TRIGGER t AFTER INSERT ON entity BEGIN DELETE FROM name; END")
    with raises("other tables, triggers or views"):
        unpack_kb(kb.to_bytes(), tmp_path)
    kb = kb_of(Entity("a", "A"))
    kb.database.set(entities="0 UNION SELECT 1")
    with raises("entities is '0 UNION"):
        unpack_kb(kb.to_bytes(), tmp_path)


LINKED = [
    "entities.sqlite",
    "entities.sqlite-journal",
    "entities.sqlite-wal",
    *(f"{VECTORS}.{suffix}" for suffix in ("bin", "keys", "lock")),
    file_of(repr(Names())),
    "texts-0123456789abcdef.bin",
    "index-0123456789abcdef.json",
    "index-0123456789abcdef-01234567.faiss",
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
    with raises(name):
        ArboKB(Vocab()).to_disk(kb)
    assert place.read_bytes() == before
    assert not (kb.parent / "nowhere").exists()


def test_a_journal_that_names_another_file_is_refused(kb, precious):
    # SQLite removes the file whose name is at the end of a journal when it rolls back.
    name = str(precious).encode()
    journal = bytes.fromhex("d9d505f920a163d7") + bytes(4) + bytes(500)
    journal += b"\0\0\0\1" + name + len(name).to_bytes(4, "big")
    journal += sum(name).to_bytes(4, "big") + bytes.fromhex("d9d505f920a163d7")
    (kb / "entities.sqlite-journal").write_bytes(journal)
    refused_everywhere(kb, "entities.sqlite-journal")


HEADER = {"encoder": "x", "kind": "names", "dtype": "float32", "width": 3}
HEADERS = [
    *(b"", b"{" * 4096, b'{"width": 99999999999999}'),
    *(
        json.dumps({**HEADER, **one}).encode()
        for one in (
            *({"kind": "../../precious"}, {"encoder": "y"}, {"dtype": "O"}),
            *({"width": width} for width in (1 << 40, True, 0)),
        )
    ),
]
ROWS = [(0, 0), (-1, 1), (1 << 62, 7), (9, -1), (1, 1 << 62)]
TEXTS = [
    {"owners": np.full(16, 8)},
    *({"uuid": 7}, {"generation": "many"}, {"generation": 1 << 70}),
]
ENTRY = {"suffix": ".faiss", "size": 9, "crc": 1, "rows": 1, "kind": "x", "keys": ""}
ENTRIES = [
    *({"suffix": ".faiss/../../../precious"}, {"suffix": ".faiss\n"}, {"suffix": 7}),
    *({"size": "9"}, {"crc": -1}, {"rows": 1 << 80}, {}),
]


def craft(kb, part, value):
    """Write a value that no writer writes into what is derived from a folder's entities."""
    if part == "header":
        for suffix in ("bin", "keys"):
            data = (kb / f"{VECTORS}.{suffix}").read_bytes()
            header = value.ljust(4096) if value else value
            (kb / f"{VECTORS}.{suffix}").write_bytes(header + data[4096:])
    elif part == "row":
        path = kb / f"{VECTORS}.keys"
        data = path.read_bytes()
        path.write_bytes(data[:4096] + struct.pack("<qq", *value) + data[4112:])
    elif part == "texts":
        path = kb / file_of(repr(Names()))
        texts = TextRows.from_bytes(path.read_bytes())
        path.write_bytes(replace(texts, **value).to_bytes())
    elif part == "numbers":
        path = kb / file_of(repr(Names()))
        data = path.read_bytes()[4:value]
        path.write_bytes(zlib.crc32(data).to_bytes(4, "little") + data)
    else:
        name = f"index-{VECTORS.rpartition('-')[2]}.json"
        (kb / name).write_text(json.dumps({**ENTRY, **value}))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "part, value",
    [
        *(("header", value) for value in HEADERS),
        *(("row", value) for value in ROWS),
        *(("texts", value) for value in TEXTS),
        *(("numbers", value) for value in (-1, -8, -4)),
        *(("index", value) for value in ENTRIES),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_impossible_vectors_texts_and_indexes_are_not_used(kb, precious, part, value):
    craft(kb, part, value)
    named = {"header": VECTORS, "row": VECTORS, "index": "index-"}.get(part)
    assert named is None or any(named in problem for problem in verify(kb))
    opened = ArboKB.for_reading(kb)
    encoded = sync(opened)
    assert encoded == 9 if part == "header" else (encoded > 0) == (part == "row")
    assert part != "index" or opened.vectors.index is None
    np.testing.assert_array_equal(opened.get_vector("e3"), encode([("name 3", "")])[0])


@pytest.mark.parametrize("column", ["aliases", "types", "meta", "title", "frequency", "id"])
@pytest.mark.parametrize("value", ["nonsense", "[" * 100_000, "7", b"bytes", 1.5])
def test_entities_that_are_no_entities_are_refused(kb, column, value):
    """The stranger knows how checksums are made."""
    with edited(kb) as database:
        database.execute(f"UPDATE entity SET {column} = ? WHERE position = 3", (value,))
        row = database.execute(f"SELECT {COLUMNS} FROM entity WHERE position = 3").fetchone()
        database.execute("UPDATE entity SET crc = ? WHERE position = 3", (checksum(row[:-1]),))
    try:
        entity = ArboKB.for_reading(kb).entities.at(3)
    except ValueError as error:
        assert str(error).startswith("[arbo-E0")
    else:
        assert isinstance(entity.title, str)
        assert isinstance(entity.frequency, float)
        assert all(isinstance(text, str) for text in (*entity.aliases, *entity.types))


def test_verify_names_files_that_do_not_belong_and_a_writer_removes_its_own(kb, precious):
    digits = "0" * 32
    ours = [f".entities.sqlite.{digits}.tmp", f".texts-0123456789abcdef.bin.{digits}.tmp"]
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


@pytest.mark.parametrize("is_link", [False, True])
def test_a_writer_removes_what_a_killed_one_left_beside_the_folder(kb, tmp_path, is_link):
    path = tmp_path / "link" if is_link else kb
    if is_link:
        path.symlink_to(kb)
    leftover = kb.with_name(f".{kb.name}.{'0' * 32}.tmp")
    (leftover / "new").mkdir(parents=True)
    ArboKB.for_reading(path)
    assert leftover.exists(), "who reads changes nothing"
    with ArboKB.open(path):
        assert not leftover.exists()


def test_an_encoding_that_fails_leaves_nothing(kb):
    def failing(texts):
        raise RuntimeError("the encoder broke")

    before = sorted(path.name for path in kb.iterdir())
    with ArboKB.open(kb) as opened, pytest.raises(RuntimeError):
        sync(opened, "another", failing)
    left = {path.name for path in kb.iterdir()}.difference(before)
    assert verify(kb) == []
    assert left <= {"write.lock", f"{VectorKind('another').name}.lock"}


@pytest.mark.parametrize(
    "key, value",
    [
        *(("id", value) for value in ("a\0", "a\ud83d")),
        *(("title", value) for value in ("\0", 7)),
        *(("description", value) for value in ("\ud83d", 7.5)),
        *(("aliases", value) for value in (["x", "\0"], "x", 7, [None])),
        ("types", ["\udfff"]),
        *(("frequency", value) for value in (float("-inf"), "many", 10**400)),
    ],
)
def test_entities_with_impossible_values_are_refused(key, value):
    with raises(r"^\[arbo-E0\d\d\].*'a"):
        Entity(**{"id": "a", key: value})


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, object(), "\ud83d", {(1, 2): 3}])
def test_a_meta_that_is_no_json_is_refused_when_it_is_added(value):
    kb = ArboKB(Vocab())
    with raises("E039.*meta of entity 'a'"):
        kb.add([Entity("b"), Entity("a", meta={"k": value})])
    assert len(kb) == 0


@pytest.mark.parametrize("old", ["\0", "\ud83d", 7])
def test_redirects_with_impossible_ids_are_refused(old):
    kb = kb_of(Entity("a"))
    with raises("E037"):
        kb.redirect({old: "a"})
    assert kb.entities.redirects() == {}
