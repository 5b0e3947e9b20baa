"""Files and folders that are replaced: what is never touched, and what a kill leaves."""

import json
import os

import pytest

from spacy_arbo_el.corpora.parts import PARTS
from spacy_arbo_el.io import PIPELINE, FolderKind, replacing_folder, write_file
from spacy_arbo_el.kb.folder import KB_FOLDER

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
    with pytest.raises(ValueError, match=r"arbo-E030.*x is not replaced.*letters.*empty folder"):
        fill(tmp_path / "x")
    assert contents(tmp_path / "x") == before
    assert os.listdir(tmp_path) == ["x"]


def test_a_file_put_into_the_old_folder_during_the_work_is_kept(tmp_path):
    fill(tmp_path / "x", "old")
    with pytest.raises(ValueError, match="thesis.txt"):  # noqa: SIM117
        with replacing_folder(tmp_path / "x", LETTERS) as folder:
            (folder / "letter-1").write_text("new")
            make(tmp_path / "x", "thesis.txt")
    assert contents(tmp_path / "x") == {"letter-1": "old", "thesis.txt": "thesis.txt"}


def test_many_strangers_are_counted(tmp_path):
    make(tmp_path / "x", *"abcde")
    with pytest.raises(ValueError, match=r"\(a, b, c and 2 more\)"):
        fill(tmp_path / "x")


def test_files_links_and_the_working_directory_are_not_replaced(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ValueError, match="E031.*file is a file"):
        fill(tmp_path / "file")
    with pytest.raises(IsADirectoryError, match="E033.*is a folder"):
        write_file(make(tmp_path / "folder"), b"")
    (make(tmp_path / "x") / "letter-2").symlink_to(tmp_path / "file")
    with pytest.raises(ValueError, match="letter-2"):
        fill(tmp_path / "x")
    monkeypatch.chdir(make(tmp_path / "empty"))
    with pytest.raises(ValueError, match="E032.*working directory"):
        fill(".")
    assert contents(tmp_path) == {"file": "mine", "x/letter-2": "mine"}


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
