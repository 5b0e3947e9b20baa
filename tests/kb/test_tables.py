"""Tables and dictionaries as people have them, whatever they are called."""

import gzip
import json

import pytest
from spacy.vocab import Vocab

from spacy_arbo_el.contrib.formats.obo import OboReader
from spacy_arbo_el.contrib.formats.skos import SkosReader
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.importers import ImportReport, TableReader
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.kb.loaders import build, import_into, load_kb


def names_of(entities):
    return {one.id: (one.title, *one.aliases) for one in entities}


TITLE = {"title": "title, short"}
UTF_16 = {"encoding": "utf-16"}


@pytest.mark.parametrize(
    ("name", "text", "settings"),
    [
        ("cdb.csv", "cui,name,source\na,Alpha,S\nb,Beta,S\na,AL,S\n", {}),
        ("dictionary.txt", "a||Alpha\na||AL\nb||Beta\n", {}),
        ("excel.csv", "ID;Title;Aliases\na;Alpha;AL\nb;Beta;\n", {}),
        ("named.tsv", "Concept_ID\tName\tSynonyms\na\tAlpha\tAL\nb\tBeta\t\n", {}),
        ("plain.txt", "a\tAlpha\tAL\nb\tBeta\t\n", {"header": ("id", "name", "synonyms")}),
        ("other.dat", "id#title#aliases\na#Alpha#AL\nb#Beta#\n", {"delimiter": "#"}),
        ("sep.csv", "sep=;\nid;title, short;aliases\na;Alpha;AL\nb;Beta;\n", {"columns": TITLE}),
        ("commas.csv", "id;title, short;aliases\na;Alpha;AL\nb;Beta;\n", {"columns": TITLE}),
        ("unicode.txt", "id\ttitle\taliases\r\na\tAlpha\tAL\r\nb\tBeta\t\r\n", UTF_16),
        ("packed.csv.gz", "id,title,aliases\na,Alpha,AL\nb,Beta,\n", {}),
    ],
)
def test_shapes_of_tables(write, name, text, settings):
    data = text.encode(settings.get("encoding", "utf8"))
    path = write(gzip.compress(data) if name.endswith(".gz") else data, name)
    assert names_of(TableReader(**settings).read(path)) == {"a": ("Alpha", "AL"), "b": ("Beta",)}


def test_quotes_that_are_text(write):
    lone = write('id\ttitle\na\t6" nail\nb\t"quoted" word\n', "omop.csv")
    assert names_of(TableReader().read(lone)) == {"a": ('6" nail',), "b": ('"quoted" word',)}
    late = write("id\ttitle\n" + "x\tX\n" * 2000 + 'a\t"quoted" word\nb\t"open\n', "omop.csv")
    assert names_of(TableReader().read(late)) == {
        "x": ("X",),
        "a": ('"quoted" word',),
        "b": ('"open',),
    }
    enclosing = write('id\ttitle\na\t"two\tcells"\n', "excel.tsv")
    assert names_of(TableReader().read(enclosing)) == {"a": ("two\tcells",)}


def test_quotes_are_read_cell_by_cell(write):
    rows = [
        'HGNC:1\tZELB5\t"ZB5|KZ55"\t"zelbin five|zelb5 protein"',
        'HGNC:2\t"hook" kinase 1\t"MZ1|MZA"\t',
        'HGNC:3\t"open\tX3\t"say ""z"" twice"',
        'HGNC:4\tx4"\t"two\nlines, ""one""\tcell"\t',
        'HGNC:5\tx5\t\t"left open',
        "HGNC:6\tx6\t\t",
    ]
    text = "id\ttitle\taliases\tother\n" + "\n".join(rows) + "\n"
    found = {one.id: one for one in TableReader().read(write(text, "genes.tsv"))}
    assert names_of(found.values()) == {
        "HGNC:1": ("ZELB5", "ZB5", "KZ55"),
        "HGNC:2": ('"hook" kinase 1', "MZ1", "MZA"),
        "HGNC:3": ('"open', "X3"),
        "HGNC:4": ('x4"', 'two\nlines, "one"\tcell'),
        "HGNC:5": ("x5",),
        "HGNC:6": ("x6",),
    }
    assert [found[f"HGNC:{n}"].meta.get("other") for n in (1, 3, 5)] == [
        "zelbin five|zelb5 protein", 'say "z" twice', '"left open'
    ]  # fmt: skip


def test_several_columns_of_a_field_are_joined(write):
    text = "lei,legal_name,other_1,other_2\nL1,Velmar AG,Velmar Alt,VA|VB\nL2,Tarn,,\n"
    path, columns = write(text, "t.csv"), {"id": "lei", "title": "legal_name"}
    both = {**columns, "aliases": ["other_1", "other_2"]}
    joined = {"L1": ("Velmar AG", "Velmar Alt", "VA", "VB"), "L2": ("Tarn",)}
    assert names_of(TableReader(columns=both).read(path)) == joined
    titles = {**columns, "title": ["legal_name", "other_1"]}
    assert names_of(TableReader(columns=titles).read(path))["L1"] == ("Velmar AG", "Velmar Alt")
    with pytest.raises(ValueError, match="line 1: 'id' is one column"):
        list(TableReader(columns={"id": ["lei", "other_1"]}).read(path))
    for header in ("id,title,name,prefLabel", "id,name,title,title", "id,title,aliases,synonyms"):
        text = f"{header}\na,A,B,C\nb,,B,\n"
        names = {one.id: set(one.names) for one in TableReader().read(write(text, "t.csv"))}
        assert names["a"] == {"A", "B", "C"} and "B" in names["b"]


def test_rows_are_filtered(write):
    text = "id,name,active,lang\na,A,1,en\na,Old,0,en\na,Ä,1,de\nb,B,1,fr\nc,C,0,en\n"
    path, report = write(text, "t.csv"), ImportReport()
    found = TableReader(where={"active": "1", "lang": ["en", "de"]}).read(path, report)
    assert names_of(found) == {"a": ("A", "Ä")}
    assert report.skipped == {"another value in 'active'": 2, "another value in 'lang'": 1}
    with pytest.raises(ValueError, match="line 1: there is no column 'x'"):
        list(TableReader(where={"x": "1"}).read(path))


def test_an_annotated_corpus_is_no_dictionary(write):
    corpus = "id,text,mention,label,kb_id\n1,He had blue fever.,blue fever,DISEASE,D1\n"
    with pytest.raises(ValueError, match="t.csv, line 1: .*'mention' .*arbo convert"):
        list(TableReader().read(write(corpus, "t.csv")))
    task = {"text": "He had blue fever.", "spans": [{"start": 7, "end": 17, "label": "DIS"}]}
    with pytest.raises(ValueError, match="kb.jsonl, line 1: .*'spans' .*arbo convert"):
        load_kb(write(json.dumps(task) + "\n", "kb.jsonl"), Vocab())


def test_patterns_of_a_ruler_are_names_of_their_type(write):
    lines = [
        {"id": "D1", "label": "DISEASE", "pattern": "blue fever"},
        {"id": "D2", "label": "DISEASE", "pattern": [{"LOWER": "marsh"}, {"LOWER": "cough"}]},
    ]
    path = write("\n".join(map(json.dumps, lines)), "kb.jsonl")
    entities = list(load_kb(path, Vocab()))
    assert names_of(entities) == {"D1": ("blue fever",), "D2": ("marsh cough",)}
    assert {one.types for one in entities} == {("DISEASE",)}
    lines[1]["pattern"][0] = {"POS": "NOUN"}
    with pytest.raises(ValueError, match="line 2: .*is no name"):
        load_kb(write("\n".join(map(json.dumps, lines)), "kb.jsonl"), Vocab())


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


def test_further_ids_of_a_dictionary_lead_to_the_first(write):
    kb = ArboKB(Vocab())
    import_into(kb, write("a|x||Alpha\na||AL\nb|x|y||Beta\n", "dictionary.txt"))
    assert names_of(kb) == {"a": ("Alpha", "AL"), "b": ("Beta",)}
    assert (kb["x"].id, kb["y"].id) == ("a", "b")


def test_rows_of_an_entity_are_joined(write):
    text = "id,name,type,definition,x\na,A,T,,1\nb,B,T,,2\na,B,U,about,3\na,A,T,about,4\n"
    b, a = TableReader().read(write(text, "t.csv"))
    assert a == Entity("a", "A", "about", ("B",), ("T", "U"), meta={"x": "1"})
    assert b == Entity("b", "B", types=("T",), meta={"x": "2"})


def test_other_encodings_and_invalid_lines(write):
    text = "id,title\na,Müller\nb\nNIL,x\nc,Ça\n"
    path, report = write(text.encode("cp1252"), "t.csv"), ImportReport()
    found = names_of(TableReader(encoding="cp1252", skip_bad=True).read(path, report))
    assert found == {"a": ("Müller",), "c": ("Ça",)}
    assert report.skipped == {"invalid": 2}
    assert [f"line {number}" in place for number, place in zip((3, 4), report.places)] == [True] * 2
    with pytest.raises(ValueError, match="line 2: the file isn't UTF-8 here"):
        list(TableReader().read(path))
    report = ImportReport()
    assert names_of(TableReader(skip_bad=True).read(path, report)) == {}
    assert ", line 2: the file isn't UTF-8" in report.places[0] and "line 3" in report.places[1]
    with pytest.raises(ValueError, match="E108.*no encoding 'cp12520'"):
        list(TableReader(encoding="cp12520").read(path))
    with pytest.raises(ValueError, match="t.csv, line 1: the file isn't utf-16 behind this line"):
        list(TableReader(encoding="utf-16").read(write(b"\xff\xfei\0d\0\n\0\0", "t.csv")))
    lines = write('{"id": "a"}\n{"id": \n{"id": "a"}\n{"id": "b"}\n', "kb.jsonl")
    with ArboKB.create(lines.parent / "kb") as kb:
        report = import_into(kb, lines, skip_bad=True)
        assert (report.count, report.skipped, len(kb)) == (2, {"invalid": 2}, 2)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("kb.csv", "id,title\na,Alpha\n"),
        ("kb.tsv", "id\ttitle\na\tAlpha\n"),
        ("kb.json", json.dumps([{"id": "a", "name": "Alpha"}], indent=1)),
        ("kb.jsonl.gz", '{"id": "a", "title": "Alpha", "aliases": null}\n'),
        ("lines.json", '{"id": "a", "title": "Alpha"}\n'),
        ("lines.txt", '\ufeff{"id": "a", "title": "Alpha"}\n'),
        ("data.json", '{"entities": {"a": {"id": "a", "labels": {"en": {"value": "Alpha"}}}}}'),
        ("kb.obo", "[Term]\nid: a\nname: Alpha\n"),
    ],
)
def test_the_name_of_a_file_says_its_format(write, name, text):
    path = write(gzip.compress(text.encode()) if name.endswith(".gz") else text, name)
    assert names_of(load_kb(path, Vocab())) == {"a": ("Alpha",)}


def test_a_damaged_file_and_other_json(write):
    packed = gzip.compress(b"".join(b'{"id": "%d"}\n' % number for number in range(50)))
    with pytest.raises(ValueError, match=r"kb.jsonl.gz, line \d+: the compressed file is damaged"):
        load_kb(write(packed[:-12], "kb.jsonl.gz"), Vocab())
    with pytest.raises(ValueError, match="a list of objects.*--format wikidata"):
        load_kb(write("[1]", "kb.json"), Vocab())
    with pytest.raises(ValueError, match="kb.json, line 1: no valid JSON"):
        load_kb(write("[", "kb.json"), Vocab())


def test_escapes_and_quotes_in_obo(write):
    text = (
        "[Term]\nid: a\nname: A\n"
        'def: "A mass of \\"salt\\".\\nNew line" [x:"y"]\n'
        'synonym: "3,3\',3"-acid" EXACT IUPAC [I:]\nsynonym: "second" EXACT []\n'
    )
    (term,) = OboReader().read(write(text, "t.obo"))
    assert term.description == 'A mass of "salt".\nNew line'
    assert term.aliases == ("3,3',3\"-acid", "second")


NAMES_IN_OBO = {
    "disodium {[2-(acetyl)amino]ethyl}zamate": "disodium {[2-(acetyl)amino]ethyl}zamate",
    "poly {A} tail": "poly {A} tail",
    "marn ! really": "marn ! really",
    'zelm {source="x"} ! a comment': "zelm",
    'zelm {source="x, {y}", by:me="z"}': "zelm",
    "a \\{b\\} c": "a {b} c",
}


@pytest.mark.parametrize("name", NAMES_IN_OBO)
def test_braces_and_exclamation_marks_in_names_of_obo(write, name):
    text = f'[Term]\nid: a ! b\nname: {name}\nis_a: c {{source="x"}} ! d\n'
    (term,) = OboReader().read(write(text, "t.obo"))
    assert (term.id, term.title, term.meta["parents"]) == ("a", NAMES_IN_OBO[name], ["c"])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("kb.csv", "id,title\na,Ålder\n"),
        ("kb.tsv", "id\ttitle\na\tÅlder\n"),
        ("kb.jsonl", '{"id": "a", "title": "Ålder"}\n'),
        ("kb.json", '[{"id": "a", "title": "Ålder"}]'),
        ("kb.obo", "[Term]\nid: a\nname: Ålder\n"),
    ],
)
def test_utf_16_is_read_by_its_mark(write, encoding, name, text):
    mark = "" if encoding == "utf-16" else "\ufeff"
    assert names_of(load_kb(write((mark + text).encode(encoding), name), Vocab())) == {
        "a": ("Ålder",)
    }


TURTLE = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
<http://x.org/1> a skos:Concept ; skos:prefLabel "Alder"@en, "Erle"@de ;
  skos:altLabel "alder tree"@en ; skos:definition "a tree"@en .
<http://x.org/2> a skos:Concept ; skos:prefLabel "Buche"@de .
"""


def test_concepts_of_skos(write):
    pytest.importorskip("rdflib")
    path, report = write(TURTLE, "kb.ttl"), ImportReport()
    (alder,) = SkosReader().read(path, report)
    assert alder == Entity("http://x.org/1", "Alder", "a tree", ("alder tree",))
    assert report.skipped == {"no label in en": 1}
    assert names_of(SkosReader(languages=("de", "en")).read(path))["http://x.org/2"] == ("Buche",)
    with pytest.raises(ValueError, match="kb.ttl, line 1: no valid SKOS"):
        list(SkosReader().read(write("<", "kb.ttl")))


XL = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix xl: <http://www.w3.org/2008/05/skos-xl#> .
<x:1> a skos:Concept ; xl:prefLabel <x:l1> ; xl:altLabel <x:l2> .
<x:l1> xl:literalForm "blue fever"@en . <x:l2> xl:literalForm "cyan pyrexia"@en .
"""
LABELS = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix dct: <http://purl.org/dc/terms/> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
<x:1> a skos:Concept ; skos:prefLabel "Port Veil"@en ;
  skos:definition [ rdf:value "A port town."@en, "Eine Stadt."@de ], <x:note> .
<x:2> a skos:Concept ; skos:prefLabel "color harbor"@en-US, "colour harbour"@en-GB .
<x:3> a skos:Concept ; skos:prefLabel "Marschhusten"@de ; skos:altLabel "marsh cough"@en .
<x:4> a skos:Concept ; skos:prefLabel "old veil"@en ; owl:deprecated true ; dct:isReplacedBy <x:1> .
"""
OWL = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
 xmlns:owl="http://www.w3.org/2002/07/owl#" xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#"
 xmlns:o="http://www.geneontology.org/formats/oboInOwl#" xmlns:i="http://purl.obolibrary.org/obo/">
<owl:Class rdf:about="x:5"><rdfs:label>blue fever</rdfs:label>
<o:hasExactSynonym>cyan pyrexia</o:hasExactSynonym>
<i:IAO_0000115>It is blue.</i:IAO_0000115></owl:Class>
<owl:Class rdf:about="x:6"><rdfs:label>old fever</rdfs:label>
<owl:deprecated rdf:datatype="http://www.w3.org/2001/XMLSchema#boolean">true</owl:deprecated>
<i:IAO_0100001 rdf:resource="x:5"/></owl:Class></rdf:RDF>"""


def test_labels_of_skos_as_people_have_them(write):
    pytest.importorskip("rdflib")
    assert names_of(load_kb(write(XL, "kb.ttl"), Vocab())) == {
        "x:1": ("blue fever", "cyan pyrexia")
    }
    path, report = write(LABELS, "kb.ttl"), ImportReport()
    one, two, three = SkosReader().read(path, report)
    assert (one.description, two.names) == ("A port town.", ["color harbor", "colour harbour"])
    assert three.names == ["marsh cough"]
    assert (report.skipped, report.redirects) == ({"deprecated": 1}, {"x:4": "x:1"})
    _, _, both = SkosReader(languages=("en", "de")).read(path)
    assert both.names == ["Marschhusten", "marsh cough"]
    with pytest.warns(UserWarning, match="W106.*1 deprecated"):
        assert load_kb(path, Vocab())["x:4"].id == "x:1"


@pytest.mark.parametrize(("name", "syntax"), [("kb.nt", "nt"), ("kb.jsonld", "json-ld")])
def test_other_syntaxes_of_skos_by_suffix(write, name, syntax):
    rdflib = pytest.importorskip("rdflib")
    data = rdflib.Graph().parse(data=TURTLE, format="turtle").serialize(format=syntax)
    assert names_of(load_kb(write(data, name), Vocab()))["http://x.org/1"] == (
        "Alder",
        "alder tree",
    )
    packed = write(gzip.compress(data.encode()), f"{name}.gz")
    assert "http://x.org/1" in names_of(load_kb(packed, Vocab()))


def test_classes_of_owl(write):
    pytest.importorskip("rdflib")
    (entity,) = SkosReader().read(write(OWL, "kb.owl"), report := ImportReport())
    assert entity == Entity("x:5", "blue fever", "It is blue.", ("cyan pyrexia",))
    assert (report.skipped, report.redirects) == ({"deprecated": 1}, {"x:6": "x:5"})


def test_skos_without_rdflib(write, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "rdflib", None)
    with pytest.raises(ValueError, match="E107.*pip install rdflib"):
        list(SkosReader().read(write(TURTLE, "kb.ttl")))


def test_invalid_terms_of_obo_are_left_out(write):
    text = (
        "[Term]\nid: a\nname: A\nno tag\n[Term\nid: x\n[Term]\nname: B\n"
        "[Term]\nid: a\nname: C\n[Term]\nid: NIL\nname: N\n[Term]\nid: d\nname: D\n"
    )
    path, report = write(text, "t.obo"), ImportReport()
    assert names_of(OboReader(skip_bad=True).read(path, report)) == {"a": ("A",), "d": ("D",)}
    lines = [place.split(": ")[0].rsplit(" ", 1)[1] for place in report.places]
    assert lines == ["4", "5", "7", "9", "12"] and report.skipped == {"invalid": 5}
    for options in ({"skip_bad": True}, {"encoding": "cp1252"}):
        with pytest.raises(ValueError, match=f"E043.*'umls' has no option '{[*options][0]}'"):
            import_into(ArboKB(Vocab()), path, "umls", **options)
