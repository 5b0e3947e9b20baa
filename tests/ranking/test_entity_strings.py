"""The strings of entities, updated edit by edit, against reading all of them anew."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el import Entity, MentionRecord
from spacy_arbo_el.ranking import entity_strings
from spacy_arbo_el.ranking.entity_strings import EntityStrings

from .strings import datastore_of, inputs

IDS = ["a", "b", "c", "d"]
strings = st.text(alphabet="abX 1", max_size=6)
ids = st.sampled_from(IDS)


class Edits:
    """Edits that hypothesis chooses."""

    def __init__(self, datastore, data):
        self.kb, self.exemplars, self.draw = datastore.kb, datastore.exemplars, data.draw

    def upsert(self):
        id_ = self.draw(ids)
        if id_ not in self.kb.entities.redirects():
            self.kb.upsert(Entity(id_, self.draw(strings) or id_, aliases=[self.draw(strings)]))

    def undo(self):
        try:
            with self.kb.transaction():
                self.upsert()
                raise InterruptedError
        except InterruptedError:
            pass

    def remove(self):
        id_ = self.draw(ids)
        if id_ in self.kb:
            self.kb.remove(id_)

    def merge(self):
        present = [entity.id for entity in self.kb]
        if len(present) > 1:
            self.kb.merge(*present[:2])

    def learn(self):
        number = self.draw(st.integers(0, 5))
        kb_ids = tuple(self.draw(st.lists(ids, max_size=2)))
        texts = (self.draw(strings), "", "", "THING", self.draw(strings), "doc")
        self.exemplars.extend([MentionRecord((f"doc{number}", 0, 1), kb_ids, *texts)], inputs(1))

    def forget(self):
        if len(self.exemplars):
            record = self.draw(st.sampled_from(self.exemplars.records))
            self.exemplars.remove([record.key])


def mention(text, normalized=None):
    return MentionRecord(("doc", 0, 1), (), text, normalized=normalized or text)


@given(st.data(), st.sampled_from([1, 2, 16384]))
def test_updated_strings_are_those_that_are_read_anew(data, counted):
    datastore = datastore_of()
    edits = Edits(datastore, data)
    kinds = [edits.upsert, edits.undo, edits.remove, edits.merge, edits.learn, edits.forget]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(entity_strings, "MAX_COUNTED", counted)
        current = EntityStrings(datastore)
        for _ in range(data.draw(st.integers(1, 5))):
            for edit in data.draw(st.lists(st.sampled_from(kinds), max_size=3)):
                edit()
            current = current.updated(datastore) or EntityStrings(datastore)
            anew = EntityStrings(datastore)
            assert current.has_exemplar.tolist() == anew.has_exemplar.tolist()
            mentions = [data.draw(strings), "a", "X 1"]
            records = [mention(text) for text in mentions]
            assert current.owners(records, 9).tolist() == anew.owners(records, 9).tolist()
            entities = np.tile(np.arange(-1, datastore.kb.entities.positions), (3, 1))
            flags = [s.has_only_id(entities).tolist() for s in (current, anew)]
            assert flags[0] == flags[1]
            both = (s.index.similarity(mentions, entities) for s in (current, anew))
            for left, right in zip(*both):
                np.testing.assert_allclose(left, right, atol=1e-6)


def test_entities_with_names_that_begin_with_a_proper_name_where_they_are_few():
    titles = ["Halix", "Halix Oil", "HALIX  Foods Inc.", "Halixor", "New A", "New B", "New C"]
    strings = EntityStrings(datastore_of(*(Entity(title, title) for title in titles)))
    records = [mention("Halix"), mention("halix"), mention("New"), mention("Oil")]
    assert strings.beginning_with(records, 2).tolist() == [[1, 2], [-1, -1], [-1, -1], [-1, -1]]


def test_entities_with_the_string_of_a_mention():
    datastore = datastore_of(
        Entity("a", "far off"), Entity("b", "x", aliases=["Tumour"]), Entity("c", "bb")
    )
    datastore.exemplars.extend([MentionRecord(("doc", 0, 1), ("b",), "BB")], inputs(1))
    owners = EntityStrings(datastore).owners
    records = [mention("Bb"), mention("no"), mention("tumour", "tumor"), mention("Far Off")]
    assert owners(records, 2).tolist() == [[1, 2], [-1, -1], [1, -1], [0, -1]]


def test_weights_come_from_some_entities_of_a_large_knowledge_base(monkeypatch):
    """Also by a part of the entities, an n-gram of all names weighs less than a rare one."""
    monkeypatch.setattr(entity_strings, "MAX_COUNTED", 4)
    names = [f"common {'rare' if i % 8 == 0 else 'usual'}" for i in range(64)]
    datastore = datastore_of(*(Entity(f"E{i}", name) for i, name in enumerate(names)))
    index = EntityStrings(datastore).index
    (by_name,) = index.similarity(["rare"], np.array([[1, 8]])).ngrams[0]
    assert by_name[1] > by_name[0]
    assert by_name[0] > 0


def test_the_share_of_exemplars_with_the_surface_form_of_a_mention():
    datastore = datastore_of(*(Entity(id_, f"name {id_}") for id_ in IDS))
    owners = ["a", "a", "b", "c"]
    texts = ["Flu", "flu", "FLU", "cold"]
    for number, (id_, text) in enumerate(zip(owners, texts)):
        records = [replace(mention(text), key=(f"doc{number}", 0, 1), kb_ids=(id_,))]
        datastore.exemplars.extend(records, inputs(1))
    strings = EntityStrings(datastore)
    every = np.array([[0, 1, 2, 3, -1]])
    shares = strings.attested([mention("flu")], every)
    assert shares[0] == pytest.approx([2 / 3, 1 / 3, 0, 0, 0])
    # Without the exemplars of an entity, it is as if there were none of it.
    hidden = np.array([True, False, False, False])
    assert strings.attested([mention("flu")], every, hidden)[0] == pytest.approx([0, 1, 0, 0, 0])
    assert not strings.attested([mention("fever")], every).any()
