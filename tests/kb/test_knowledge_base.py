"""The knowledge base: what is encoded when, and what is written how."""

import numpy as np
import pytest
import spacy

from spacy_arbo_el.io import write_folder
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.kb.verbalizations import names, parts, soft_limit, title_description


class Encoder:
    """Vectors that tell what was encoded; counts the texts."""

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
    return ArboKB(spacy.blank("en").vocab, entities)


def texts_of_rows(kb):
    """The text of each row that counts, by row."""
    found = {}
    for position, entity in kb.entities.items():
        rows = np.flatnonzero(kb.owners() == position)
        found.update(zip(rows.tolist(), names()(entity)))
        assert len(rows) == len(names()(entity))
    return found


def test_only_what_is_new_is_encoded(kb):
    encoder = Encoder()
    assert kb.sync(names(), encoder, "x") == 4, "a shared name is encoded once"
    assert kb.sync(names(), encoder, "x") == 0
    before = kb.get_vector("c").copy()
    kb.add(Entity("d", "fever", aliases=["flu"]))
    kb.update(Entity("b", "chill", aliases=["Cold"]))
    assert kb.sync(names(), encoder, "x") == 2
    assert encoder.texts[4:] == [("chill", ""), ("fever", "")]
    np.testing.assert_array_equal(kb.get_vector("c"), before)
    kb.remove("a")
    assert kb.sync(names(), encoder, "x") == 0
    assert "common cold" not in [title for title, _ in texts_of_rows(kb).values()]
    assert kb.sync(names(), encoder, "another encoder") == 4
    assert len(kb.rows) == len(texts_of_rows(kb)) == 5, "rows that are gone take no room"


def test_equal_texts_have_equal_vectors(kb):
    kb.sync(names(), Encoder(), "x")
    kb.add(Entity("d", "fever", aliases=["flu"]))
    kb.sync(names(), Encoder(), "x")
    vectors = {}
    for row, text in texts_of_rows(kb).items():
        vectors.setdefault(text, []).append(kb.rows.array()[row])
    assert len(vectors[("flu", "")]) == len(vectors[("Cold", "")]) == 2
    for same in vectors.values():
        np.testing.assert_array_equal(same, same[:1] * len(same))


def test_distinct_texts_and_entities_point_at_each_other(kb):
    kb.sync(names(), Encoder(), "x")
    distinct = kb.distinct_texts(names())
    for position in range(len(kb)):
        start, end = distinct.entity_offsets[position : position + 2]
        for text in distinct.entity_rows[start:end]:
            first, last = distinct.row_offsets[text : text + 2]
            assert position in distinct.row_entities[first:last]
    shared = distinct.texts.index(("Cold", ""))
    first, last = distinct.row_offsets[shared : shared + 2]
    assert distinct.row_entities[first:last].tolist() == [0, 1]
    assert [texts_of_rows(kb)[row] for row in distinct.rows.tolist()] == distinct.texts


def test_verbalizations(kb):
    entity = kb.get("a")
    assert names()(entity) == [("Cold", ""), ("common cold", "")]
    assert names(description=True, types=True)(entity)[0] == ("Cold", "an illness (Disease)")
    assert title_description()(entity) == [("Cold", "an illness (Disease) (common cold)")]
    assert title_description(aliases=False, types=False)(kb.get("c")) == [("flu", "")]


def test_parts_end_at_the_next_punctuation(kb):
    text = "A disease of the lungs, caused by dust; see also 2.5 of the list. It is rare."
    assert soft_limit(text, 20) == "A disease of the lungs"
    assert soft_limit(text, 23) == "A disease of the lungs, caused by dust"
    assert soft_limit(text, 50) == text[:-13]
    assert soft_limit(text, 0) == text == soft_limit(text, 999)
    assert soft_limit("no end to be seen", 3) == "no end to be seen"
    entity = Entity("x", "X", text, ("Y", "Z"), ("T",), meta={"paragraph": text})
    assert parts(limit=20)(entity) == [("X", "A disease of the lungs")]
    assert parts(description=False, types=True, aliases=True)(entity) == [("X", "T, Y, Z")]
    assert parts(False, paragraph=True, paragraph_limit=23)(entity) == [("X", soft_limit(text, 23))]
    assert parts()(Entity("y", "Y")) == [("Y", "")]


def test_another_verbalization_is_noticed_and_the_same_costs_nothing(kb):
    kb.sync(names(), Encoder(), "x")
    asked = []

    def watched(entity):
        asked.append(entity.id)
        return names()(entity)

    kb.touch()
    assert kb.sync(names(), Encoder(), "x") == 0 and kb.in_sync
    kb.touch()
    assert kb.sync(watched, Encoder(), "x") == 0 and asked == ["a", "b", "c"]
    kb.touch()
    assert kb.sync(names(types=True), Encoder(), "x") == 2, "two have a type"


def test_as_spacys_users_expect(kb):
    kb.sync(names(), Encoder(), "x")
    doc = spacy.blank("en")("a COLD day")
    found = kb.get_candidates(doc[1:2])
    assert [c.entity_ for c in found] == ["a", "b"] and found[0].prior_prob == 0.5
    assert kb.get_prior_prob("a", "cold") == 0.5 and kb.get_prior_prob("c", "cold") == 0.0
    assert kb.get_alias_candidates("nothing") == []
    assert kb.contains_entity("a") and kb.contains_alias("FLU") and not kb.contains_alias("x")
    assert kb.get_size_entities() == 3 and kb.get_entity_strings() == ["a", "b", "c"]
    assert kb.entity_vector_length == 3 and len(kb.get_vectors(["a", "b"])) == 2
    with pytest.raises(KeyError, match="no entity 'z'"):
        kb.get_vector("z")
    kb.add(Entity("z", "new"))
    with pytest.raises(ValueError, match="never encoded.*linker.refresh"):
        kb.get_vector("z")


@pytest.mark.parametrize("bad", [np.zeros((1, 3)), np.zeros(4), np.full((4, 3), np.nan)])
def test_bad_vectors_are_refused_and_change_nothing(kb, bad):
    with pytest.raises(ValueError, match="shape|NaN"):
        kb.sync(names(), lambda texts: bad, "x")
    assert len(kb.rows) == 0 and not kb.in_sync


def test_disk_and_bytes(kb, tmp_path):
    kb.sync(names(), Encoder(), "x")
    kb.to_disk(tmp_path / "kb")
    vocab = spacy.blank("en").vocab
    for again in (
        ArboKB(vocab).from_disk(tmp_path / "kb"),
        ArboKB(vocab).from_bytes(kb.to_bytes()),
    ):
        assert list(again) == list(kb) and again.in_sync and again.fingerprint == "x"
        np.testing.assert_array_equal(again.rows.array(), kb.rows.array())
        assert again.sync(names(), Encoder(), "x") == 0


def test_a_save_that_fails_leaves_the_old_folder(kb, tmp_path):
    def fail():
        raise OSError("disk full")

    kb.to_disk(tmp_path / "kb")
    with pytest.raises(OSError, match="disk full"):
        write_folder(tmp_path / "kb", {"manifest.json": lambda: b"new", "vectors-1.bin": fail})
    assert len(ArboKB(spacy.blank("en").vocab).from_disk(tmp_path / "kb")) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["kb"]


def test_a_format_of_the_future_is_refused(kb, tmp_path):
    kb.to_disk(tmp_path / "kb")
    manifest = tmp_path / "kb" / "manifest.json"
    manifest.write_text(
        manifest.read_text()
        .replace('"version":2', '"version":9')
        .replace('"version": 2', '"version": 9')
    )
    with pytest.raises(ValueError, match="format version 9.*Upgrade"):
        ArboKB(spacy.blank("en").vocab).from_disk(tmp_path / "kb")
