"""Files and folders that are replaced: what is never touched, and what a kill leaves."""

import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from types import SimpleNamespace

import numpy as np
import pytest

from spacy_arbo_el.corpora.docbin import PARTS
from spacy_arbo_el.kb.folder import KB_FOLDER
from spacy_arbo_el.pipelines import PIPELINE
from spacy_arbo_el.storage import folders
from spacy_arbo_el.storage.files import replacing, unpack_arrays, write_file
from spacy_arbo_el.storage.folders import FolderKind, replacing_folder, restore

from ..expecting import raises
from ..threads import PATIENCE, wait_for

LETTERS = FolderKind("a folder of letters", lambda folder: r"letter-\d+")


def fill(path, text="new"):
    with replacing_folder(path, LETTERS) as folder:
        (folder / "letter-1").write_text(text)


def contents(folder):
    """The text of each file below a folder."""
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def make(folder, *names):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(name)
    return folder


@pytest.mark.parametrize("names", [None, [], ["letter-3", "letter-4"]])
def test_absent_empty_and_own_folders_are_replaced(tmp_path, names):
    if names is not None:
        make(tmp_path / "x", *names)
    fill(tmp_path / "x")
    assert contents(tmp_path) == {"x/letter-1": "new"}


@pytest.mark.parametrize(
    "names",
    [["thesis.txt"], ["letter-1", "thesis.txt"], ["letter-1", "letter-2/thesis.txt"], [".x"]],
)
def test_folders_with_other_files_are_left_as_they_were(tmp_path, names):
    before = contents(make(tmp_path / "x", *names))
    with raises(r"arbo-E030.*x is not replaced.*letters.*empty folder"):
        fill(tmp_path / "x")
    assert contents(tmp_path / "x") == before
    assert os.listdir(tmp_path) == ["x"]


def test_a_file_put_into_the_old_folder_during_the_work_is_kept(tmp_path):
    fill(tmp_path / "x", "old")
    with raises("thesis.txt"):  # noqa: SIM117
        with replacing_folder(tmp_path / "x", LETTERS) as folder:
            (folder / "letter-1").write_text("new")
            make(tmp_path / "x", "thesis.txt")
    assert contents(tmp_path / "x") == {"letter-1": "old", "thesis.txt": "thesis.txt"}


def test_files_links_and_the_working_directory_are_not_replaced(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("mine")
    with raises("E031.*file is a file"):
        fill(tmp_path / "file")
    with pytest.raises(IsADirectoryError, match="E033.*is a folder"):
        write_file(make(tmp_path / "folder"), b"")
    (make(tmp_path / "x") / "letter-2").symlink_to(tmp_path / "file")
    with raises("letter-2"):
        fill(tmp_path / "x")
    monkeypatch.chdir(make(tmp_path / "empty"))
    with raises("E032.*working directory"):
        fill(".")
    assert contents(tmp_path) == {"file": "mine", "x/letter-2": "mine"}


def test_devices_and_pipes_are_written_to_and_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit((tmp_path / "pipe").read_bytes)
        write_file(tmp_path / "pipe", b"text")
        assert reader.result(PATIENCE) == b"text"
    assert (tmp_path / "pipe").is_fifo()
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_link_to_a_folder_stays_a_link(tmp_path):
    fill(tmp_path / "real", "old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    fill(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert contents(tmp_path / "real") == {"letter-1": "new"}


def test_a_replaced_folder_keeps_its_mode_and_a_new_one_has_the_usual(tmp_path):
    make(tmp_path / "usual")
    fill(tmp_path / "x")
    assert (tmp_path / "x").stat().st_mode == (tmp_path / "usual").stat().st_mode
    (tmp_path / "x").chmod(0o750)
    fill(tmp_path / "x")
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o750


def test_what_pipelines_corpora_and_knowledge_bases_hold(tmp_path):
    meta = json.dumps({"components": ["ner", "arbo_linker"]})
    pipeline = make(tmp_path / "p", "config.cfg", "meta.json", "tokenizer", "ner/x", "vocab/x")
    assert PIPELINE.strangers(pipeline), "meta.json is none of a pipeline"
    (pipeline / "meta.json").write_text(meta)
    assert PIPELINE.strangers(pipeline) == []
    make(pipeline, "tagger/x", "notes.txt")
    assert PIPELINE.strangers(pipeline) == ["notes.txt", "tagger"]
    assert PIPELINE.strangers(make(tmp_path / "c", "config.cfg")) == ["config.cfg"]
    parts = make(tmp_path / "d", "part-000000.spacy", "dev.spacy")
    assert PARTS.strangers(parts) == ["dev.spacy"]
    web = make(tmp_path / "w", "manifest.json")
    assert KB_FOLDER.strangers(web) == ["manifest.json"]


@pytest.fixture(params=["exchange", "two renames"])
def renaming(request, monkeypatch):
    """Systems that exchange two folders in one step, and others."""
    if request.param == "two renames":
        monkeypatch.setattr(folders, "exchange", lambda left, right: False)
    return request.param


def test_what_a_living_writer_has_begun_is_not_removed(tmp_path):
    fill(tmp_path / "x", "old")
    with replacing_folder(tmp_path / "x", LETTERS) as folder:
        with replacing(tmp_path / "file") as file:
            write_file(tmp_path / "file", b"second")
            fill(tmp_path / "x", "second")
            file.write(b"first")
        (folder / "letter-1").write_text("first")
    assert contents(tmp_path) == {"file": "first", "x/letter-1": "first"}


def test_only_our_own_temporary_names_are_removed(tmp_path):
    digits = "0" * 32
    ours = [f".x.{digits}.tmp", f".y.{digits}.tmp"]
    others = [".x.tmp", f".x.{digits}", f".x.{digits}0.tmp", f"x.{digits}.tmp", ".x-old", "x.tmp"]
    make(tmp_path, *ours, *others)
    write_file(tmp_path / "x", b"x")
    assert sorted(os.listdir(tmp_path)) == sorted([*others, ours[1], "x"])
    make(tmp_path / ours[0], "inner")
    fill(tmp_path / "folder")
    make(tmp_path / f".folder.{digits}.tmp" / "new", "inner")
    fill(tmp_path / "folder")
    assert sorted(os.listdir(tmp_path)) == sorted([*others, *ours, "x", "folder"])


def test_links_with_temporary_names_are_not_followed(tmp_path):
    precious = make(tmp_path / "precious", "thesis.txt")
    (tmp_path / f".x.{'0' * 32}.tmp").symlink_to(precious)
    fill(tmp_path / "x")
    assert contents(precious) == {"thesis.txt": "thesis.txt"}


def test_a_reader_waits_for_a_folder_that_is_being_renamed(tmp_path, monkeypatch):
    path = tmp_path / "x"
    renamed, waits, go_on = threading.Event(), threading.Event(), threading.Event()
    fill(path, "old")

    def slow_exchange(folder, target):
        os.rename(target, folder.with_name("old"))
        renamed.set()
        wait_for(go_on, "the reader")
        os.rename(folder, target)
        return True

    def sleep(seconds):
        waits.set()
        time.sleep(seconds)

    monkeypatch.setattr(folders, "exchange", slow_exchange)
    monkeypatch.setattr(folders, "PATIENCE", PATIENCE)
    monkeypatch.setattr(folders, "time", SimpleNamespace(monotonic=time.monotonic, sleep=sleep))
    with ThreadPoolExecutor(2) as pool:
        writer = pool.submit(fill, path)
        wait_for(renamed, "the first rename")
        reader = pool.submit(restore, path)
        wait_for(waits, "the reader that finds no folder")
        assert not reader.done()
        assert not path.exists()
        go_on.set()
        writer.result(), reader.result()
    assert contents(tmp_path) == {"x/letter-1": "new"}


def test_files_are_on_the_disk_before_and_names_after_renaming(tmp_path, monkeypatch, renaming):
    events, fsync, rename = [], os.fsync, os.rename

    def logged_fsync(descriptor):
        events.append(os.readlink(f"/proc/self/fd/{descriptor}").replace(str(tmp_path), ""))
        fsync(descriptor)

    def logged(function):
        def call(*arguments):
            events.append("rename")
            return function(*arguments)

        return call

    monkeypatch.setattr(os, "fsync", logged_fsync)
    monkeypatch.setattr(os, "rename", logged(rename))
    monkeypatch.setattr(os, "replace", logged(os.replace))
    monkeypatch.setattr(folders, "exchange", logged(folders.exchange))
    write_file(tmp_path / "file", b"x")
    assert [event[-4:] for event in events] == [".tmp", "name", ""]
    fill(tmp_path / "x")
    events.clear()
    fill(tmp_path / "x")
    first = events.index("rename")
    assert [event.split("/")[-1] for event in events[:first]] == ["letter-1", "new"]
    assert events[-1] == ""
    assert set(events[first:-1]) == {"rename"}


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_are_read_uncompressed_alone(save):
    file = BytesIO()
    save(file, vectors=np.zeros(9))
    if save is np.savez:
        assert len(unpack_arrays(file.getvalue())["vectors"]) == 9
        return
    with raises("'vectors.npy' are compressed"):
        unpack_arrays(file.getvalue())
