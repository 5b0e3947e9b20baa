"""Entities with Wikipedia articles: FB15k-237's Wikidata, and the titles of ZELDA files."""

import json

import pytest
from spacy.vocab import Vocab

from spacy_arbo_el.corpora.concepts import concept_map_of
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.importers import ImportReport, read_fb15k, read_zelda_titles
from spacy_arbo_el.kb.importers.articles import article_title, title_of_address
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.kb.loaders import import_into

from .test_importers import data_dir, write  # noqa: F401  fixtures

WIKI = "https://en.wikipedia.org/wiki/"


def entry(label, id_, article=None, names=(), description=None):
    return {
        "label": label,
        "wikidata_id": id_,
        "wikipedia": article and WIKI + article,
        "alternatives": list(names),
        "description": description,
    }


FB15K = {
    "/m/1": entry("El Paso", "Q1", "El_Paso,_Texas", ["El Paso, Texas", "EP"], "county seat"),
    "/m/2": entry("attack", "Q2"),
    "/m/3": entry("Q3", "Q3"),
    "/m/4": entry("El Paso", "Q1", "El_Paso_(again)"),
}


@pytest.mark.parametrize(
    "page, title",
    [
        ("El_Paso,_Texas", "El Paso, Texas"),
        ("Shaquille_O%27Neal", "Shaquille O'Neal"),
        ("100%25_Wolf", "100% Wolf"),
        ("%2525", "%25"),
        ("100%_Wolf", "100% Wolf"),
        ("AC/DC", "AC/DC"),
        ("Jos%C3%A9", "José"),
        ("Film?action=edit#Plot", "Film"),
        ("What%3F_%231", "What? #1"),
    ],
)
def test_titles_of_addresses_are_decoded_once(page, title):
    assert title_of_address(WIKI + page) == title


def test_addresses_of_other_pages_have_no_title():
    assert title_of_address("https://www.wikidata.org/entity/Q1") == ""


def test_a_title_is_no_address():
    assert article_title("100%25_Wolf") == "100%25 Wolf"


def test_entries_of_fb15k_become_entities(write):  # noqa: F811
    report = ImportReport()
    el_paso, attack = read_fb15k(write(json.dumps(FB15K)), report)
    assert el_paso == Entity(
        "Q1",
        "El Paso, Texas",
        "county seat",
        ("El Paso", "EP"),
        meta={"ids": ["Q1", "/m/1", "El Paso, Texas"]},
    )
    assert attack == Entity("Q2", "attack", meta={"ids": ["Q2", "/m/2"]})
    assert report.skipped == {"no name": 1, "another entry has the same id of Wikidata": 1}
    assert report.redirects == {
        "/m/1": "Q1",
        "El Paso, Texas": "Q1",
        "/m/2": "Q2",
        "/m/4": "Q1",
        "El Paso (again)": "Q1",
    }


@pytest.mark.parametrize(
    "content, problem",
    [
        ("[]", "line 1: expected an object of entries by id of Freebase, got a list"),
        ('{\n"/m/1": 3}', "line 2: the entry '/m/1' must be an object, got the number 3"),
        ('{"/m/1": {},\n}', "line [12]: no valid JSON"),
        ('{"/m/1": {"label": "a"}}', "line 1: 'id' must be a non-empty string"),
        ('{\n\n"/m/1": {"wikidata_id": "Q1"}}', "line 3: 'label' of '/m/1' is empty"),
        ('{"/m/1": {"wikidata_id": 7}}', "line 1: 'wikidata_id' of '/m/1' must be a string"),
        (
            '{"a": {"wikidata_id": "Q1", "label": "x", "alternatives": "x"}}',
            "line 1: 'alternatives' of 'a' must be a list",
        ),
        (
            '{"a": {"wikidata_id": "Q1", "wikipedia": "/wiki/%ff"}}',
            "line 1: 'wikipedia' of 'a' must be an address in UTF-8",
        ),
        ('{"a": {},\n"a": {}}', "line 2: the key 'a' occurs twice"),
    ],
)
def test_invalid_entries_of_fb15k_are_named_with_their_line(write, content, problem):  # noqa: F811
    with pytest.raises(ValueError, match=rf"kb.jsonl, {problem}"):
        list(read_fb15k(write(content)))


ZELDA = """\
{"text": "Films", "index": [[0, 4]], "wikipedia_titles": ["Film"], "wikipedia_ids": [215]}
{"text": "Nothing", "index": [], "wikipedia_titles": [], "wikipedia_ids": []}
{"text": "ab", "index": [[0, 1], [1, 2]], "wikipedia_titles": ["100%_Wolf", "Film"]}
"""


def test_titles_of_zelda_files_become_entities(tmp_path):
    (tmp_path / "a.jsonl").write_text(ZELDA)
    (tmp_path / "b.jsonl").write_text(
        '{"wikipedia_titles": ["AT&T", "Film"], "wikipedia_ids": [1, 215]}\n'
    )
    (tmp_path / "notes.txt").write_text("no corpus")
    report = ImportReport()
    assert list(read_zelda_titles(tmp_path / "a.jsonl")) == [Entity("Film"), Entity("100% Wolf")]
    entities = list(read_zelda_titles(tmp_path, report))
    assert [entity.id for entity in entities] == ["Film", "100% Wolf", "AT&T"]
    assert report.redirects == {"215": "Film", "1": "AT&T"}


def test_a_folder_without_zelda_files_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="E101"):
        list(read_zelda_titles(tmp_path))


def test_numbers_of_the_real_zelda_titles(data_dir):  # noqa: F811
    kb = ArboKB(Vocab())
    assert import_into(kb, data_dir / "zelda", "zelda").count == len(kb) == 6293
    assert kb.get("21555729").id == "Film", "the number of an article leads to it"


def test_numbers_of_the_real_fb15k(data_dir):  # noqa: F811
    path = data_dir / "wikidata_fb15k" / "entity2wikidata.json"
    kb = ArboKB(Vocab())
    report = import_into(kb, path, "fb15k")
    assert report.skipped == {"no name": 5, "another entry has the same id of Wikidata": 1}
    assert len(kb) == 14_515 - 6
    assert kb.get("Shaquille O'Neal").title == "Shaquille O'Neal"
    assert kb.get("/m/010016").title == "Denton, Texas"
    assert kb.get("AC/DC").title == "AC/DC"
    assert concept_map_of(kb.entities)["Denton, Texas"] == "Q128306"
