"""Folders that are damaged, mixed up or cut off; writers that are killed; a full disk."""

import gc
import os
import random
import resource
import shutil
import signal
import warnings
import weakref
from functools import partial

import numpy as np
import pytest
from spacy.vocab import Vocab

from spacy_arbo_el import ArboKB, Entity
from spacy_arbo_el.kb.database import Database
from spacy_arbo_el.kb.texts import file_of
from spacy_arbo_el.kb.vector_files import VectorKind
from spacy_arbo_el.kb.verbalizations import Names
from spacy_arbo_el.kb.verification import verify

from ..expecting import raises
from ..kills import in_process
from ..threads import forked
from .encoding import encode, kb_of, sync


def build(path, count=30, encoder="x"):
    kb = kb_of(*(Entity(f"e{i}", f"name {i}", "about", ("alias",)) for i in range(count)))
    sync(kb, encoder)
    kb.to_disk(path)
    return path


def refused(path):
    with pytest.raises((ValueError, OSError)) as error:
        ArboKB.for_reading(path)
    assert str(error.value).startswith("[arbo-E")
    return str(error.value)


DATABASE = "entities.sqlite"
VECTORS = VectorKind("x").name
DERIVED = [f"{VECTORS}.bin", f"{VECTORS}.keys", file_of(repr(Names()))]


def cut_off(path, other, keep):
    data = path.read_bytes()
    path.write_bytes(data[: int(keep * len(data)) if isinstance(keep, float) else keep])


DAMAGES = {
    "missing": lambda path, other: path.unlink(),
    "of another": lambda path, other: shutil.copy(build(other, 40) / path.name, path),
    **{f"cut at {k}": partial(cut_off, keep=k) for k in (0, 1, 100, 0.5, 0.99)},
}


@pytest.mark.parametrize("damage", [name for name in DAMAGES if name != "of another"])
def test_a_damaged_database_is_named(tmp_path, damage):
    DAMAGES[damage](build(tmp_path / "kb") / DATABASE, tmp_path / "other")
    assert DATABASE in refused(tmp_path / "kb")
    assert any(DATABASE in problem for problem in verify(tmp_path / "kb"))


def same_after_encoding(path):
    """Encode twice whatever is damaged. RETURNS: Whether it was mended the first time."""
    for _ in range(2):
        kb = ArboKB.for_reading(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            encoded = sync(kb)
        for entity in kb:
            np.testing.assert_array_equal(kb.get_vector(entity.id), encode([(entity.title, "")])[0])
    return encoded == 0


@pytest.mark.parametrize("name", DERIVED)
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_vectors_are_named_and_encoded_again(tmp_path, name, damage):
    DAMAGES[damage](build(tmp_path / "kb") / name, tmp_path / "other")
    lost = damage == "missing" or (damage == "of another" and name == DERIVED[2])
    assert lost or any(name in problem for problem in verify(tmp_path / "kb"))
    assert same_after_encoding(tmp_path / "kb")
    assert verify(tmp_path / "kb") == []


TABLES = ("manifest", "entity", "name", "type", "redirect", "changed", "trigram_data")


def tables(path):
    """All rows of the database in a folder."""
    database = Database(path / DATABASE, writable=False)
    rows = [database.rows(f"SELECT * FROM {table}") for table in TABLES]
    database.close()
    return rows


def readable(path, problems=()):
    """What a program reads from a folder; None where it is refused.

    problems: What `verify` says.
    """
    try:
        kb = ArboKB.for_reading(path)
        found = [entity.to_dict() for entity in kb], kb.entities.redirects()
        names = sorted(kb.entities.with_names(["alias", "name 7"]).items())
        return *found, names, kb.entities.type_counts()
    except (ValueError, OSError) as error:
        assert str(error).startswith("[arbo-E")
        assert DATABASE in str(error) or "--verify" in str(error)
        assert problems
        return None


@pytest.mark.attack
@pytest.mark.parametrize("edited", [False, True])
@pytest.mark.parametrize("name", [DATABASE, *DERIVED])
def test_flipped_bits_are_detected(tmp_path, name, edited, attacks):
    path = build(tmp_path / "kb")
    if edited:
        with ArboKB.open(path) as kb:
            kb.add(Entity("new", "new"))
            kb.redirect({"old": "e3"})
            sync(kb)
    shutil.copytree(path, tmp_path / "whole")
    whole, entities = tables(path), readable(path)
    data = (path / name).read_bytes()
    rng = random.Random(0)
    for place in sorted(rng.sample(range(len(data)), attacks(20, 200))):
        changed = bytearray(data)
        changed[place] ^= 1 << rng.randrange(8)
        (path / name).write_bytes(changed)
        problems = verify(path)
        if name == DATABASE:
            # Some bits mean nothing, such as those between the rows of a page.
            assert problems or tables(path) == whole, place
            assert readable(path, problems) in (None, entities), place
        else:
            assert any(name in problem for problem in problems), place
            assert same_after_encoding(path)
            shutil.rmtree(path)
            shutil.copytree(tmp_path / "whole", path)
    (path / name).write_bytes(data)
    assert verify(path) == []
    assert len(ArboKB.for_reading(path))


def test_a_changed_row_of_an_entity_is_detected(tmp_path):
    path = build(tmp_path / "kb")
    with ArboKB.open(path) as kb:
        kb.database.rows("UPDATE entity SET title = 'other' WHERE id = 'e7'")
        with raises("'e7'.*damaged.*--verify"):
            kb.get("e7")
        assert kb.get("e8").title == "name 8"
    assert any("'e7'" in problem for problem in verify(path))


# The same edits are made in a process that is killed and in one that is not killed.
def edit(kb, number):
    rng = random.Random(number)
    some = f"e{rng.randrange(40)}"
    kind = number % 5
    if kind == 0 and kb.entities.redirects().get(some) is None:
        kb.upsert([Entity(some, f"title {number}", aliases=(f"alias {number}",))])
    elif kind == 1:
        kb.upsert([Entity(f"n{number}-{i}", f"new {number} {i}") for i in range(rng.randrange(40))])
    elif kind == 2 and some in kb:
        kb.remove(some)
    elif kind == 3:
        sync(kb, "xy"[number % 2])
    elif kind == 4 and some in kb and "e1" in kb and kb.get(some).id != kb.get("e1").id:
        kb.merge(some, "e1")


def state(kb):
    return {entity.id: entity for entity in kb}, kb.entities.redirects()


@pytest.mark.attack
def test_a_writer_killed_at_any_point_of_an_edit(tmp_path, attacks):
    """Finished edits are kept, and the one that was killed is kept in full or not at all."""
    wanted = attacks(30, 500)
    path = build(tmp_path / "kb")
    model = ArboKB.for_reading(path)
    number, rng, between = 0, random.Random(1), 0
    for kills in range(wanted):

        def work(say, first=number, is_silent=kills == 0):
            with ArboKB.open(path) as kb:  # also after a writer was killed
                say()
                for current in range(first, first + 1000):
                    before = state(kb) if is_silent else None
                    edit(kb, current)
                    if is_silent and state(kb) != before:
                        # The edit is made, and is not acknowledged.
                        os.kill(os.getpid(), signal.SIGKILL)
                    say()

        run = in_process(work, kill_after=rng.random() * 0.1, wait=rng.randrange(2, 6))
        done = len(run.said) - 1
        for current in range(number, number + done):
            edit(model, current)
        number += done
        reader = ArboKB.for_reading(path)
        if state(reader) != state(model):
            edit(model, number)
            number, between = number + 1, between + 1
            assert state(reader) == state(model)
    with ArboKB.open(path) as kb:
        sync(kb), sync(kb, "y")
    assert verify(path) == [], "the next writer removes what was left"
    assert number >= wanted, "edits were made, and some were killed at their end"
    assert between
    reader = ArboKB.for_reading(path)
    sync(reader), sync(model)
    for entity in reader:
        np.testing.assert_array_equal(reader.get_vector(entity.id), model.get_vector(entity.id))


def fill(path, limit, what):
    """Write more than a disk has room for. RETURNS: Whether that was refused."""
    many = [Entity(f"n{i}", f"a new name {i}", "x" * 50) for i in range(3000)]
    kb = ArboKB.for_reading(path) if what == "save" else ArboKB.open(path)
    if what == "save":
        kb.add(many)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    if what == "encode":
        # What has no room is kept in memory.
        sync(kb, "another", lambda texts: np.ones((len(texts), 9000), np.float32))
        return kb.get_vector("e1").tolist() == [1] * 9000
    with pytest.raises(OSError):
        kb.to_disk(path) if what == "save" else kb.add(many)
    return True


@pytest.mark.parametrize("what", ["save", "edit", "encode"])
def test_a_full_disk_leaves_the_old_folder_unchanged(tmp_path, what):
    path = build(tmp_path / "kb", 300)
    limit = (path / "entities.sqlite").stat().st_size + 20_000
    assert forked(partial(fill, path, limit, what))
    assert verify(path) == []
    kb = ArboKB.for_reading(path)
    assert len(kb) == 300
    assert kb.fingerprint == "x"
    assert kb.in_sync
    assert [p.name for p in tmp_path.iterdir()] == ["kb"], "no temporary files are left"


def test_folders_without_a_knowledge_base_are_refused(tmp_path):
    for opening in (ArboKB.open, ArboKB.for_reading):
        with pytest.raises(FileNotFoundError, match="nothing does not exist.*kb build"):
            opening(tmp_path / "nothing")
    assert "nothing does not exist" in verify(tmp_path / "nothing")[0]
    (tmp_path / "file").write_text("x")
    assert "is a file, not the folder" in refused(tmp_path / "file")
    (tmp_path / "kb").mkdir()
    assert "entities.sqlite" in refused(tmp_path / "kb")
    with raises("the bytes given"):
        ArboKB(Vocab()).from_bytes(b"nonsense")


def test_a_folder_without_texts_opens_after_a_change_of_encoder(tmp_path):
    build(tmp_path / "kb", 2)
    with ArboKB.open(tmp_path / "kb") as kb:
        kb.remove(["e0", "e1"])
        assert sync(kb, "y") == 0
    assert verify(tmp_path / "kb") == []
    with ArboKB.open(tmp_path / "kb") as kb:
        kb.add(Entity("new", "new"))
        assert sync(kb, "y") == 1
    assert verify(tmp_path / "kb") == []
    assert (ArboKB.for_reading(tmp_path / "kb").rows.owners >= 0).sum() == 1


def test_create_and_to_disk_never_touch_a_folder_of_something_else(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (home / "thesis.txt").write_text("all of it")
    (home / "entities.sqlite").write_text("mine")
    for writing in (ArboKB.create, ArboKB(Vocab()).to_disk):
        with raises("E030.*thesis.txt"):
            writing(home)
    assert sorted(path.name for path in home.iterdir()) == ["entities.sqlite", "thesis.txt"]


def test_create_replaces_a_knowledge_base_only_when_told_to(tmp_path):
    path = build(tmp_path / "kb")
    with raises("E034.*already.*ArboKB.open.*overwrite=True"):
        ArboKB.create(path)
    assert len(ArboKB.for_reading(path)) == 30
    with ArboKB.create(path, overwrite=True) as kb:
        assert len(kb) == 0
        with raises("being edited by another program"):
            ArboKB.create(path, overwrite=True)
        with raises("being edited by another program"):
            ArboKB(Vocab()).to_disk(path)
    (tmp_path / "empty").mkdir()
    ArboKB.create(tmp_path / "empty").close()
    kb_of(Entity("a")).to_disk(path)
    assert len(ArboKB.for_reading(path)) == 1, "to_disk replaces, as spaCy's does"


def test_a_forked_process_does_not_remove_the_copy_that_its_parent_edits(tmp_path, monkeypatch):
    monkeypatch.setattr("spacy_arbo_el.kb.database.IN_MEMORY", 0)
    kb = ArboKB.for_reading(build(tmp_path / "kb"))
    kb.add(Entity("new", "new"))
    copy = kb.database.path
    assert copy.parent != tmp_path / "kb"
    assert copy.is_file()
    # As at the normal exit of a process.
    assert forked(lambda: weakref.finalize._exitfunc() is None)
    assert copy.is_file()
    kb.remove("e3")
    assert len(kb) == 30
    assert kb.get("new").title == "new"
    del kb
    gc.collect()
    assert not copy.exists()
