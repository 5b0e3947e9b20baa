"""Entities from dicts and data frames."""

import csv
import math
from types import SimpleNamespace

import pytest
from spacy.vocab import Vocab

from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.importers.common import entities_from
from spacy_arbo_el.kb.knowledge_base import ArboKB

from ..cases import cases

APPLE = Entity("a", "Apple", "makes computers", ["Apple Inc."], ["COMPANY"], 3)


@pytest.mark.parametrize(
    "record",
    [
        APPLE,
        APPLE.to_dict(),
        {**APPLE.to_dict(), "aliases": "Apple Inc.", "types": ("COMPANY",)},
        {**APPLE.to_dict(), "meta": None},
    ],
)
def test_one_record_or_many(record):
    assert list(entities_from(record)) == list(entities_from([record])) == [APPLE]


def test_missing_values_count_as_left_out():
    record = {"id": "a", "title": None, "description": math.nan, "aliases": None, "frequency": None}
    assert list(entities_from(record)) == [Entity("a")]


def test_other_keys_go_to_meta_and_numbers_as_ids_become_strings():
    (entity,) = entities_from({"id": 9606, "title": "human", "rank": "species"})
    assert entity.id == "9606" and entity.meta == {"rank": "species"}


@pytest.mark.parametrize(("record", "fields"), cases("usual_keys"))
def test_usual_keys_are_those_of_fields(recwarn, record, fields):
    assert list(entities_from(record)) == [Entity(**fields)]
    assert not recwarn


def test_records_without_a_name_are_counted_in_one_warning():
    records = [{"id": "a", "Bezeichnung": "A"}, {"id": "b", "title": "B", "x": 1}, {"id": "c"}]
    with pytest.warns(UserWarning, match="W102.*1 of 3 entities .* keys 'Bezeichnung' were") as one:
        assert list(entities_from(records))[0] == Entity("a", meta={"Bezeichnung": "A"})
    assert len(one) == 1


def test_the_rows_of_a_data_frame():
    rows = [{"id": "a", "title": "A", "aliases": math.nan}, {"id": "b", "title": "B"}]
    frame = SimpleNamespace(columns=["id", "title"], to_dict=lambda kind: rows)
    assert [entity.title for entity in entities_from(frame)] == ["A", "B"]


@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow.csv"])
def test_a_data_frame_has_the_entities_of_its_file(package, tmp_path):
    frames = pytest.importorskip(package)
    path = tmp_path / "kb.csv"
    path.write_text("id,title,aliases,types\nD1,blue fever,BF|b. fever,DIS\nD2,marsh cough,,\n")
    expected = [
        Entity("D1", "blue fever", "", ["BF", "b. fever"], ["DIS"]),
        Entity("D2", "marsh cough"),
    ]
    assert list(ArboKB(Vocab(), frames.read_csv(path))) == expected
    with path.open(newline="") as file:
        assert list(ArboKB(Vocab(), csv.DictReader(file))) == expected


@pytest.mark.parametrize(
    "record",
    [3, "a", None, {}, {"id": ""}, {"id": True}, {"id": "NIL"}, {"id": "a", "aliases": 3},
     {"id": "a", "aliases": [3]}, {"id": "a", "frequency": "often"}, {"id": "a", "title": ["x"]}],
)  # fmt: skip
def test_what_is_no_entity_is_an_error_with_its_number(record):
    with pytest.raises(ValueError, match=r"E041.*Record 2"):
        list(entities_from([APPLE, record]))


def test_a_knowledge_base_takes_records():
    kb = ArboKB(Vocab(), [{"id": "a", "title": "heart attack"}, Entity("b", "hat")])
    assert kb.add({"id": "c", "title": "heart failure"}) == 1
    assert kb.upsert([{"id": "c", "title": "cardiac failure"}, {"id": "d"}]) == 2
    assert kb["c"].title == "cardiac failure" and len(kb) == 4
    with pytest.raises(KeyError):
        kb["x"]
    with pytest.raises(ValueError, match="Record 2"):
        kb.add([{"id": "e"}, {"title": "no id"}])
    assert "e" not in kb


WHOLE = Entity("E1", "measles", "a fever", ["rubeola"], ["DISEASE"], 7.0, {"Country": "NO", "n": 1})


@pytest.fixture
def kb():
    return ArboKB(Vocab(), [WHOLE, Entity("E2", "gout")])


@pytest.mark.parametrize("edit", ["update", "upsert"])
@pytest.mark.parametrize(
    ("given", "changed"),
    [
        ({"aliases": ["morbilli"]}, {"aliases": ("morbilli",)}),
        ({"synonyms": "a|b", "name": "Measles"}, {"aliases": ("a", "b"), "title": "Measles"}),
        ({"frequency": 9, "description": None}, {"frequency": 9.0}),
        ({"description": "", "types": []}, {"description": "", "types": ()}),
        ({"Country": "SE"}, {"meta": {"Country": "SE", "n": 1}}),
        ({"meta": {"n": 2}}, {"meta": {"Country": "NO", "n": 2}}),
        ({}, {}),
    ],
)
def test_a_dict_changes_what_it_gives(kb, edit, given, changed):
    assert getattr(kb, edit)({"id": "E1", **given}) == 1
    fields = ("title", "description", "aliases", "types", "frequency", "meta")
    expected = {name: getattr(WHOLE, name) for name in fields} | changed
    assert {name: getattr(kb["E1"], name) for name in fields} == expected


def test_an_entity_replaces_the_whole(kb):
    kb.update(Entity("E1", "measles"))
    assert kb["E1"] == Entity("E1", "measles")


def test_changes_of_one_call_add_up(kb):
    kb.update([{"id": "E1", "frequency": 1}, {"id": "E1", "title": "Measles"}])
    assert (kb["E1"].frequency, kb["E1"].title) == (1.0, "Measles")
    kb.upsert([{"id": "E3", "title": "new"}, {"id": "E2", "aliases": ["podagra"]}])
    assert kb["E3"].title == "new" and kb["E2"].names == ["gout", "podagra"]


def test_an_id_that_was_merged_is_no_entity(kb):
    kb.merge("E2", "E1")
    with pytest.raises(KeyError):
        kb.update({"id": "E2", "title": "gout"})
    with pytest.raises(KeyError):
        kb.update({"id": "E9", "title": "gout"})


def test_a_name_makes_an_entity_named():
    kb = ArboKB(Vocab(), [Entity("E1", meta={"unnamed": True, "n": 1})])
    kb.update({"id": "E1", "title": "measles"})
    assert kb["E1"].names == ["measles"] and kb["E1"].meta == {"n": 1}
