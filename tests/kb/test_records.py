"""Entities from dicts, data frames and files."""

import csv
import dataclasses
import json
import math
import sys

import pytest
from spacy.kb import InMemoryLookupKB
from spacy.vocab import Vocab

from spacy_arbo_el import ArboKB, Entity
from spacy_arbo_el.contrib.formats.skos import SkosReader
from spacy_arbo_el.kb.importers import ImportReport, TableReader, entities_of
from spacy_arbo_el.kb.importers.common import entities_from
from spacy_arbo_el.kb.loaders import build, import_into, load_kb
from spacy_arbo_el.kb.vector_cache import VectorCache
from spacy_arbo_el.kb.verification import verify

from ..cases import cases
from ..expecting import raises, warns
from .encoding import kb_of, sync

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
    assert list(entities_from(record)) == [APPLE]
    assert list(entities_from([record])) == [APPLE]


def test_missing_values_count_as_left_out():
    record = {"id": "a", "title": None, "description": math.nan, "types": None, "frequency": None}
    assert list(entities_from({**record, "aliases": ["A", None, math.nan]})) == [
        Entity("a", aliases=("A",))
    ]


def test_other_keys_go_to_meta_and_numbers_as_ids_become_strings():
    (entity,) = entities_from({"id": 9606, "title": "human", "rank": "species"})
    assert entity.id == "9606"
    assert entity.meta == {"rank": "species"}


@pytest.mark.parametrize("record, fields", cases("usual_keys"))
def test_usual_keys_are_those_of_fields(recwarn, record, fields):
    assert list(entities_from(record)) == [Entity(**fields)]
    assert not recwarn


def test_records_without_a_name_are_counted_in_one_warning():
    records = [{"id": "a", "Bezeichnung": "A"}, {"id": "b", "title": "B", "x": 1}, {"id": "c"}]
    with warns("W102.*1 of 3 entities .* keys 'Bezeichnung' were") as caught:
        assert list(entities_from(records))[0] == Entity("a", meta={"Bezeichnung": "A"})
    assert len(caught) == 1


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


@pytest.mark.parametrize("record", cases("no_entities"))
def test_what_is_no_entity_is_an_error_with_its_number(record):
    with raises(r"E041.*Record 2"):
        list(entities_from([APPLE, record]))


def test_blank_names_count_as_left_out():
    assert Entity("a", "x", "", [" ", "y", "\u3000"], ["\t", "T"]).names == ["x", "y"]
    assert Entity("a", " ", types=["\t", "T"]) == Entity("a", types=["T"])


def test_a_knowledge_base_takes_records():
    kb = kb_of({"id": "a", "title": "heart attack"}, Entity("b", "hat"))
    assert kb.add({"id": "c", "title": "heart failure"}) == 1
    assert kb.upsert([{"id": "c", "title": "cardiac failure"}, {"id": "d"}]) == 2
    assert kb["c"].title == "cardiac failure"
    assert len(kb) == 4
    with pytest.raises(KeyError):
        kb["x"]
    with raises("Record 2"):
        kb.add([{"id": "e"}, {"title": "no id"}])
    assert "e" not in kb


WHOLE = Entity("E1", "measles", "a fever", ["rubeola"], ["DISEASE"], 7.0, {"Country": "NO", "n": 1})


@pytest.fixture
def kb():
    return kb_of(WHOLE, Entity("E2", "gout"))


@pytest.mark.parametrize("edit", ["update", "upsert"])
@pytest.mark.parametrize("fields_given, changed", cases("changed_fields"))
def test_a_dict_changes_what_it_gives(kb, edit, fields_given, changed):
    assert getattr(kb, edit)({"id": "E1", **fields_given}) == 1
    assert kb["E1"] == dataclasses.replace(WHOLE, **changed)


def test_changes_of_one_call_add_up(kb):
    kb.update([{"id": "E1", "frequency": 1}, {"id": "E1", "title": "Measles"}])
    assert (kb["E1"].frequency, kb["E1"].title) == (1.0, "Measles")
    kb.upsert([{"id": "E3", "title": "new"}, {"id": "E2", "aliases": ["podagra"]}])
    assert kb["E3"].title == "new"
    assert kb["E2"].names == ["gout", "podagra"]


def test_an_id_that_was_merged_is_no_entity(kb):
    kb.merge("E2", "E1")
    with pytest.raises(KeyError):
        kb.update({"id": "E2", "title": "gout"})
    with pytest.raises(KeyError):
        kb.update({"id": "E9", "title": "gout"})


def test_a_name_makes_an_entity_named():
    kb = kb_of(Entity("E1", meta={"unnamed": True, "n": 1}))
    kb.update({"id": "E1", "title": "measles"})
    assert kb["E1"].names == ["measles"]
    assert kb["E1"].meta == {"n": 1}


def test_terms_that_were_replaced_again_lead_to_the_last_one(write, tmp_path):
    chain = {"X:1": "X:2", "X:2": "X:3", "X:3": "P:3", "X:5": "X:6", "X:6": "X:5", "X:7": "X:9"}
    terms = "".join(
        f"[Term]\nid: {old}\nname: {old}\nis_obsolete: true\nreplaced_by: {new}\n\n"
        for old, new in chain.items()
    )
    build(tmp_path / "kb", write(terms + "[Term]\nid: P:3\nname: tree\n", "x.obo"), "obo")
    kb = ArboKB.for_reading(tmp_path / "kb")
    assert kb.entities.redirects() == dict.fromkeys(("X:1", "X:2", "X:3"), "P:3")


def test_entities_of_spacys_knowledge_base():
    kb = InMemoryLookupKB(Vocab(), entity_vector_length=2)
    kb.add_entity("Q1", 7, [0.0, 1.0])
    kb.add_entity("Q2", 3, [1.0, 1.0])
    kb.add_alias("Douglas", ["Q1", "Q2"], [0.25, 0.5])
    kb.add_alias("DA", ["Q1"], [0.9])
    assert sorted(entities_of(kb), key=lambda entity: entity.id) == [
        Entity("Q1", "DA", aliases=("Douglas",), frequency=0.25, meta={"count": 7}),
        Entity("Q2", "Douglas", frequency=0.5, meta={"count": 3}),
    ]


def test_a_build_that_fails_leaves_the_old_folder(write, tmp_path):
    lines = [json.dumps({"id": f"e{i % 4}"}) for i in range(5)]
    source = write("\n".join(lines[:4]), "kb.jsonl")
    assert not build(tmp_path / "kb", source).skipped
    source = write("\n".join(lines), "kb.jsonl")
    with raises("'e0' occurs twice"):
        build(tmp_path / "kb", source, overwrite=True)
    kb = ArboKB.for_reading(tmp_path / "kb")
    assert len(kb) == 4
    assert verify(tmp_path / "kb") == []
    with raises("no format 'zip' here.*wikidata.*@entity_formats"):
        build(tmp_path / "kb", source, "zip", overwrite=True)


@pytest.fixture
def encoded_anew(tmp_path, write):
    """Replaces a knowledge base by one of entities with titles; returns how many it encoded."""

    def replace(titles):
        numbers = []
        lines = (json.dumps({"id": title, "title": title}) for title in titles)
        build(
            tmp_path / "kb",
            write("\n".join(lines), "kb.jsonl"),
            overwrite=True,
            finish=lambda kb: numbers.append(sync(kb)),
        )
        return numbers

    return replace


def test_a_build_that_replaces_encodes_only_what_is_new(encoded_anew, tmp_path):
    assert encoded_anew("ab") == [2]
    assert encoded_anew("bcd") == [2]
    assert verify(tmp_path / "kb") == []


def test_a_build_that_replaces_damaged_vectors_encodes_these_again(
    encoded_anew, tmp_path, monkeypatch
):
    # As of a file that is too large to be compared with its checksum when it is opened.
    monkeypatch.setattr(VectorCache.__init__, "__defaults__", (None, 0))
    assert [encoded_anew(titles) for titles in ("a", "ab", "ab")] == [[1], [1], [0]]
    vectors = next((tmp_path / "kb").glob("vectors-*.bin"))
    intact = vectors.read_bytes()
    vectors.write_bytes(intact[:-1] + bytes([intact[-1] ^ 1]))
    assert encoded_anew("ab") == [1]


def test_files_of_vectors_of_a_folder_that_is_replaced_each_night_do_not_grow(
    encoded_anew, tmp_path
):
    sizes = []
    for night in range(8):
        titles = ["a", "b", *(f"{night} {number}" for number in range(20))]
        assert encoded_anew(titles) == [20 if night else 22]
        sizes.append(len(next((tmp_path / "kb").glob("vectors-*.keys")).read_bytes()))
    assert max(sizes[4:]) <= max(sizes[:4])


ROWS = {
    "b.tsv": '#curie_map:\n#  A: "x\nid\ttitle\nA:1\tfever\n',
    "a.csv": '\n# my "list\n\nid,title\nA:1,fever\n',
    "a.tsv": "# of a database\n#id\ttitle\nA:1\tfever\n",
    "a.txt": "# with ids\nA:1||fever\n",
    "b.csv": '"# a list, mine"\n# by a spreadsheet,\n# in, words\nid,title\nA:1,fever\n# end\n',
    "c.csv": "# id, title\nA:1, fever\n",
}


@pytest.mark.parametrize("name", ROWS)
def test_comments_and_empty_lines_of_a_table_are_left_out(write, tmp_path, name):
    build(tmp_path / "kb", write(ROWS[name], name))
    assert list(ArboKB.for_reading(tmp_path / "kb")) == [Entity("A:1", "fever")]


def test_rows_whose_ids_begin_like_comments_are_read(write):
    reader = TableReader(header=("id", "title"))
    entities = list(reader.read(write("# mine\n#1,fever\n2,gout\n", "kb.csv"), ImportReport()))
    assert entities == [Entity("#1", "fever"), Entity("2", "gout")]


@pytest.mark.parametrize("name, indent", [("kb.json", None), ("kb.json", 1), ("kb.jsonl", None)])
@pytest.mark.parametrize("records", [[{"title": "fever"}, {"title": "gout"}], ["fever", ["gout"]]])
def test_an_object_for_each_id_is_a_list(write, tmp_path, name, indent, records):
    records = dict(zip(["D1", "D2"], records))
    build(tmp_path / "kb", write(json.dumps(records, indent=indent), name))
    expected = [Entity("D1", "fever"), Entity("D2", "gout")]
    assert list(ArboKB.for_reading(tmp_path / "kb")) == expected
    assert list(load_kb(records, Vocab())) == expected


def test_a_quote_behind_many_rows_is_text(write):
    rows = "x\tX\n" * 2000 + 'a\t"quoted" word\nb\t"open\n'
    entities = TableReader().read(write(f"id\ttitle\n{rows}", "omop.csv"), ImportReport())
    names = {entity.id: (entity.title, *entity.aliases) for entity in entities}
    assert names == {"x": ("X",), "a": ('"quoted" word',), "b": ('"open',)}


def test_set_kb_says_what_it_left_out_and_no_entity_is_an_error(write):
    obo = "[Term]\nid: a\nname: A\n[Term]\nid: b\nname: B\nis_obsolete: true\nreplaced_by: a\n"
    with warns("W106.* 1 entries .*: 1 obsolete"):
        kb = load_kb(write(obo, "kb.obo"), Vocab())
    assert [entity.id for entity in kb] == ["a"]
    assert kb["b"].id == "a"
    path = write(obo.replace("id: a\nname: A", "id: a"), "kb.obo")
    with raises(r"E047.*has no entity \(1 .*, 1"):
        load_kb(path, Vocab())
    with raises("E047"):
        build(path.with_name("kb"), path)
    assert not path.with_name("kb").exists()


def test_encodings_and_options_that_a_reader_does_not_have(write):
    path = write("id,title\n", "t.csv")
    with raises("E108.*no encoding 'cp12520'"):
        list(TableReader(encoding="cp12520").read(path, ImportReport()))
    with raises("t.csv, line 1: the file isn't utf-16 behind this line"):
        path = write(b"\xff\xfei\0d\0\n\0\0", "t.csv")
        list(TableReader(encoding="utf-16").read(path, ImportReport()))
    for options in ({"skip_bad": True}, {"encoding": "cp1252"}):
        with raises(f"E043.*'umls' has no option '{[*options][0]}'"):
            import_into(ArboKB(Vocab()), path, "umls", **options)
    lines = write('{"id": "a"}\n{"id": \n{"id": "a"}\n{"id": "b"}\n', "kb.jsonl")
    with ArboKB.create(lines.parent / "kb") as kb:
        report = import_into(kb, lines, skip_bad=True)
        assert (report.count, report.skipped, len(kb)) == (2, {"invalid": 2}, 2)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name, text", cases("utf_16"))
def test_utf_16_is_read_by_its_mark(write, encoding, name, text):
    mark = "" if encoding == "utf-16" else "\ufeff"
    kb = load_kb(write((mark + text).encode(encoding), name), Vocab())
    assert list(kb) == [Entity("a", "Ålder")]


def test_skos_without_rdflib(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "rdflib", None)
    with raises("E107.*pip install rdflib"):
        list(SkosReader().read(write("", "kb.ttl"), ImportReport()))
