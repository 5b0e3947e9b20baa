"""Pipelines are saved in one step by one program at a time, with the settings in force."""

import copy
import os
import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
import spacy
from filelock import FileLock, Timeout

from spacy_arbo_el import (
    ArboKB,
    Calibration,
    Entity,
    edit_pipeline,
    find_linker,
    load_pipeline,
    pipelines,
    save_pipeline,
)
from spacy_arbo_el.pipelines import changing_pipeline
from spacy_arbo_el.storage.folders import LOCK

from ..commands import run
from ..expecting import raises, warns
from ..linker.world import DEV, unlinked_doc
from ..threads import forked
from .saved import NAME, change, contents

CURVES = {"entity": [3.0, -1.0]}
CHANGED = {"overwrite": True, "use_gold_ents": True, "extension": "arbo", "calibration": None}


@pytest.fixture
def model(saved_tiny, tmp_path):
    return shutil.copytree(saved_tiny, tmp_path / "model")


def saved_settings(path):
    return spacy.util.load_config(path / "config.cfg")["components"][NAME]


# Settings


def test_settings_changed_at_run_time_show_in_the_config_and_are_saved(own_tiny, tmp_path):
    linker = find_linker(own_tiny)
    linker.threshold = 0.3
    linker.calibration = Calibration.from_config(CURVES)
    linker.cfg["overwrite"] = False
    linker.cfg.update(use_gold_ents=False)
    linker.cfg["extension"] = "mine"
    assert own_tiny.config["components"][NAME]["threshold"] == 0.3
    own_tiny.to_disk(tmp_path / "model")
    settings = saved_settings(tmp_path / "model")
    assert settings["calibration"]["entity"] == [3.0, -1.0]
    keys = ("threshold", "overwrite", "use_gold_ents", "extension")
    assert [settings[key] for key in keys] == [0.3, False, False, "mine"]
    again = find_linker(spacy.load(tmp_path / "model"))
    assert again.cfg == linker.cfg
    assert again.calibration == linker.calibration


@pytest.mark.parametrize(
    "key, value, read",
    [
        # What the pipeline was made with, saved with, the default, and another one.
        *(
            ("threshold", value, lambda linker: linker.threshold)
            for value in (0.999, 0.3, 0.0, 0.5)
        ),
        *((key, value, lambda linker, key=key: linker.cfg[key]) for key, value in CHANGED.items()),
        *(
            (f"model.mention.{name}", 640, lambda linker, name=name: tower(linker)[name])
            for name in ("predict_tokens", "train_tokens", "kept_tokens")
        ),
        ("model.mention.window", 32, lambda linker: tower(linker)["reader"].size),
    ],
)
def test_each_setting_can_be_given_on_loading(own_tiny, tmp_path, key, value, read):
    linker = find_linker(own_tiny)
    linker.cfg.update(overwrite=False, use_gold_ents=False, extension="mine")
    linker.calibration, linker.threshold = Calibration.from_config(CURVES), 0.3
    own_tiny.to_disk(tmp_path / "model")
    again = spacy.load(tmp_path / "model", config={f"components.{NAME}.{key}": value})
    assert read(find_linker(again)) == value
    again.to_disk(tmp_path / "again")
    assert saved_settings(tmp_path / "again")["threshold"] == find_linker(again).threshold
    doc = again(unlinked_doc(again, DEV[0]))
    assert doc.ents[0].kb_id_


def tower(linker):
    return linker.model.get_ref("mention").attrs


def test_another_window_on_loading_encodes_anew(own_tiny, model):
    config = {f"components.{NAME}.model.mention.window": 32}
    linker = find_linker(spacy.load(model, config=config))
    assert linker.kb.fingerprint == linker.encoder.text_fingerprint
    assert linker.encoder.fingerprint == linker.exemplars.fingerprint
    assert linker.encoder.fingerprint != find_linker(own_tiny).encoder.fingerprint


def test_settings_of_a_disabled_and_of_a_renamed_component(own_tiny, tmp_path):
    own_tiny.rename_pipe(NAME, "linker")
    own_tiny.disable_pipe("linker")
    own_tiny.get_pipe("linker").threshold = 0.3
    own_tiny.to_disk(tmp_path / "model")
    again = spacy.load(tmp_path / "model")
    assert again.disabled == ["linker"]
    assert again.get_pipe("linker").threshold == 0.3
    without = spacy.load(tmp_path / "model", exclude=["linker"])
    assert without.pipe_names == []


def test_settings_survive_bytes_copies_and_pickles(own_tiny):
    linker = find_linker(own_tiny)
    linker.threshold = 0.3
    other = spacy.blank("xx").from_config(own_tiny.config)
    other.from_bytes(own_tiny.to_bytes())
    again = [find_linker(other), copy.deepcopy(linker), pickle.loads(pickle.dumps(linker))]
    for one in again:
        assert one.threshold == 0.3
        assert contents(one) == contents(linker)


def test_settings_of_a_linker_sourced_from_another_pipeline(own_tiny, tmp_path):
    app = spacy.blank("xx")
    app.add_pipe(NAME, source=own_tiny)
    find_linker(app).threshold = 0.3
    save_pipeline(app, tmp_path / "model")
    assert find_linker(spacy.load(tmp_path / "model")).threshold == 0.3


# In one step


def test_save_pipeline_leaves_other_folders_alone(own_tiny, model, tmp_path):
    (model / "notes.txt").write_text("mine")
    with raises("notes.txt"):
        save_pipeline(own_tiny, model)
    with raises("notes.txt"), edit_pipeline(model):
        pass
    assert (model / "notes.txt").read_text() == "mine"


def test_an_error_while_saving_leaves_the_old_pipeline(own_tiny, model, monkeypatch):
    before = contents(find_linker(spacy.load(model)))
    change(own_tiny)
    monkeypatch.setattr(find_linker(own_tiny).reranker.__class__, "to_bytes", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        save_pipeline(own_tiny, model)
    with pytest.raises(ZeroDivisionError):
        find_linker(own_tiny).to_disk(model / NAME)
    monkeypatch.undo()
    assert contents(find_linker(spacy.load(model))) == before
    assert os.listdir(model.parent) == [model.name]


def test_a_component_saved_over_itself_keeps_what_was_excluded(own_tiny, model):
    before = contents(find_linker(own_tiny))
    change(own_tiny)
    linker = find_linker(own_tiny)
    linker.to_disk(model / NAME, exclude=["vocab", "exemplars", "corrections", "kb"])
    found = contents(find_linker(spacy.load(model)))
    changed = {key for key in before if found[key] != before[key]}
    assert changed == {"new_entities", "reranker"}


def test_a_part_that_was_never_saved_is_named(own_tiny, tmp_path):
    linker = find_linker(own_tiny)
    linker.to_disk(tmp_path / "part", exclude=["exemplars", "kb"])
    with raises("E053.*without 'exemplars'.*exclude"):
        linker.from_disk(tmp_path / "part")
    linker.from_disk(tmp_path / "part", exclude=["exemplars", "kb"])


# One program at a time


def test_edit_pipeline_saves_and_an_error_does_not(model):
    with edit_pipeline(model) as nlp:
        find_linker(nlp).threshold = 0.1
    with pytest.raises(KeyError), edit_pipeline(model) as nlp:
        find_linker(nlp).threshold = 0.2
        find_linker(nlp).kb.get("nobody")
    assert find_linker(spacy.load(model)).threshold == 0.1


def test_two_programs_at_once(model):
    """The second is refused from loading to saving, and the first is not disturbed."""
    with edit_pipeline(model) as nlp:
        entity = find_linker(nlp).new_entities.ids[0]
        table = model.with_name("decisions.csv")
        table.write_text(f"id,decision\n{entity},reject\n")
        assert forked(lambda: "E050" in run("new", "apply", model, table, code=1))
        find_linker(nlp).threshold = 0.1
    linker = find_linker(spacy.load(model))
    assert linker.threshold == 0.1
    assert entity in linker.new_entities.ids


def test_threads_of_one_program_keep_each_other_out(model):
    def edit():
        with edit_pipeline(model):
            pass

    with changing_pipeline(model), ThreadPoolExecutor(1) as pool:
        with raises("E050"):
            pool.submit(edit).result()
        # A thread may take it again.
        with changing_pipeline(model):
            pass
    edit()


def test_a_link_that_leads_elsewhere_meanwhile_is_not_followed(model, tmp_path):
    shutil.copytree(model, tmp_path / "second")
    link = tmp_path / "current"
    link.symlink_to(model.name)
    with edit_pipeline(link) as nlp:
        find_linker(nlp).threshold = 0.1
        link.unlink()
        link.symlink_to("second")
    assert find_linker(spacy.load(model)).threshold == 0.1
    assert find_linker(spacy.load(tmp_path / "second")).threshold != 0.1


def test_a_folder_that_took_the_place_of_the_locked_one_is_not_replaced(model, tmp_path):
    new = shutil.copytree(model, tmp_path / "new")
    with raises("E044"), edit_pipeline(model) as nlp:
        find_linker(nlp).threshold = 0.1
        model.rename(tmp_path / "away")
        new.rename(model)
    assert find_linker(spacy.load(model)).threshold != 0.1


def test_the_lock_holds_over_the_replacement(own_tiny, model):
    with changing_pipeline(model):
        save_pipeline(own_tiny, model)
        lock = FileLock(str(model / LOCK))
        with pytest.raises(Timeout):
            lock.acquire(timeout=0)
    with lock.acquire(timeout=0):
        pass


def test_a_knowledge_base_that_is_being_edited_is_not_replaced(own_tiny, model):
    kb = ArboKB.open(model / NAME / "kb")
    try:
        with raises("being edited"):
            save_pipeline(own_tiny, model)
        with raises("being edited"), edit_pipeline(model):
            pass
        with raises("being edited"):
            own_tiny.to_disk(model)
    finally:
        kb.close()
    with changing_pipeline(model), raises("being edited"):
        ArboKB.open(model / NAME / "kb")
    save_pipeline(own_tiny, model)


def test_a_pipeline_whose_own_knowledge_base_is_open_for_writing(model):
    nlp = spacy.load(model)
    linker = find_linker(nlp)
    with ArboKB.open(model / NAME / "kb", nlp.vocab) as kb:
        linker.set_kb(lambda vocab: kb)
        kb.add(Entity("x", "X-ray"))
        linker.threshold = 0.1
        with raises("E055.*kb.close"):
            save_pipeline(nlp, model)
        nlp.to_disk(model)
        kb.add(Entity("y", "Yellow"))
    again = find_linker(spacy.load(model))
    assert "x" in again.kb
    assert "y" in again.kb
    assert again.threshold == 0.1


def test_a_newer_knowledge_base_is_no_damage_and_an_older_one_is_refused(own_tiny, model, tmp_path):
    shutil.copytree(model / NAME / "kb", tmp_path / "old")
    with ArboKB.open(model / NAME / "kb") as kb:
        kb.add(Entity("x", "X-ray"))
    nlp = load_pipeline(model)
    assert "x" in find_linker(nlp).kb
    nlp.to_disk(model)
    shutil.rmtree(model / NAME / "kb")
    shutil.copytree(tmp_path / "old", model / NAME / "kb")
    with raises("E054.*set_kb"):
        spacy.load(model)


def test_a_pipeline_of_links_loads_as_a_copy(own_tiny, tmp_path):
    own_tiny.to_disk(tmp_path / "cache")
    shutil.copytree(tmp_path / "cache", tmp_path / "links", copy_function=os.symlink)
    for load in (spacy.load, load_pipeline):
        with raises("E042.*is a symbolic link.*cp -rL FOLDER COPY"):
            load(tmp_path / "links")
    shutil.copytree(tmp_path / "links", tmp_path / "copy")
    assert spacy.load(tmp_path / "copy").pipe_names == own_tiny.pipe_names
    (tmp_path / "whole").symlink_to(tmp_path / "cache")
    assert spacy.load(tmp_path / "whole").pipe_names == own_tiny.pipe_names


def test_decisions_without_the_add_on_that_makes_them_are_said(model, monkeypatch):
    pipelines.journal_path(model).write_text("{}\n")
    monkeypatch.setattr(pipelines.after_load, "get_all", dict)
    with warns("W051.*model.review.jsonl has decisions"):
        load_pipeline(model)
