"""The strings of entities, updated edit by edit, against reading all of them anew."""

from types import SimpleNamespace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.vocab import Vocab

from spacy_arbo_el.encoders.inputs import SpanInputs
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.mentions.records import MentionRecord
from spacy_arbo_el.reranking.entity_strings import EntityStrings
from spacy_arbo_el.retrieval.exemplars import ExemplarStore
from spacy_arbo_el.revision import ChangeLog

IDS = ["a", "b", "c", "d"]
strings = st.text(alphabet="abX 1", max_size=6)
ids = st.sampled_from(IDS)


def inputs(count):
    zeros = np.zeros(count, dtype=np.int32)
    offsets = np.arange(count + 1, dtype=np.int64)
    return SpanInputs(zeros, offsets, np.arange(count), zeros, zeros, zeros)


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


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_updated_strings_are_those_that_are_read_anew(data):
    datastore = SimpleNamespace(kb=ArboKB(Vocab()), exemplars=ExemplarStore(), normalizer=None)
    edits = Edits(datastore, data)
    kinds = [edits.upsert, edits.undo, edits.remove, edits.merge, edits.learn, edits.forget]
    current = EntityStrings.read(datastore, 1, 3)
    for _ in range(data.draw(st.integers(1, 5))):
        for edit in data.draw(st.lists(st.sampled_from(kinds), max_size=3)):
            edit()
        current = current.updated(datastore) or EntityStrings.read(datastore, 1, 3)
        anew = EntityStrings.read(datastore, 1, 3)
        assert current.has_exemplar.tolist() == anew.has_exemplar.tolist()
        assert current.has_only_id.tolist() == anew.has_only_id.tolist()
        mentions = [data.draw(strings), "a", "X 1"]
        assert current.index.owners(mentions, 9).tolist() == anew.index.owners(mentions, 9).tolist()
        entities = np.tile(np.arange(-1, datastore.kb.entities.positions), (3, 1))
        both = (s.index.similarity(mentions, entities) for s in (current, anew))
        for left, right in zip(*both):
            np.testing.assert_allclose(left, right, atol=1e-6)


def test_another_knowledge_base_is_read_anew():
    datastore = SimpleNamespace(kb=ArboKB(Vocab()), exemplars=ExemplarStore(), normalizer=None)
    read = EntityStrings.read(datastore, 1, 3)
    assert read.updated(datastore) is not None
    datastore.kb = ArboKB(Vocab(), [Entity("a", "a")])
    assert read.updated(datastore) is None


def test_changes_that_were_forgotten_are_not_known(monkeypatch):
    monkeypatch.setattr(ChangeLog, "LIMIT", 3)
    log = ChangeLog()
    log.add([1, 2])
    assert log.since(0) == {1, 2} and log.since(1) == {2} and log.since(2) == set()
    log.add([3, 4, 5, 6, 7])
    assert log.total == 7 and log.since(4) == {5, 6, 7} and log.since(2) is None
