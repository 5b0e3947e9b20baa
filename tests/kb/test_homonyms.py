"""Entities that share a name get what tells them apart."""

from dataclasses import replace

from spacy.vocab import Vocab
from typer.testing import CliRunner

from spacy_arbo_el.cli import arbo_cli
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.homonyms import add_qualifiers
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.kb.verbalizations import Names

ENTITIES = [
    Entity("river", "Amazon", "", ["Amazonas"], ["PLACE"]),
    Entity("shop", "amazon", "sells books", ["Amazon.com"], ["COMPANY"]),
    # Of the same type: the parents.
    Entity("hand", "digit", "", [], ["PART"], meta={"parents": ["hands", "nowhere"]}),
    Entity("foot", "Digit", "", [], ["PART"], meta={"parents": ["feet"], "x": 1}),
    Entity("hands", "hand part"),
    Entity("feet", "foot part"),
    # Neither types nor parents: another name, which nobody shares.
    Entity("a", "cold", "", ["chill", "common cold"]),
    Entity("b", "cold", "", ["chill", "low temperature"]),
    # Nothing tells the last two apart.
    Entity("y", "same", "", ["also the same"]),
    Entity("z", "same", "", ["also the same"]),
    Entity("alone", "nobody else", "", [], ["PLACE"]),
]
EXPECTED = {
    "river": "PLACE",
    "shop": "COMPANY",
    "hand": "hand part",
    "foot": "foot part",
    "a": "common cold",
    "b": "low temperature",
}


def test_each_has_the_first_thing_that_no_other_has():
    kb = ArboKB(Vocab(), ENTITIES)
    assert add_qualifiers(kb) == (8, 6)
    assert {e.id: e.meta["qualifier"] for e in kb if "qualifier" in e.meta} == EXPECTED
    assert kb.get("foot").meta["x"] == 1
    assert add_qualifiers(kb) == (8, 6), "the same again"


def test_names_with_qualifiers_are_distinct():
    kb = ArboKB(Vocab(), ENTITIES)
    add_qualifiers(kb)
    names = Names(qualifier=True)
    assert names(kb.get("river")) == [("Amazon", "PLACE"), ("Amazonas", "PLACE")]
    assert Names(qualifier=True, description=True)(kb.get("shop"))[0] == (
        "amazon",
        "COMPANY; sells books",
    )
    assert names(kb.get("alone")) == [("nobody else", "")]
    assert Names()(kb.get("river")) == [("Amazon", ""), ("Amazonas", "")]


def test_qualifiers_follow_the_entities():
    kb = ArboKB(Vocab(), ENTITIES[:2])
    add_qualifiers(kb)
    kb.update(replace(kb.get("shop"), title="bookshop", meta=kb.get("shop").meta))
    assert add_qualifiers(kb) == (0, 0) and not any("qualifier" in e.meta for e in kb)
    kb.update(replace(kb.get("shop"), title="Amazon", types=("place",)))
    # Types that differ in case alone: another name tells them apart.
    assert add_qualifiers(kb) == (2, 2)
    assert [e.meta["qualifier"] for e in kb] == ["Amazonas", "Amazon.com"]


def test_many_entities_of_one_name():
    entities = [Entity(f"e{i}", "same", "", [f"other {i}"]) for i in range(5000)]
    kb = ArboKB(Vocab(), entities)
    assert add_qualifiers(kb) == (5000, 5000)
    assert kb.get("e7").meta["qualifier"] == "other 7"


def test_an_edit_of_a_folder(tmp_path):
    with ArboKB.create(tmp_path / "kb") as kb:
        kb.add(ENTITIES)
    result = CliRunner().invoke(arbo_cli, ["kb", "qualify", str(tmp_path / "kb")])
    assert result.exit_code == 0 and "6 of 8 entities" in " ".join(result.output.split())
    assert ArboKB.for_reading(tmp_path / "kb").get("b").meta["qualifier"] == "low temperature"


def test_a_knowledge_base_without_shared_names_stays():
    kb = ArboKB(Vocab(), ENTITIES[-1:])
    edits = kb.edits
    assert add_qualifiers(kb) == (0, 0) and kb.edits == edits
