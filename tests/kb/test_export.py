"""The list comes back as it came, with what was decided since then."""

import json

import pytest
from spacy.vocab import Vocab

from spacy_arbo_el import ArboKB, Entity
from spacy_arbo_el.base.extras import import_pyarrow
from spacy_arbo_el.kb.export import write_list
from spacy_arbo_el.kb.loaders import load_kb

from ..expecting import raises
from .encoding import kb_of

FIRMS = (
    "Land;Name;identifier;synonyms;Freq;Long\n"
    "DE;Halix;h1;Halix AG|HX;12;-3.5\n"
    '"A; B";"Bo ""Z""";z2;;0.5;\n'
)


@pytest.fixture
def kb(tmp_path):
    (tmp_path / "firms.csv").write_text(FIRMS)
    return load_kb(tmp_path / "firms.csv", Vocab())


def exported(kb, path, **options):
    write_list(kb, path, **options)
    return path.read_text("utf8")


def test_a_table_comes_back_as_it_came_from_the_folder_of_a_knowledge_base(kb, tmp_path):
    kb.to_disk(tmp_path / "kb")
    assert exported(ArboKB.for_reading(tmp_path / "kb"), tmp_path / "out.csv") == FIRMS


def test_new_and_changed_rows_are_marked(kb, tmp_path):
    kb.add({"id": "n", "title": "=Nova", "aliases": ["No|va", "N"], "Long": "-1"})
    kb.update({"id": "z2", "title": "Bo"})
    lines = exported(kb, tmp_path / "out.csv", is_marked=True).splitlines()
    assert lines == [
        "Land;Name;identifier;synonyms;Freq;Long;changed",
        "DE;Halix;h1;Halix AG|HX;12;-3.5;",
        '"A; B";Bo;z2;;0.5;;changed',
        ";'=Nova;n;['No|va', 'N'];;-1;new",
    ]


def test_what_was_exported_is_read_again(kb, tmp_path):
    kb.add(Entity("n", "=Nova", "in the sky", ("No|va", "N"), ("STAR",), meta={"Land": "X"}))
    kb.merge("z2", "n")
    exported(kb, tmp_path / "out.csv")
    again = load_kb(tmp_path / "out.csv", Vocab())
    assert list(again) == list(kb)
    assert again.entities.redirects() == {"z2": "n"}


def test_tabs_separate_the_columns_of_a_tsv(kb, tmp_path):
    header = exported(kb, tmp_path / "out.tsv").splitlines()[0]
    assert header.split("\t") == ["Land", "Name", "identifier", "synonyms", "Freq", "Long"]


def test_lists_and_numbers_stay_such_in_parquet(kb, tmp_path):
    write_list(kb, tmp_path / "out.parquet")
    halix, _ = import_pyarrow().parquet.read_table(tmp_path / "out.parquet").to_pylist()
    assert halix == {
        "Land": "DE",
        "Name": "Halix",
        "identifier": "h1",
        "synonyms": ["Halix AG", "HX"],
        "Freq": 12.0,
        "Long": "-3.5",
    }
    assert list(load_kb(tmp_path / "out.parquet", Vocab())) == list(kb)


def test_new_lines_are_marked_in_jsonl(kb, tmp_path):
    kb.add({"id": "n", "title": "Nova"})
    lines = exported(kb, tmp_path / "out.jsonl", is_marked=True).splitlines()
    assert [json.loads(line).get("changed") for line in lines] == [None, None, "new"]


def test_records_have_their_keys_as_columns(tmp_path):
    kb = kb_of({"name": "Ada", "id": "a", "born": 1815}, {"id": "b", "type": "X"})
    assert exported(kb, tmp_path / "out.csv") == "name,id,born,type\nAda,a,1815,\nb,b,,X\n"


@pytest.mark.parametrize("layout", [None, "[", '{"columns": 1}', '{"delimiter": "||"}'])
def test_usual_columns_where_there_was_no_table(tmp_path, layout):
    kb = kb_of(Entity("a", "Ada", "a person", meta={"born": 1815}))
    kb.database.set(layout=layout)
    expected = "id,title,aliases,description,types,born\na,Ada,,a person,,1815\n"
    assert exported(kb, tmp_path / "out.csv") == expected


def test_notes_of_discovery_are_no_columns_of_the_list(kb, tmp_path):
    kb.add(Entity("n", "Nova", meta={"discovered_as": "NEW-1", "cohesion": 0.9}))
    assert "cohesion" not in exported(kb, tmp_path / "out.csv")
    assert "cohesion" in exported(kb, tmp_path / "out.csv", is_marked=True)


def test_other_files_are_refused(kb, tmp_path):
    with raises("E835"):
        write_list(kb, tmp_path / "out.xlsx")
