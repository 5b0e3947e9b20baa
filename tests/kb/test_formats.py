"""Readers of each format of entities, on small files and on real ones."""

import json
import sys

import pytest
from spacy.kb import InMemoryLookupKB
from spacy.vocab import Vocab

from spacy_arbo_el.contrib.formats.skos import SkosReader
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.importers import SpacyKBReader, TableReader
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.kb.loaders import build, import_into, load_kb
from spacy_arbo_el.kb.verification import verify

from ..cases import cases


def test_terms_that_were_replaced_again_lead_to_the_last_one(write, tmp_path):
    chain = {"X:1": "X:2", "X:2": "X:3", "X:3": "P:3", "X:5": "X:6", "X:6": "X:5", "X:7": "X:9"}
    terms = "".join(
        f"[Term]\nid: {old}\nname: {old}\nis_obsolete: true\nreplaced_by: {new}\n\n"
        for old, new in chain.items()
    )
    build(tmp_path / "kb", write(terms + "[Term]\nid: P:3\nname: tree\n", "x.obo"), "obo")
    kb = ArboKB.for_reading(tmp_path / "kb")
    assert kb.entities.redirects() == dict.fromkeys(("X:1", "X:2", "X:3"), "P:3")


def test_import_of_the_disease_ontology(data_dir, tmp_path):
    kb = ArboKB(Vocab())
    report = import_into(kb, data_dir / "obo" / "HumanDO.obo", "obo")
    assert report.skipped["obsolete"] == 2374 and len(kb) + sum(report.skipped.values()) == 8948
    assert kb.get("DOID:267").id == "DOID:0001816", "an alternative id leads to the term"
    assert "hemangiosarcoma" in kb.get("DOID:0001816").names
    assert kb.get("DOID:0001816").description.startswith("A malignant vascular tumor that")


def test_entities_of_spacys_knowledge_base(tmp_path):
    kb = InMemoryLookupKB(Vocab(), entity_vector_length=2)
    kb.add_entity("Q1", 7, [0.0, 1.0])
    kb.add_entity("Q2", 3, [1.0, 1.0])
    kb.add_alias("Douglas", ["Q1", "Q2"], [0.25, 0.5])
    kb.add_alias("DA", ["Q1"], [0.9])
    kb.to_disk(tmp_path / "kb")
    entities = sorted(SpacyKBReader().read(tmp_path / "kb"), key=lambda entity: entity.id)
    assert entities == [
        Entity("Q1", "DA", aliases=("Douglas",), frequency=0.25, meta={"count": 7}),
        Entity("Q2", "Douglas", frequency=0.5, meta={"count": 3}),
    ]
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="contents.*missing"):
        list(SpacyKBReader().read(tmp_path / "empty"))


def test_a_build_that_fails_leaves_the_old_folder(write, tmp_path):
    lines = [json.dumps({"id": f"e{i % 4}"}) for i in range(5)]
    source = write("\n".join(lines[:4]), "kb.jsonl")
    assert not build(tmp_path / "kb", source).skipped
    source = write("\n".join(lines), "kb.jsonl")
    with pytest.raises(ValueError, match="'e0' occurs twice"):
        build(tmp_path / "kb", source, overwrite=True)
    kb = ArboKB.for_reading(tmp_path / "kb")
    assert len(kb) == 4
    assert verify(tmp_path / "kb") == []
    with pytest.raises(ValueError, match="no format 'zip' here.*wikidata.*@entity_formats"):
        build(tmp_path / "kb", source, "zip", overwrite=True)


def test_a_quote_behind_many_rows_is_text(write):
    rows = "x\tX\n" * 2000 + 'a\t"quoted" word\nb\t"open\n'
    entities = TableReader().read(write(f"id\ttitle\n{rows}", "omop.csv"))
    names = {one.id: (one.title, *one.aliases) for one in entities}
    assert names == {"x": ("X",), "a": ('"quoted" word',), "b": ('"open',)}


def test_set_kb_says_what_it_left_out_and_no_entity_is_an_error(write):
    obo = "[Term]\nid: a\nname: A\n[Term]\nid: b\nname: B\nis_obsolete: true\nreplaced_by: a\n"
    with pytest.warns(UserWarning, match="W106.* 1 entries .*: 1 obsolete"):
        kb = load_kb(write(obo, "kb.obo"), Vocab())
    assert [one.id for one in kb] == ["a"] and kb["b"].id == "a"
    path = write(obo.replace("id: a\nname: A", "id: a"), "kb.obo")
    with pytest.raises(ValueError, match=r"E047.*has no entity \(1 .*, 1"):
        load_kb(path, Vocab())
    with pytest.raises(ValueError, match="E047"):
        build(path.with_name("kb"), path)
    assert not path.with_name("kb").exists()


def test_encodings_and_options_that_a_reader_does_not_have(write):
    path = write("id,title\n", "t.csv")
    with pytest.raises(ValueError, match="E108.*no encoding 'cp12520'"):
        list(TableReader(encoding="cp12520").read(path))
    with pytest.raises(ValueError, match="t.csv, line 1: the file isn't utf-16 behind this line"):
        list(TableReader(encoding="utf-16").read(write(b"\xff\xfei\0d\0\n\0\0", "t.csv")))
    for options in ({"skip_bad": True}, {"encoding": "cp1252"}):
        with pytest.raises(ValueError, match=f"E043.*'umls' has no option '{[*options][0]}'"):
            import_into(ArboKB(Vocab()), path, "umls", **options)
    lines = write('{"id": "a"}\n{"id": \n{"id": "a"}\n{"id": "b"}\n', "kb.jsonl")
    with ArboKB.create(lines.parent / "kb") as kb:
        report = import_into(kb, lines, skip_bad=True)
        assert (report.count, report.skipped, len(kb)) == (2, {"invalid": 2}, 2)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(("name", "text"), cases("utf_16"))
def test_utf_16_is_read_by_its_mark(write, encoding, name, text):
    mark = "" if encoding == "utf-16" else "\ufeff"
    kb = load_kb(write((mark + text).encode(encoding), name), Vocab())
    assert list(kb) == [Entity("a", "Ålder")]


def test_skos_without_rdflib(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "rdflib", None)
    with pytest.raises(ValueError, match="E107.*pip install rdflib"):
        list(SkosReader().read(write("", "kb.ttl")))
