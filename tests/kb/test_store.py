"""Edits of a knowledge base, compared with a plain dict, in memory and in a folder."""

import os
import shutil
from threading import Thread
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.vocab import Vocab

from spacy_arbo_el import ArboKB, Entity
from spacy_arbo_el.kb import database, folder, store
from spacy_arbo_el.kb.texts import file_of
from spacy_arbo_el.kb.vector_files import VectorKind
from spacy_arbo_el.kb.verbalizations import Names
from spacy_arbo_el.kb.verification import verify
from spacy_arbo_el.names.spellings import folded as spelling
from spacy_arbo_el.retrieval.index.faiss_index import FaissIndex
from spacy_arbo_el.retrieval.similarity import Dot

from ..devices import needs_index
from ..expecting import raises, warns
from .encoding import encode, kb_of, sync

WORDS = st.text(st.sampled_from("abß Éx'\"%_"), max_size=6)
IDS = st.sampled_from([f"e{i}" for i in range(6)])
ENTITIES = st.builds(
    Entity,
    IDS,
    WORDS,
    WORDS,
    st.lists(WORDS.filter(bool), max_size=3).map(tuple),
    st.lists(st.sampled_from(["T", "U"]), max_size=2, unique=True).map(tuple),
    st.floats(0, 9),
    st.dictionaries(st.sampled_from("kl"), st.one_of(st.integers(), WORDS), max_size=2),
)
EDITS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), ENTITIES),
        st.tuples(st.just("update"), ENTITIES),
        st.tuples(st.just("upsert"), st.lists(ENTITIES, max_size=4)),
        st.tuples(st.just("remove"), IDS),
        st.tuples(st.just("merge"), IDS, IDS),
        st.tuples(st.just("sync")),
    ),
    max_size=12,
)


@pytest.fixture(autouse=True, scope="module")
def small_batches():
    """Edits of a few entities are several batches."""
    with patch.object(store, "BATCH", 3):
        yield


class Oracle:
    """A knowledge base as a plain dict of entities and a dict of redirects."""

    def __init__(self):
        self.entities, self.redirects = {}, {}

    def find(self, entity_id):
        return entity_id if entity_id in self.entities else self.redirects.get(entity_id)

    def add(self, entity):
        if entity.id in self.entities or entity.id in self.redirects:
            raise ValueError
        self.entities[entity.id] = entity

    def update(self, entity):
        if entity.id not in self.entities:
            raise KeyError
        self.entities[entity.id] = entity

    def upsert(self, entities):
        new = [e.id for e in entities if e.id not in self.entities]
        if any(i in self.redirects for i in new) or len(new) > len(set(new)):
            raise ValueError
        for entity in entities:
            self.entities[entity.id] = entity

    def remove(self, entity_id):
        if self.redirects.pop(entity_id, None):
            return
        if entity_id not in self.entities:
            raise KeyError
        del self.entities[entity_id]
        self.redirects = {old: new for old, new in self.redirects.items() if new != entity_id}

    def merge(self, old, new):
        old, new = self.find(old), self.find(new)
        if old is None or new is None:
            raise KeyError
        if old == new:
            raise ValueError
        left, right = self.entities.pop(old), self.entities[new]
        aliases = [n for n in dict.fromkeys(right.names + left.names) if n != right.title]
        self.entities[new] = Entity(
            new,
            right.title,
            right.description or left.description,
            tuple(aliases),
            tuple(dict.fromkeys(right.types + left.types)),
            left.frequency + right.frequency,
            {**left.meta, **right.meta},
        )
        self.redirects = {k: new if v == old else v for k, v in self.redirects.items()} | {old: new}


def apply(kb, edit, *values):
    if edit == "sync":
        sync(kb)
        return True
    try:
        getattr(kb, edit)(*values)
    except (ValueError, KeyError):
        return False
    return True


def check(kb, oracle):
    assert {entity.id: entity for entity in kb} == oracle.entities
    assert len(kb) == len(oracle.entities)
    assert kb.get_size_entities() == len(oracle.entities)
    assert kb.entities.redirects() == oracle.redirects
    ids = [f"e{i}" for i in range(6)]
    places = kb.entities.positions_of(ids)
    assert [id_ or None for id_ in kb.entities.ids_of(places)] == [oracle.find(i) for i in ids]
    assert places.tolist() == [kb.entities.position(i) for i in ids]
    folded = {spelling(n) for e in oracle.entities.values() for n in e.names}
    assert kb.get_size_aliases() == len(folded)
    for name in folded:
        named = [kb.entities.at(position).id for position in kb.entities.with_name(name)]
        expected = [
            e.id for e in oracle.entities.values() if name in [spelling(n) for n in e.names]
        ]
        assert sorted(named) == sorted(expected)
        candidates = [c.entity_ for c in kb.get_alias_candidates(name.upper())]
        assert spelling(name.upper()) != name or sorted(candidates) == sorted(expected)
    for kind in "TU":
        ids = kb.entities.ids_of(kb.entities.of_types([kind])).tolist()
        expected = [e.id for e in oracle.entities.values() if not e.types or kind in e.types]
        assert sorted(ids) == sorted(expected)


def check_vectors(kb):
    sync(kb)
    owners, vectors = kb.rows.owners, kb.rows.array()
    for position, entity in kb.entities.items():
        expected = encode(Names()(entity))
        np.testing.assert_array_equal(vectors[owners == position], expected)
        np.testing.assert_array_equal(kb.get_vector(entity.id), expected[0])
    alive = {position for position, _ in kb.entities.items()}
    assert set(owners[owners >= 0].tolist()) == alive


def apply_to_both(kb, oracle, edits):
    for edit in edits:
        done = apply(kb, *edit)
        assert edit == ("sync",) or done == apply(oracle, *edit), edit
        check(kb, oracle)


@given(edits=EDITS)
def test_edits_in_memory(edits):
    kb, oracle = ArboKB(Vocab()), Oracle()
    apply_to_both(kb, oracle, edits)
    for _ in ("before all have vectors", "and with them"):
        again = ArboKB(Vocab()).from_bytes(kb.to_bytes())
        check(again, oracle)
        check_vectors(again)
        check_vectors(kb)


@given(edits=EDITS, dtype=st.sampled_from(["float32", "float16"]))
def test_edits_in_a_folder(edits, dtype, tmp_path):
    oracle = Oracle()
    with ArboKB.create(tmp_path / "kb", dtype=dtype, overwrite=True) as kb:
        apply_to_both(kb, oracle, edits)
        check_vectors(kb)
        kb.to_disk(tmp_path / "copy")
    for name in ("kb", "copy"):
        assert verify(tmp_path / name) == []
        again = ArboKB.for_reading(tmp_path / name)
        check(again, oracle)
        assert again.in_sync
        check_vectors(again)


def test_one_writer_at_a_time_and_readers_reload_its_changes(tmp_path):
    kb_of(Entity("a", "A")).to_disk(tmp_path / "kb")
    reader = ArboKB.for_reading(tmp_path / "kb")
    with ArboKB.open(tmp_path / "kb") as writer:
        with raises("being edited by another program"):
            ArboKB.open(tmp_path / "kb")
        writer.add(Entity("b", "B"))
        sync(writer)
        before = reader.entities
        assert reader.reload_if_changed()
        assert len(reader) == 2
        assert len(before) == 1, "another thread may be reading the earlier state"
        assert sync(reader) == 0
        assert len(reader.rows) == 2
        assert not reader.reload_if_changed()
        sync(writer, "another encoder")
        assert not reader.reload_if_changed()
        assert reader.fingerprint == "x"
        assert sync(reader, "another encoder") == 0
        assert sync(reader) == 0
        writer.add(Entity("c", "C"))
        assert reader.reload_if_changed()
        assert sync(reader) == 1
    with ArboKB.open(tmp_path / "kb") as writer:
        assert len(writer) == 3
    files = [path.name for path in (tmp_path / "kb").iterdir()]
    kinds = [VectorKind(encoder).name for encoder in ("x", "another encoder")]
    vectors = [f"{kind}.{suffix}" for kind in kinds for suffix in ("bin", "keys", "lock")]
    texts = file_of(repr(Names()))
    assert sorted(files) == sorted(["entities.sqlite", "write.lock", texts, *vectors])
    shutil.rmtree(tmp_path / "kb")
    assert not reader.reload_if_changed()
    assert len(reader) == 3


def add_by_another(path, id_):
    """Add an entity by another program."""
    with ArboKB.open(path) as writer:
        writer.add(Entity(id_, id_.upper()))


@pytest.mark.parametrize("change", ["away", "unreadable", "replaced"])
def test_a_folder_that_was_away_or_replaced_is_followed(tmp_path, change):
    kb, elsewhere = tmp_path / "kb", tmp_path / "elsewhere"
    kb_of(Entity("a", "A")).to_disk(kb)
    reader = ArboKB.for_reading(kb)
    assert sync(reader) == 1
    if change == "replaced":
        kb_of(Entity("a", "Z")).to_disk(kb)
    else:
        moved = kb if change == "away" else kb / "entities.sqlite"
        moved.rename(elsewhere)
        with warns("W505"):
            assert not reader.reload_if_changed()
        assert "a" in reader
        elsewhere.rename(moved)
    add_by_another(kb, "b")
    assert reader.reload_if_changed()
    assert list(reader) == [Entity("a", "Z" if change == "replaced" else "A"), Entity("b", "B")]
    sync(reader)
    check_vectors(reader)


def test_an_edit_while_another_thread_looks_at_the_folder_is_kept(tmp_path, monkeypatch):
    kb_of(Entity("a", "A")).to_disk(tmp_path / "kb")
    reader, state = ArboKB.for_reading(tmp_path / "kb"), folder.state_of
    editing = Thread(target=lambda: reader.add(Entity("mine", "mine")))

    def while_editing(path):
        editing.start()
        editing.join(0.3)
        return state(path)

    os.utime(tmp_path / "kb" / "entities.sqlite", ns=(1, 1))
    with monkeypatch.context() as patched:
        patched.setattr(folder, "state_of", while_editing)
        assert not reader.reload_if_changed()
    editing.join()
    add_by_another(tmp_path / "kb", "b")
    assert not reader.reload_if_changed()
    assert "mine" in reader


def test_redirects_of_other_ids():
    kb = kb_of(Entity("a", "A"), Entity("b", "B"))
    assert kb.redirect({"old": "a", "older": "old"}) == 2
    assert kb.get("older").id == "a"
    assert "old" in kb
    with raises("'b' can't lead to 'a': 'b' is an entity itself"):
        kb.redirect({"c": "a", "b": "a"})
    with raises("'c' can't lead to 'z': there is no such entity"):
        kb.redirect({"c": "z"})
    with raises("'old' leads to 'a'"):
        kb.add(Entity("old"))
    with raises("both belong to entity 'a'"):
        kb.merge("old", "a")
    assert "c" not in kb


def test_vectors_of_wrong_width_or_range_are_refused():
    kb = kb_of(Entity("a", "A"), dtype="float16")
    with raises("don't fit into float16"):
        sync(kb, "x", lambda texts: np.full((len(texts), 2), 1e6))
    assert not kb.in_sync
    assert not len(kb.rows)
    sync(kb, "x", lambda texts: np.ones((len(texts), 2)))
    kb.add(Entity("b", "B"))
    with raises("3 wide, but those of the knowledge base are 2 wide"):
        sync(kb, "x", lambda texts: np.ones((len(texts), 3)))
    with raises("dtype must be one of 'float32', 'float16', not 'int8'"):
        ArboKB(Vocab(), dtype="int8")
    with raises("frequency of entity 'a'"):
        Entity("a", frequency=-1)


def failing_stream():
    for i in range(10):
        yield Entity(f"n{i}", f"name {i}")
    raise RuntimeError("the source broke off")


def test_part_of_a_transaction_fails_without_the_rest(tmp_path):
    with ArboKB.create(tmp_path / "kb") as kb:
        with kb.transaction():
            kb.add(Entity("a", "A"))
            with pytest.raises(RuntimeError, match="broke off"):
                kb.add(failing_stream())
            with pytest.raises(KeyError, match="no entity 'z'"):
                kb.remove(["a", "z"])
            with raises("occurs twice"):
                kb.add([*(Entity(f"n{i}") for i in range(10)), Entity("a")])
            kb.add(Entity("b", "B"))
        assert [entity.id for entity in kb] == ["a", "b"]
        with raises("can't be part of a transaction"), kb.transaction():
            sync(kb)
        with pytest.raises(RuntimeError), kb.transaction():
            kb.add(Entity("c", "C"))
            raise RuntimeError
        # Transactions that failed changed nothing in the folder.
        assert len(ArboKB.for_reading(tmp_path / "kb")) == 2


def test_removing_an_entity_with_an_id_that_leads_to_it(monkeypatch):
    monkeypatch.setattr("spacy_arbo_el.kb.store.BATCH", 2)
    kb = kb_of(*(Entity(i, i) for i in "ABCD"))
    kb.merge("A", "B"), kb.merge("C", "D")
    assert kb.remove(["A", "B", "A"]) == 2
    assert [entity.id for entity in kb] == ["D"]
    assert len(kb) == 1
    kb.remove("C")
    assert "D" in kb, "an id that leads to another is removed alone"
    assert "C" not in kb
    kb.database.rows("INSERT INTO trigram (trigram) VALUES ('integrity-check')")


@pytest.mark.parametrize("copied", [True, False])
def test_what_a_reader_saves_is_consistent(tmp_path, monkeypatch, copied):
    monkeypatch.setattr(database, "IN_MEMORY", 1 << 26 if copied else 0)
    kb = kb_of(Entity("a", "A"))
    sync(kb)
    kb.to_disk(tmp_path / "kb")
    reader = ArboKB.for_reading(tmp_path / "kb")
    with ArboKB.open(tmp_path / "kb") as writer:
        writer.add(Entity("b", "B"))
        sync(writer)
        # A reader with its own copy saves the old state, one without saves the new state.
        reader.to_disk(tmp_path / "saved")
        again = ArboKB(Vocab()).from_bytes(reader.to_bytes())
        assert verify(tmp_path / "saved") == []
        assert len(again) == 1 + (not copied)
        assert len(ArboKB.for_reading(tmp_path / "saved")) == len(again)
    assert sync(reader) == 0
    assert ("b" in reader) == (not copied)
    np.testing.assert_array_equal(reader.get_vector("a"), encode([("A", "")])[0])
    # A reader whose entities are edited does not reload any more; an edit that fails is none.
    with pytest.raises(KeyError):
        reader.remove("nothing")
    add_by_another(tmp_path / "kb", "d")
    assert reader.reload_if_changed()
    assert "d" in reader
    with reader.transaction():
        reader.add(Entity("mine", "mine"))
        assert not reader.storage.is_unedited
    add_by_another(tmp_path / "kb", "c")
    assert not reader.reload_if_changed()
    assert "c" not in reader
    assert "mine" in reader


def test_edits_of_a_closed_knowledge_base_are_an_error(tmp_path):
    kb = ArboKB.create(tmp_path / "kb")
    kb.close()
    with raises("was closed"):
        kb.add(Entity("a", "A"))
    kb = kb_of(Entity("a", "A"))
    with pytest.raises(FileNotFoundError):
        kb.from_disk(tmp_path / "nothing")
    assert len(kb) == 1, "a folder that can't be read changes nothing"


def keep_index(kb, factory="IVF4,SQ8"):
    kb.vectors.keep_index(FaissIndex(factory, "nprobe=2")(kb.rows, Dot()).attached)


@needs_index
def test_a_stored_index_is_not_used_for_other_rows(tmp_path, rng):
    vectors = rng.standard_normal((600, 8)).astype(np.float32)

    def by_number(texts):
        return vectors[[int(title) for title, _ in texts]]

    with ArboKB.create(tmp_path / "kb") as writer:
        writer.add(Entity(f"e{i}", str(i)) for i in range(600))
        sync(writer, "x", by_number)
        keep_index(writer)
        reader = ArboKB.for_reading(tmp_path / "kb")
        assert reader.vectors.index.about["rows"] == 600
        writer.remove([f"e{i}" for i in range(300)])
        sync(writer, "y", by_number)
        assert reader.reload_if_changed()
        assert sync(reader, "y", by_number) == 0
        assert reader.vectors.index is None
        assert (reader.rows.owners >= 0).sum() == 300
        keep_index(writer)
        again = ArboKB.for_reading(tmp_path / "kb")
        assert sync(again, "x", by_number) == 0
        assert again.vectors.index is None
        assert sync(again, "y", by_number) == 0
        assert again.vectors.index.about["rows"] == 300
        assert len(again.rows) == 300


@needs_index
def test_a_reader_whose_index_was_replaced_saves_without_it(tmp_path, rng):
    with ArboKB.create(tmp_path / "kb") as writer:
        writer.add(Entity(f"e{i}", str(i)) for i in range(300))
        sync(writer, "x", lambda texts: rng.standard_normal((len(texts), 8)))
        keep_index(writer)
        reader = ArboKB.for_reading(tmp_path / "kb")
        reader.to_disk(tmp_path / "with")
        keep_index(writer, "IVF6,SQ8")
        reader.to_disk(tmp_path / "without")
    assert verify(tmp_path / "with") == []
    assert verify(tmp_path / "without") == []
    assert ArboKB.for_reading(tmp_path / "with").vectors.index.about["kind"] == "IVF4,SQ8"
    assert ArboKB.for_reading(tmp_path / "without").vectors.index is None
