"""What people see of objects in a terminal."""

import pytest
import spacy
from spacy.vocab import Vocab

from spacy_arbo_el import (
    ArboKB,
    Candidate,
    Entity,
    Evidence,
    Link,
    MentionRecord,
    NewEntities,
    NewEntity,
)
from spacy_arbo_el.base.display import shortened, shown_probability
from spacy_arbo_el.discovery.entities import RefusedEntity

ENTITY = Entity("D1", "Mercury", "the smallest\n planet", ["planet Mercury"], ["STAR"], 2.0)
EVIDENCE = [Evidence("entity", "D1", "Mercury", "", 1.0), Evidence("mention", "0:7", "X", "", 0.9)]
LINK = Link("D1", 0.934, ["D1", "D2"], [0.934, 0.031], EVIDENCE, titles=["Mercury"])
NIL_LINK = Link("NIL", 0.123, ["D1"], [0.123], cluster="new-1", titles=["Mercury"])


def new_entity(text="Zorblat", count=2):
    records = tuple(
        MentionRecord((f"f{i}", 0, 7), (), text, "the ", " roof", "THING", text, f"doc {i}")
        for i in range(count)
    )
    nearest = (RefusedEntity("D1", text, 0.31, "below the threshold of 0.5"),)
    return NewEntity("NEW-1", text, records, 0, 0.875, nearest)


LONG = Entity("D1", "word " * 99, "word " * 99, ["alias " * 9] * 99, ["type"] * 99)
SHOWN = [
    (Candidate("D1", 0.99991, "Mercury"), ["D1", "Mercury", "0.9999"]),
    (LINK, ["D1", "Mercury", "0.93"]),
    (NIL_LINK, ["NIL", "new-1", "D1", "0.12"]),
    (ENTITY, ["D1", "Mercury", "planet Mercury", "STAR", "the smallest planet"]),
    (LONG, ["D1", "word word"]),
    (ArboKB(Vocab(), [ENTITY]), ["1 entity", "in memory", "not encoded yet"]),
    (new_entity(), ["NEW-1", "Zorblat", "2 mentions in 2 documents", "0.88", "D1", "0.31"]),
    (NewEntities(), ["0 new entities"]),
]


@pytest.mark.parametrize("value, parts", SHOWN, ids=lambda value: type(value).__name__)
def test_repr_is_one_short_line(value, parts):
    line = repr(value)
    assert line.startswith(type(value).__name__)
    assert all(part in line for part in parts)
    assert len(line) < 400
    assert "\n" not in line


def test_long_texts_are_shortened_between_words():
    assert shortened("ab " * 50, 10) == "ab ab ab…"
    assert shortened("a\nb", 3) == "a b"


def test_a_knowledge_base_in_a_folder_shows_its_folder_and_when_it_is_closed(tmp_path):
    ArboKB(Vocab(), [ENTITY]).to_disk(tmp_path / "kb")
    with ArboKB.open(tmp_path / "kb") as kb:
        assert repr(kb).startswith("ArboKB(1 entity, from ")
    assert repr(kb).endswith(", closed)")


def test_a_linker_shows_its_knowledge_base_and_threshold():
    linker = spacy.blank("xx").add_pipe("arbo_linker", config={"threshold": 0.25})
    linker.kb.add([ENTITY])
    kb = "ArboKB(1 entity, in memory, not encoded yet)"
    assert repr(linker).startswith(f"ArboLinker('arbo_linker', {kb}, 0 exemplars, threshold 0.25")


def test_probabilities_have_the_digits_that_tell_them_from_0_and_1():
    shown = list(map(shown_probability, (0.0, 0.00004, 0.004, 0.5, 0.9949, 0.9961, 1.0)))
    assert shown == ["0.00", "0.0000", "0.0040", "0.50", "0.99", "0.9961", "1.00"]
