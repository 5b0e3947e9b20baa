"""Readers of each format of entities, on small files and on real ones."""

import bz2
import gzip
import json

import pytest
from spacy.kb import InMemoryLookupKB
from spacy.vocab import Vocab

from spacy_arbo_el.contrib.formats.obo import OboReader
from spacy_arbo_el.contrib.formats.umls import UmlsReader
from spacy_arbo_el.contrib.formats.wikidata import WikidataReader
from spacy_arbo_el.kb import store
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.importers import (
    EntityJsonlReader,
    ImportReport,
    SpacyKBReader,
    TableReader,
)
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.kb.loaders import build, import_into
from spacy_arbo_el.kb.verification import verify
from spacy_arbo_el.storage.formats import entity_formats

OBO = r"""format-version: 1.2
default-namespace: plants ! a comment

[Term]
id: P:1
alt_id: P:01
name: common oak \{tree\}
namespace: trees
def: "A \"big\" tree: of the woods." [book:1, url:http\://x]
synonym: "Quercus robur" EXACT [a:b]
synonym: "tree" BROAD []
synonym: "common oak {tree}" EXACT []
xref: X:1 "a name"
is_a: P:3 ! tree
subset: native {source="me"}

[Typedef]
id: part_of

[Term]
id: P:2
name: old oak
is_obsolete: true
replaced_by: P:1

[Term]
id: P:3
name: tree

[Term]
id: P:4
"""


def test_lines_of_jsonl_become_entities(write):
    full = {
        "id": "Q7259",
        "title": "Ada Lovelace",
        "description": "Mathematician.",
        "aliases": ["Ada", "Countess of Lovelace"],
        "types": ["Person"],
        "born": 1815,
        "meta": {"source": "demo"},
    }
    first, second = EntityJsonlReader().read(write(json.dumps(full) + '\n\n{"id": "Q1"}\n'))
    assert first == Entity(
        id="Q7259",
        title="Ada Lovelace",
        description="Mathematician.",
        aliases=("Ada", "Countess of Lovelace"),
        types=("Person",),
        meta={"source": "demo", "born": 1815},
    )
    assert second == Entity("Q1")


def test_terms_that_were_replaced_again_lead_to_the_last_one(write, tmp_path):
    chain = {"X:1": "X:2", "X:2": "X:3", "X:3": "P:3", "X:5": "X:6", "X:6": "X:5", "X:7": "X:9"}
    terms = "".join(
        f"[Term]\nid: {old}\nname: {old}\nis_obsolete: true\nreplaced_by: {new}\n\n"
        for old, new in chain.items()
    )
    build(tmp_path / "kb", write(terms + "[Term]\nid: P:3\nname: tree\n", "x.obo"), "obo")
    kb = ArboKB.for_reading(tmp_path / "kb")
    assert kb.entities.redirects() == dict.fromkeys(("X:1", "X:2", "X:3"), "P:3")


def test_an_upsert_adds_each_id_once_in_whatever_batches(monkeypatch):
    entities = [Entity("a", "1"), Entity("b", "b"), Entity("a", "2"), Entity("a", "3")]
    for size in (1, 2, 2000):
        monkeypatch.setattr(store, "BATCH", size)
        kb = ArboKB(Vocab())
        with pytest.raises(ValueError, match="'a'"):
            kb.upsert(entities)
        assert not len(kb), "all or nothing"
        kb.add(Entity("a", "0"))
        kb.upsert(entities)
        assert {entity.id: entity.title for entity in kb} == {"a": "3", "b": "b"}


def test_obo_terms_become_entities(write):
    report = ImportReport()
    oak, tree = OboReader().read(write(OBO, "plants.obo"), report)
    assert oak == Entity(
        "P:1",
        "common oak {tree}",
        'A "big" tree: of the woods.',
        ("Quercus robur",),
        ("trees",),
        meta={
            "xrefs": ["X:1"],
            "parents": ["P:3"],
            "subsets": ["native"],
            "synonyms": [
                ["Quercus robur", "EXACT"],
                ["tree", "BROAD"],
                ["common oak {tree}", "EXACT"],
            ],
        },
    )
    assert tree == Entity("P:3", "tree", types=("plants",))
    assert report.skipped == {"obsolete": 1, "no name": 1}
    assert report.redirects == {"P:01": "P:1", "P:2": "P:1"}
    wide = list(OboReader(scopes=("EXACT", "BROAD")).read(write(OBO, "p.obo")))
    assert wide[0].aliases == ("Quercus robur", "tree")


def test_import_of_the_disease_ontology(data_dir, tmp_path):
    kb = ArboKB(Vocab())
    report = import_into(kb, data_dir / "obo" / "HumanDO.obo", "obo")
    assert report.skipped["obsolete"] == 2374 and len(kb) + sum(report.skipped.values()) == 8948
    assert kb.get("DOID:267").id == "DOID:0001816", "an alternative id leads to the term"
    assert "hemangiosarcoma" in kb.get("DOID:0001816").names
    assert kb.get("DOID:0001816").description.startswith("A malignant vascular tumor that")


UMLS = {
    "MRCONSO.RRF": """\
C01|ENG|P|L1|PF|S1|Y|A1||||MSH|MH|D1|Fever|0|N||
C01|ENG|S|L2|PF|S2|Y|A2||||MSH|ET|D1|Pyrexia|0|N||
C01|ENG|S|L2|PF|S2|Y|A2||||OLD|ET|D1|Fevers|0|O||
C01|GER|P|L3|PF|S3|Y|A3||||MSHGER|MH|D1|Fieber|0|N||
C02|GER|P|L4|PF|S4|Y|A4||||MSHGER|MH|D2|Husten|0|N||
C03|ENG|P|L5|PF|S5|Y|A5||||MSH|MH|D3|Gone|0|O||
C05|ENG|S|L6|VO|S6|N|A6||||SRC|MH|D5|colds|0|N||
C05|ENG|P|L6|PF|S7|Y|A7||||SRC|MH|D5|Cold|0|N||
""",
    "MRDEF.RRF": "C01|A1|AT1||MSH|A rise in temperature.|N||\nC04|A1|AT1||MSH|No names.|N||\n",
    "MRSTY.RRF": "C01|T184|A2|Sign or Symptom|AT1||\nC05|T047|B|Disease or Syndrome|AT2||\n",
}


@pytest.fixture
def umls(tmp_path):
    for name, text in UMLS.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_umls_concepts_become_entities(umls):
    report = ImportReport()
    fever, cold = UmlsReader().read(umls, report)
    meta = {"sources": ["MSH"]}
    assert fever == Entity(
        "C01", "Fever", "A rise in temperature.", ("Pyrexia",), ("T184",), meta=meta
    )
    assert cold == Entity("C05", "Cold", "", ("colds",), ("T047",), meta={"sources": ["SRC"]})
    assert report.skipped == {"no name in ENG": 1, "all names suppressed": 1}
    (fever, cough) = UmlsReader(languages=("GER",)).read(umls)
    assert (fever.title, cough.title) == ("Fieber", "Husten")
    (fever,) = UmlsReader(sources=("MSH",), type_names=True).read(umls)
    assert fever.types == ("Sign or Symptom",)
    (umls / "MRDEF.RRF").unlink()
    assert [entity.description for entity in UmlsReader().read(umls)] == ["", ""]


def test_invalid_or_unsorted_umls_lines_are_named(umls):
    lines = UMLS["MRCONSO.RRF"].splitlines(True)
    (umls / "MRCONSO.RRF").write_text("".join(lines[4:] + lines[:4]))
    with pytest.raises(ValueError, match="MRCONSO.RRF, line 5: C01 comes after C05. Sort"):
        list(UmlsReader().read(umls))
    (umls / "MRCONSO.RRF").write_text("C01|ENG|P\n")
    with pytest.raises(ValueError, match="line 1: expected 18 values"):
        list(UmlsReader().read(umls))


def item(id_, **parts):
    text = {"en": {"value": parts.pop("label", id_)}} if parts.get("label", True) else []
    claims = {
        "P31": [
            {"rank": rank, "mainsnak": {"datavalue": {"value": {"id": kind}}}}
            for kind, rank in parts.pop("kinds", [])
        ]
    }
    parts.pop("label", None)
    return json.dumps({"type": "item", "id": id_, "labels": text, "claims": claims, **parts})


WIKIDATA = [
    item(
        "Q1",
        label="Ada",
        descriptions={"en": {"value": "mathematician"}},
        aliases={"en": [{"value": "Ada L."}, {"value": "Ada"}], "de": [{"value": "nicht"}]},
        kinds=[("Q5", "normal"), ("Q6", "deprecated")],
        sitelinks={"enwiki": {}, "dewiki": {}},
    ),
    item("Q2", label="", aliases=[]),
    item("Q3", kinds=[("Q7", "preferred"), ("Q5", "normal")], descriptions=[], sitelinks=[]),
    json.dumps({"type": "property", "id": "P31"}),
]


@pytest.mark.parametrize("pack", ["json", "json.gz", "json.bz2"])
def test_wikidata_items_become_entities(tmp_path, pack):
    data = ("[\n" + ",\n".join(WIKIDATA) + "\n]\n").encode()
    data = {"json": bytes, "json.gz": gzip.compress, "json.bz2": bz2.compress}[pack](data)
    path = tmp_path / f"dump.{pack}"
    path.write_bytes(data)
    report = ImportReport()
    ada, other = WikidataReader().read(path, report)
    assert ada == Entity("Q1", "Ada", "mathematician", ("Ada L.",), ("Q5",), 2.0)
    assert other == Entity("Q3", "Q3", types=("Q7",))
    assert report.skipped == {"no label in en": 1, "a property, not an item": 1}
    assert [e.id for e in WikidataReader(types=("Q7",)).read(path)] == ["Q3"]


def test_types_of_wikidata_are_names_where_these_are_wanted(write):
    def subclass(id_, label, parent):
        claims = {"P279": [{"mainsnak": {"datavalue": {"value": {"id": parent}}}}]}
        return json.dumps({"id": id_, "labels": {"en": {"value": label}}, "claims": claims})

    lines = [*WIKIDATA[:1], subclass("Q5", "human", "Q9"), subclass("Q8", "poet", "Q5")]
    path = write("\n".join(lines), "dump.json")
    found = {entity.id: entity.types for entity in WikidataReader(type_names=True).read(path)}
    assert found == {"Q1": ("human",), "Q5": (), "Q8": ("human",)}
    (ada,) = WikidataReader(types=("Q5",), type_names=True).read(path)
    assert ada.types == ("human",)


NAMES_FOR_ALL = {
    "Q1": {"id": "Q1", "labels": {"mul": {"value": "Ada"}}, "aliases": {"mul": [{"value": "A."}]}},
    "Q2": {
        "id": "Q2",
        "labels": {"en": {"value": "Port Veil"}, "mul": {"value": "Veil"}},
        "aliases": {"en": [], "mul": [{"value": "PV"}]},
    },
    "Q3": {"id": "Q3", "missing": ""},
}


@pytest.mark.parametrize("indent", [None, 2])
def test_wikidata_names_for_all_languages_in_entity_data(write, indent):
    report = ImportReport()
    path = write(json.dumps({"entities": NAMES_FOR_ALL}, indent=indent), "Q1.json")
    ada, port = WikidataReader().read(path, report)
    assert (ada.title, ada.aliases) == ("Ada", ("A.",))
    assert (port.title, port.aliases) == ("Port Veil", ("Veil", "PV"))
    assert report.skipped == {"not in Wikidata": 1}


def test_rows_of_tables_become_entities(write):
    head = "Key,Name,Synonyms,Kind,n,extra\n"
    text = head + 'c1,"Acme, Inc.",Acme|The Acme ,COMPANY,3,x\n\nc2,Apex,,,,\n'
    columns = {"id": "Key", "title": "Name", "aliases": "Synonyms", "types": "Kind"}
    first, second = TableReader(columns={**columns, "frequency": "n"}).read(write(text, "c.csv"))
    assert first == Entity(
        "c1", "Acme, Inc.", "", ("Acme", "The Acme"), ("COMPANY",), 3.0, {"extra": "x"}
    )
    assert second == Entity("c2", "Apex")
    plain = "id\ttitle\taliases\na\tA\tx;y\n"
    (only,) = TableReader(separator=";").read(write(plain, "c.tsv"))
    assert only == Entity("a", "A", aliases=("x", "y"))


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


FIRST = '{"id": "Q1"}\n\n'
ITEM = f"{WIKIDATA[0]},\n"
INVALID = {
    "obo": [
        ("[Term]\nname: x\n", "line 1: a [Term] needs an 'id'"),
        ("[Term]\nid: a\nname: x\n[Term]\nid: a\nname: y\n", "line 4: the entity id 'a' was used"),
        ("[Term\n", r"line 1: a stanza begins with [Name]"),
        ("[Term]\nid: a\nnonsense\n", "line 3: expected 'tag: value'"),
    ],
    "wikidata": [
        *((f"{ITEM}{line}\n", "line 2: no ") for line in ("{", "[1]", '"x"')),
        (ITEM + '{"id": "Q5", "labels": {"en": 3}}', "line 2: no Wikidata item"),
    ],
    "table": [
        ("", "line 1: the file is empty"),
        ("name\nx\n", "line 1: there is no column 'id'. Columns: name."),
        ("id,title\na\n", "line 2: expected 2 columns as in the first line, got 1"),
        (
            'id,description\na,A\na,"B\n\nC"\n',
            "line 3: the entity id 'a' was used before, in line 2",
        ),
        ('id,title\na,"A\n', "no valid table"),
        ("id,frequency\na,many\n", "line 2: 'frequency' must be a number from 0 up (got 'many')"),
        ("id,frequency\na,-1\n", "line 2: 'frequency' must be a number from 0 up (got '-1')"),
        ("id,title\n,A\n", "line 2: Entity 'A' has no usable id (got '')"),
    ],
    "jsonl": [
        (FIRST + line, f"line 3: {problem}")
        for line, problem in (
            ("{", "JSON over several lines"),
            ("[]", "expected a JSON object, got a list"),
            ("{}", "Entity '' has no usable id (got None)"),
            ('{"id": 7.5}', "Entity '' has no usable id (got 7.5)"),
            ('{"id": " "}', "Entity '' has no usable id (got ' ')"),
            ('{"id": "NIL"}', "Entity '' has no usable id (got 'NIL')"),
            ('{"id": "A|B"}', "The entity id 'A|B' contains '|'"),
            ('{"id": "\\ud83d"}', "Entity '\\ud83d' has the text '\\ud83d', which is no string"),
            ('{"id": "Q2", "title": "\\ud83d"}', "Entity 'Q2' has the text '\\ud83d'"),
            ('{"id": "Q2", "description": 3}', "Entity 'Q2' has the text 3, which is no string"),
            ('{"id": "Q2", "aliases": ["Ada", 1]}', "Entity 'Q2' has the text 1"),
            ('{"id": "Q2", "types": {}}', "The types of entity 'Q2' must be a list of strings"),
            ('{"id": "Q2", "meta": []}', "The field meta of entity 'Q2' can't be written as JSON"),
            ('{"id": "Q1"}', "the entity id 'Q1' was used before, in line 1"),
        )
    ],
}


@pytest.mark.parametrize("format", INVALID)
def test_invalid_lines_are_named(write, format):
    for text, problem in INVALID[format]:
        path = write(text, f"kb.{format}")
        with pytest.raises(ValueError) as error:
            list(entity_formats.get(format)().read(path))
        assert f"{path}, line " in str(error.value) and problem in str(error.value)
    with pytest.raises(ValueError, match="line 2: no Wikidata item"):
        list(WikidataReader(type_names=True).read(write(ITEM + "[1]", "dump.json")))
    with pytest.raises(ValueError, match="no field 'nam'"):
        list(TableReader(columns={"nam": "id"}).read(write("id\n", "d.csv")))


def test_a_build_that_fails_leaves_the_old_folder(write, tmp_path):
    lines = [json.dumps({"id": f"e{i % 4}"}) for i in range(5)]
    source = write("\n".join(lines[:4]), "kb.jsonl")
    assert not build(tmp_path / "kb", source).skipped
    source = write("\n".join(lines), "kb.jsonl")
    with pytest.raises(ValueError, match="'e0' occurs twice in .*kb.jsonl, lines 1 and 5"):
        build(tmp_path / "kb", source, overwrite=True)
    kb = ArboKB.for_reading(tmp_path / "kb")
    assert len(kb) == 4
    assert verify(tmp_path / "kb") == []
    with pytest.raises(ValueError, match="no format 'zip' of knowledge bases.*wikidata"):
        build(tmp_path / "kb", source, "zip", overwrite=True)
