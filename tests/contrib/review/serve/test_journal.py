"""The journal has what was decided, belongs to one pipeline, and is one clear error otherwise."""

import json

import pytest

from spacy_arbo_el import edit_pipeline, find_linker, load_pipeline, save_pipeline
from spacy_arbo_el.contrib.review.decisions import journal
from spacy_arbo_el.contrib.review.decisions.journal import Journal, Recorded, journal_path

from ....cases import cases
from ....commands import run
from ....expecting import no_warnings, raises, warns
from .world import pipeline

AT = "2026-01-01T00:00:00+00:00"


def full(*_):
    raise OSError(28, "No space left on device")


def test_a_journal_of_another_model_is_a_choice_and_not_silent(start, browser, model):
    ids = browser.ids
    browser.decide("reject", "Quorn")
    browser.decide("accept", "Vexil", title="Vexil")
    save_pipeline(pipeline(), model)  # as a second training with the same output
    for command in (("new", "list", model), ("serve", model, "--port", 0)):
        said = run(*command, code=1)
        assert "E917" in said
        assert "2 decisions" in said
        assert "--adopt" in said
    with raises("E917"):
        load_pipeline(model)
    journal.adopt(model)
    assert start().ids.keys() == ids.keys() - {"Quorn", "Vexil"}
    journal_path(model).unlink()
    assert start().ids == ids


def test_a_journal_goes_on_over_saves_by_others(start, browser, model):
    ids = browser.ids
    browser.decide("reject", "Quorn")
    with edit_pipeline(model) as nlp:
        find_linker(nlp).new_entities.reject(ids["Vexil"])
    again = start()
    again.decide("reject", "zorb")
    assert start().ids.keys() == ids.keys() - {"Quorn", "Vexil", "zorb"}


def test_a_line_that_a_kill_cut_off_is_dropped_with_a_warning(start, browser, model):
    browser.decide("reject", "Quorn")
    path = journal_path(model)
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"n": 1, "action": "rej')
    with warns("W910"):
        again = start()
    assert len(again.rows) == 5
    again.decide("reject", "Vexil")
    with no_warnings():
        recorded = Recorded.read(path)
    assert len(recorded.entries) == 2
    assert recorded.size == path.stat().st_size


DEEP = "[" * 100_000 + "]" * 100_000
BEGIN = {"action": "begin", "journal": "x", "state": "", "at": AT}


@pytest.mark.parametrize(
    "lines, line",
    [
        *cases("broken_journals"),
        ([BEGIN, DEEP], 2),
        ([BEGIN, '{"n": ' + "1" * 5000 + "}"], 2),
    ],
)
def test_a_journal_that_is_none_is_an_error_with_its_line(model, lines, line):
    texts = (text if isinstance(text, str) else json.dumps(text) for text in lines)
    journal_path(model).write_text("".join(f"{text}\n" for text in texts), encoding="utf8")
    if len(lines) > 1:
        with raises(rf"E911.*line {line}"):
            Journal(model)
    with raises(rf"E911.*line {line}"):
        load_pipeline(model)


def test_a_hostile_journal_is_one_clear_error(start, browser, model):
    browser.decide("skip", "Quorn")
    path, about = journal_path(model), {"n": 1, "at": AT, "by": "x", "before": [], "redirects": {}}
    kept = path.read_text()
    for entry in cases("hostile_entries"):
        path.write_text(kept + json.dumps({**about, **entry}) + "\n")
        with raises("E912.*line 3.*move the file away"):
            load_pipeline(model)
    path.rename(path.with_suffix(".old"))
    assert len(start().rows) == 6


def test_entries_that_are_missing_are_said(browser, model):
    for name in ("Quorn", "Vexil"):
        browser.decide("reject", name)
    browser.post("/save")
    path = journal_path(model)
    path.write_text("".join(f"{line}\n" for line in path.read_text().splitlines()[:-1]))
    with raises("E911"):
        load_pipeline(model)


def test_what_could_not_be_written_is_not_decided(browser, monkeypatch):
    ids = browser.ids
    monkeypatch.setattr(browser.review.journal, "_write", full)
    assert "No space left" in browser.decide("accept", "Quorn", 507, title="Q")
    body = {"entities": [{"id": "E900", "title": "Kathmandu"}, {"id": "cat", "title": "Panther"}]}
    answer = browser.client.post("/entities", json=body, headers={"Authorization": "Bearer secret"})
    assert answer.status_code == 507
    assert "No space left" in answer.json()["error"]
    kb = browser.kb
    assert browser.ids == ids
    assert len(kb) == 8
    assert kb.get("cat").title == "jaguar"


def test_an_undo_that_could_not_be_written_has_not_happened(start, browser, monkeypatch, model):
    browser.decide("accept", "Quorn", title="Q")
    (accepted,) = browser.standing
    with monkeypatch.context() as patch:
        patch.setattr(browser.review.journal, "_write", full)
        browser.post("/undo", 507)
    assert browser.standing == [accepted]
    assert accepted["kb_id"] in browser.kb
    assert accepted["kb_id"] in start().kb
    browser.post("/undo")
    assert not browser.standing
    assert accepted["kb_id"] not in browser.kb
    browser.post("/save")
    again = start()
    assert accepted["kb_id"] not in again.kb
    assert again.review.unsaved == 0


def test_an_undo_that_cannot_be_carried_out_is_not_in_the_journal(
    start, browser, monkeypatch, model
):
    browser.decide("accept", "Quorn", title="Q")
    size = journal_path(model).stat().st_size
    monkeypatch.setattr(browser.review.deciding, "take_back", full)
    browser.post("/undo", 507)
    assert journal_path(model).stat().st_size == size
    assert len(browser.standing) == 1
    monkeypatch.undo()
    browser.post("/undo")
    assert len(start().rows) == 6


@pytest.mark.parametrize("content", [b"a key without a line end", None])
def test_a_journal_that_is_a_link_is_refused(model, tmp_path, content):
    elsewhere = tmp_path / "key"
    if content is not None:
        elsewhere.write_bytes(content)
    journal_path(model).symlink_to(elsewhere)
    with raises("E925"):
        load_pipeline(model)
    with raises("E925"):
        Journal(model)
    assert (elsewhere.read_bytes() if elsewhere.exists() else None) == content


def test_a_file_that_is_no_beginning_of_a_journal_is_refused(model):
    journal_path(model).write_bytes(b"a key without a line end")
    with raises("E911.*line 1"):
        Journal(model)


@pytest.mark.parametrize("change", ["moved", "cut", "replaced"])
def test_a_journal_that_another_program_changed_is_not_written_to(browser, model, change):
    browser.decide("reject", "Quorn")
    path = journal_path(model)
    whole = path.read_bytes()
    if change == "cut":
        path.write_bytes(whole[:10])
    else:
        path.rename(path.with_suffix(".old"))
    if change == "replaced":
        path.write_bytes(whole)
    assert "E926" in browser.decide("reject", "Vexil", 507)
    assert len(browser.standing) == 1
    if change == "moved":
        path.with_suffix(".old").rename(path)
        browser.decide("reject", "Vexil")
        assert len(Recorded.read(path).entries) == 2
