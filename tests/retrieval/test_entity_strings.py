"""The strings of entities, updated edit by edit, against reading all of them anew."""

from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el import Entity, MentionRecord
from spacy_arbo_el.names.comparison import NGRAMS
from spacy_arbo_el.retrieval import entity_strings
from spacy_arbo_el.retrieval.exemplars import forms_of

from ..ranking.strings import datastore_of, inputs, strings_of

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
        records = []
        for number in self.draw(st.lists(st.integers(0, 5), min_size=1, max_size=3)):
            kb_ids = tuple(self.draw(st.lists(ids, max_size=2)))
            texts = (self.draw(strings), "", "", "THING", self.draw(strings), "doc")
            records.append(MentionRecord((f"doc{number}", 0, 1), kb_ids, *texts))
        self.exemplars.extend(records, inputs(len(records)))

    def forget(self):
        if len(self.exemplars):
            record = self.draw(st.sampled_from(self.exemplars.records))
            self.exemplars.remove([record.key])


def mention(text, normalized=None):
    return MentionRecord(("doc", 0, 1), (), text, normalized=normalized or text)


@given(st.data(), st.sampled_from([1, 100]))
def test_updated_strings_are_those_that_are_read_anew(data, most_names):
    datastore = datastore_of()
    edits = Edits(datastore, data)
    kinds = [edits.upsert, edits.undo, edits.remove, edits.merge, edits.learn, edits.forget]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(entity_strings, "MAX_NAMES", most_names)
        current = strings_of(datastore)
        for _ in range(data.draw(st.integers(1, 5))):
            for edit in data.draw(st.lists(st.sampled_from(kinds), max_size=3)):
                edit()
            current = strings_of(datastore, current)
            anew = strings_of(datastore)
            assert current.has_exemplar.tolist() == anew.has_exemplar.tolist()
            mentions = [data.draw(strings), "a", "X 1"]
            forms = list(map(forms_of, datastore.exemplars.records))
            for form in chain(*forms):
                rows = [form in group for group in forms]
                assert datastore.exemplars.with_form(form) == np.flatnonzero(rows).tolist()
            records = [mention(text) for text in mentions]
            assert current.owners(records, 9).tolist() == anew.owners(records, 9).tolist()
            entities = np.tile(np.arange(-1, datastore.kb.entities.positions), (3, 1))
            assert (current.has_only_id(entities) == anew.has_only_id(entities)).all()
            similarities = (s.similarity(mentions, entities) for s in (current, anew))
            for first, second in zip(*similarities):
                np.testing.assert_allclose(first, second, atol=1e-6)
            nearest = [s.nearest_names(mentions, entities).tolist() for s in (current, anew)]
            assert nearest[0] == nearest[1]


def test_only_the_names_of_candidates_are_read(monkeypatch):
    strings, read = strings_of(datastore_of(*(Entity(f"E{i}", "x") for i in range(10)))), []
    at_all = strings._entities.at_all
    monkeypatch.setattr(strings._entities, "at_all", lambda e: read.append(e) or at_all(e))
    strings.similarity(["x", "y"], np.array([[5, -1], [2, 5]]))
    strings.similarity(["x"], np.array([[2, 7]]))
    assert [strings.names_of(entity) for entity in (5, 9)] == [["x"], ["x"]]
    assert read == [[2, 5], [7], [9]]


def test_entities_with_names_that_begin_with_a_proper_name_where_they_are_few():
    titles = ["Halix", "Halix Oil", "HALIX  Foods Inc.", "Halixor", "New A", "New B", "New C"]
    strings = strings_of(datastore_of(*(Entity(title, title) for title in titles)))
    records = [mention("Halix"), mention("halix"), mention("New"), mention("Oil")]
    assert strings.beginning_with(records, 2).tolist() == [[1, 2], [-1, -1], [-1, -1], [-1, -1]]


def test_entities_with_the_string_of_a_mention():
    datastore = datastore_of(
        Entity("a", "far off"), Entity("b", "x", aliases=["Tumour"]), Entity("c", "bb")
    )
    datastore.exemplars.extend([MentionRecord(("doc", 0, 1), ("b",), "BB")], inputs(1))
    owners = strings_of(datastore).owners
    records = [mention("Bb"), mention("no"), mention("tumour", "tumor"), mention("Far Off")]
    assert owners(records, 2).tolist() == [[1, 2], [-1, -1], [1, -1], [0, -1]]


def test_the_share_of_exemplars_with_the_surface_form_of_a_mention():
    datastore = datastore_of(*(Entity(id_, f"name {id_}") for id_ in IDS))
    owners = ["a", "a", "b", "c"]
    texts = ["Flu", "flu", "FLU", "cold"]
    for number, (id_, text) in enumerate(zip(owners, texts)):
        records = [replace(mention(text), key=(f"doc{number}", 0, 1), kb_ids=(id_,))]
        datastore.exemplars.extend(records, inputs(1))
    strings = strings_of(datastore)
    every = np.array([[0, 1, 2, 3, -1]])
    names, forms = strings.similarity(["name c", "flu"], every.repeat(2, axis=0))[NGRAMS] > 0.99
    assert names.nonzero()[1].tolist() == [2]
    assert forms.nonzero()[1].tolist() == [0, 1]
    shares = strings.attested([mention("flu")], every)
    assert shares[0] == pytest.approx([2 / 3, 1 / 3, 0, 0, 0])
    # Without the exemplars of an entity, it is as if there were none of it.
    hidden = np.array([True, False, False, False])
    assert strings.attested([mention("flu")], every, hidden)[0] == pytest.approx([0, 1, 0, 0, 0])
    assert not strings.attested([mention("fever")], every).any()
