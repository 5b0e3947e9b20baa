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
