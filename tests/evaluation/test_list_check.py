"""What a list of entities lacks."""

import pytest

from spacy_arbo_el.evaluation.list_check import check_list
from spacy_arbo_el.kb.entity import Entity

from ..cases import cases
from ..commands import run

STOP_WORDS = frozenset(("it", "who"))


def found(*entities):
    """The kinds of problems by the first words of what they are, with examples."""
    findings = check_list(entities, STOP_WORDS)
    names = ("shared", "titles", "names", "columns", "entities")
    assert [one.what.split()[0] for one in findings] == list(names)
    return {name: one.examples for name, one in zip(names, findings) if one.count}


@pytest.mark.parametrize(("entities", "examples"), cases("shared_names"))
def test_shared_names_that_nothing_tells_apart(entities, examples):
    assert found(*(Entity(**one) for one in entities)).get("shared", ()) == tuple(examples)


def test_qualifiers_words_and_columns():
    problems = found(
        Entity("a", "Velmo (town)", meta={"Country": "NO"}),
        Entity("b", "Sern (lake)", "a lake"),
        Entity("c", "Alder", "a tree", ["it", "IT", "al", "AL"], meta={"unnamed": False}),
    )
    assert problems["titles"] == ("'Velmo (town)'",)
    assert problems["names"] == ("'it' of c", "'al' of c")
    assert problems["columns"] == ("'Country', which 1 entities have",)
    assert "shared" not in problems


def test_the_command_needs_no_documents(tmp_path):
    path = tmp_path / "entities.csv"
    path.write_text("id,title,Country\nE1,Velmo,NO\nE2,Velmo,SE\n")
    output = run("check", path)
    assert "2 entities, 1 names" in output and "'Velmo' of 2 entities" in output
    (tmp_path / "dev.spacy").write_bytes(b"")
    assert "E799" in run("check", tmp_path / "dev.spacy", code=1)
