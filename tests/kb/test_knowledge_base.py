"""The knowledge base: which texts are encoded when, verbalizations, and names by trigrams."""

from unittest.mock import patch

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el import ArboKB, Entity
from spacy_arbo_el.kb import lookup
from spacy_arbo_el.kb.database import Database
from spacy_arbo_el.kb.lookup import similar_names, trigrams
from spacy_arbo_el.kb.store import EntityStore
from spacy_arbo_el.kb.verbalizations import (
    Names,
    NoText,
    Parts,
    TitleDescription,
    soft_limit,
    verbalization_identity,
)
from spacy_arbo_el.names.spellings import all_spellings, folded, without_accents

from ..cases import cases
from ..expecting import raises
from .encoding import kb_of, sync


class Encoder:
    """Gives vectors that depend on the texts encoded so far, and keeps these."""

    def __init__(self):
        self.texts = []

    def __call__(self, texts):
        self.texts += texts
        return np.array([[len(a), len(b), len(self.texts)] for a, b in texts], dtype=np.float32)


@pytest.fixture
def kb():
    entities = [
        Entity("a", "Cold", "an illness", ["common cold"], ["Disease"]),
        Entity("b", "low temperature", aliases=["Cold"]),
        Entity("c", "flu"),
    ]
    return ArboKB(spacy.blank("xx").vocab, entities)


def texts_of_rows(kb):
    """The texts of all rows that belong to an entity, by row."""
    texts = {}
    for position, entity in kb.entities.items():
        rows = np.flatnonzero(kb.rows.owners == position)
        texts.update(zip(rows.tolist(), Names()(entity)))
        assert len(rows) == len(Names()(entity))
    return texts


def test_only_new_texts_are_encoded(kb):
    encoder = Encoder()
    assert sync(kb, "x", encoder) == 4, "a shared name is encoded once"
    assert sync(kb, "x", encoder) == 0
    before = kb.get_vector("c").copy()
    kb.add(Entity("d", "fever", aliases=["flu"]))
    kb.update(Entity("b", "chill", aliases=["Cold"]))
    assert sync(kb, "x", encoder) == 2
    assert encoder.texts[4:] == [("chill", ""), ("fever", "")]
    np.testing.assert_array_equal(kb.get_vector("c"), before)
    vectors = {}
    for row, text in texts_of_rows(kb).items():
        vectors.setdefault(text, set()).add(tuple(kb.rows.array()[row]))
    assert all(len(of_text) == 1 for of_text in vectors.values()), "equal texts have equal vectors"
    kb.remove("a")
    assert sync(kb, "x", encoder) == 0
    assert "common cold" not in [title for title, _ in texts_of_rows(kb).values()]
    assert sync(kb, "another encoder", encoder) == 4
    assert len(kb.rows) == 5, "rows of removed texts are dropped"
    assert len(texts_of_rows(kb)) == 5


def test_distinct_texts_and_entities_refer_to_each_other(kb):
    sync(kb, "x", Encoder())
    distinct = kb.vectors.distinct_texts(Names())
    for position in range(len(kb)):
        start, end = distinct.entity_offsets[position : position + 2]
        for text in distinct.entity_rows[start:end]:
            first, last = distinct.row_offsets[text : text + 2]
            assert position in distinct.row_entities[first:last]
    shared = distinct.texts.index(("Cold", ""))
    first, last = distinct.row_offsets[shared : shared + 2]
    assert distinct.row_entities[first:last].tolist() == [0, 1]
    assert [texts_of_rows(kb)[row] for row in distinct.rows.tolist()] == distinct.texts


def test_verbalizations_give_titles_and_descriptions(kb):
    entity = kb.get("a")
    assert Names()(entity) == [("Cold", ""), ("common cold", "")]
    assert Names(description=True, types=True)(entity)[0] == ("Cold", "an illness (Disease)")
    assert TitleDescription()(entity) == [("Cold", "an illness (Disease) (common cold)")]
    assert TitleDescription(aliases=False, types=False)(kb.get("c")) == [("flu", "")]


def test_parts_end_at_the_next_punctuation(kb):
    text = "A disease of the lungs, caused by dust; see also 2.5 of the list. It is rare."
    assert soft_limit(text, 20) == "A disease of the lungs"
    assert soft_limit(text, 23) == "A disease of the lungs, caused by dust"
    assert soft_limit(text, 50) == text[:-13]
    assert text == soft_limit(text, 999)
    assert soft_limit("no end to be seen", 3) == "no end to be seen"
    entity = Entity("x", "X", text, ("Y", "Z"), ("T",), meta={"paragraph": 2 * text})
    assert Parts()(entity) == [("X", soft_limit(text, 50))]
    assert Parts(description=False, types=True, aliases=True)(entity) == [("X", "T, Y, Z")]
    ids = Entity("Q937", "Einstein", types=["Q5", "PERSON"])
    assert Parts(types=True)(ids) == [("Einstein", "PERSON")], "an id says nothing"
    assert Parts(False, paragraph=True)(entity) == [("X", soft_limit(2 * text, 100))]
    assert Parts()(Entity("y", "Y")) == [("Y", "")]


def test_entities_are_read_again_for_another_verbalization_alone(kb):
    sync(kb, "x", Encoder())
    with patch.object(EntityStore, "at_all") as reading:
        assert sync(kb, "x", Encoder()) == 0
        assert not reading.called
    read = []

    def watched(entity):
        read.append(entity.id)
        return Names()(entity)

    assert kb.encode_missing(watched, Encoder(), "x") == 0
    assert read == ["a", "b", "c"]
    assert kb.encode_missing(watched, Encoder(), "x") == 0
    assert len(read) == 3
    assert kb.encode_missing(Names(types=True), Encoder(), "x") == 2, "two have a type"
    assert sync(kb, "x", Encoder()) == 0, "the vectors of other texts stay"


def test_the_identity_of_a_verbalization_is_its_repr_and_is_saved(kb, tmp_path):
    kb.encode_missing(Names(types=True), Encoder(), "x")
    kb.to_disk(tmp_path / "kb")
    again = ArboKB.for_reading(tmp_path / "kb")
    with patch.object(EntityStore, "at_all") as reading:
        assert again.encode_missing(Names(types=True), Encoder(), "x") == 0
        assert not reading.called
    assert sync(again, "x", Encoder()) == 1, "one entity has a type, and shares a name"
    assert verbalization_identity(lambda entity: [(entity.id, "")]) == "", (
        "unknown for a plain function"
    )
    assert verbalization_identity(Parts(types=True)) == repr(Parts(types=True))


def test_methods_of_spacys_knowledge_bases(kb):
    sync(kb, "x", Encoder())
    doc = spacy.blank("xx")("a COLD day")
    candidates = kb.get_candidates(doc[1:2])
    assert [c.entity_ for c in candidates] == ["a", "b"]
    assert candidates[0].prior_prob == 0.5
    assert kb.get_prior_prob("a", "cold") == 0.5
    assert kb.get_prior_prob("c", "cold") == 0.0
    for candidate in candidates:
        np.testing.assert_array_equal(candidate.entity_vector, kb.get_vector(candidate.entity_))
    assert kb.get_alias_candidates("nothing") == []
    batch = kb.get_candidates_batch([doc[1:2], doc[2:3]])
    assert [[c.entity_ for c in group] for group in batch] == [["a", "b"], []]
    assert kb.contains_entity("a")
    assert kb.contains_alias("FLU")
    assert not kb.contains_alias("x")
    assert kb.get_size_entities() == 3
    assert kb.get_entity_strings() == ["a", "b", "c"]
    assert kb.entity_vector_length == 3
    assert len(kb.get_vectors(["a", "b"])) == 2
    with pytest.raises(KeyError, match="no entity 'z'"):
        kb.get_vector("z")
    kb.add(Entity("z", "new"))
    with raises("never encoded.*linker.refresh"):
        kb.get_vector("z")
    (candidate,) = kb.get_alias_candidates("new")
    assert candidate.entity_ == "z"
    assert candidate.entity_vector == []


@pytest.mark.parametrize("bad", [np.zeros((1, 3)), np.zeros(4), np.full((4, 3), np.nan)])
def test_invalid_vectors_are_refused_and_change_nothing(kb, bad):
    with raises("shape|NaN"):
        sync(kb, "x", lambda texts: bad)
    assert len(kb.rows) == 0
    assert not kb.in_sync


def test_a_later_format_version_is_refused(kb, tmp_path):
    kb.to_disk(tmp_path / "kb")
    database = Database(tmp_path / "kb" / "entities.sqlite")
    database.set(version=9)
    database.close()
    with raises("format version 9 .*Upgrade"):
        ArboKB(spacy.blank("xx").vocab).from_disk(tmp_path / "kb")


UNNAMED = Entity("D7", types=("Disease",), meta={"unnamed": True})
DESCRIBED = Entity("D8", description="An illness.", meta={"unnamed": True})


def test_an_unnamed_entity_has_its_id_as_title_and_no_names():
    assert (UNNAMED.title, UNNAMED.names) == ("D7", [])
    assert Entity("D7").names == ["D7"], "an id may be a name: Entity('Kathmandu')"
    assert Entity("D7", "Flu", meta={"unnamed": True}).names == ["Flu"]
    assert Entity("D7", aliases=("flu",), meta={"unnamed": True}).names == ["flu"]


@pytest.mark.parametrize(
    "verbalize, texts",
    [
        (TitleDescription(), [("", "An illness.")]),
        (Names(), []),
        (Names(types=True), []),
        (Names(types=True, description=True), [("", "An illness.")]),
        (Parts(types=True), [("", "An illness.")]),
        (Parts(description=False), []),
        (NoText(), []),
    ],
)
def test_an_unnamed_entity_has_the_text_of_its_description(verbalize, texts):
    assert verbalize(UNNAMED) == []
    assert verbalize(DESCRIBED) == texts


def test_a_merge_with_a_named_entity_gives_it_its_names():
    flu = Entity("D9", "Flu", aliases=("grippe",))
    merged = UNNAMED.merged_with(flu)
    assert (merged.id, merged.title, merged.names) == ("D7", "Flu", ["Flu", "grippe"])
    assert "unnamed" not in merged.meta
    merged = flu.merged_with(UNNAMED)
    assert merged.names == ["Flu", "grippe"]
    assert "unnamed" not in merged.meta
    assert UNNAMED.merged_with(DESCRIBED).names == []


def test_no_name_leads_to_an_unnamed_entity():
    kb = kb_of(UNNAMED, Entity("D9", "Flu"))
    assert not kb.contains_alias("D7")
    assert kb.get_alias_strings() == ["Flu"]
    assert kb.get("D7") == UNNAMED
    assert kb.get_size_aliases() == 1


NAMES = st.text(st.sampled_from("abcé \"'*-"), min_size=1, max_size=9).filter(str.strip)


@given(st.lists(st.lists(NAMES, min_size=1, max_size=3), max_size=12), NAMES)
def test_similar_names_are_those_of_a_comparison_with_all_names(groups, query):
    entities = [Entity(f"e{i}", n[0], aliases=tuple(n[1:])) for i, n in enumerate(groups)]
    kb = kb_of(*entities)
    own = folded(query)
    wanted = [trigrams(form) for form in (own, without_accents(own))]

    def dice(name):
        other = trigrams(name)
        return max(2 * len(one & other) / max(len(one) + len(other), 1) for one in wanted)

    similarity = {i: max(map(dice, all_spellings(e.names))) for i, e in enumerate(entities)}
    expected = sorted((-s, i) for i, s in similarity.items() if s >= 0.3)
    assert [(-s, i) for i, s in similar_names(kb.entities, query, 99)] == expected


def test_similar_names_after_edits():
    kb = kb_of(Entity("a", "hepatitis"), Entity("b", "hepatic failure"))
    assert [p for p, _ in similar_names(kb.entities, "hepatitys", 5)] == [0, 1]
    kb.update(Entity("a", "gout"))
    kb.remove("b")
    assert similar_names(kb.entities, "hepatitis", 5) == []
    kb.add(Entity("c", "Hepatitis B"))
    assert [p for p, _ in similar_names(kb.entities, "HEPATITIS", 5)] == [2]


def test_common_trigrams_are_not_looked_up(monkeypatch):
    entities = [Entity(f"e{i}", f"common {i}") for i in range(200)] + [Entity("x", "common zeal")]
    kb = kb_of(*entities)
    monkeypatch.setattr(lookup, "POSTINGS", 50)
    assert similar_names(kb.entities, "common zeal", 1)[0] == (200, 1.0)


@pytest.mark.parametrize("query, expected", cases("similar_letters"))
def test_names_of_the_same_letters_are_found(query, expected):
    names = ["IL-2", "L’Oréal", "AT&T", "Müller GmbH & Co. KG", "Škoda", "IL-21", "がん"]
    kb = kb_of(*(Entity(id_, name) for id_, name in zip("abcdefg", names)))
    assert [entity.id for entity in kb.search(query, 1)] == list(expected)
