"""Threads that link while others edit: each call sees one state, before or after an edit."""

import threading
from functools import partial

import pytest
import spacy

from spacy_arbo_el.discovery.new_entities import NewEntities
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.mentions.record import text_fingerprint

from ..devices import needs_fork
from ..linker.conftest import build
from ..linker.world import DEV, ENTITIES, annotated
from ..threads import PATIENCE, forked, run_in_threads, wait_for, wait_until
from .invented import docs_of, many

NLP = spacy.blank("xx")
RANKER = {"reranker": {"@misc": "spacy-arbo-el.FeatureRanker.v1"}}


@pytest.fixture
def linker(tiny_bert):
    return tiny_linker(tiny_bert)


def tiny_linker(tiny_bert, **settings):
    """A linker over the small world, with a tiny encoder."""
    encoder = {
        "@architectures": "spacy-arbo-el.TransformerEncoder.v1",
        "name": str(tiny_bert),
        "window": 32,
    }
    return build(model={"mention": encoder}, **settings).get_pipe("arbo_linker")


def described(linker, texts):
    """The links of documents, in plain values that can be compared."""
    docs = [annotated(NLP, text) for text in texts]
    return tuple(
        (link.kb_id, link.score, tuple(link.ids), tuple(link.scores), str(link.evidence))
        for of_doc in linker.predict(docs)
        for link in of_doc.values()
    )


class States:
    """The answers of a linker in every state that its editor makes.

    An edit is made while no answer is looked up in the table: the table then has the answer of the
    state before and of the state after.
    """

    def __init__(self, linker, texts):
        self.linker, self.texts = linker, texts
        self.answers = {described(linker, texts)}

    def add(self, make_edit):
        make_edit()
        self.answers.add(described(self.linker, self.texts))


def edits(linker, number):
    """One round of all kinds of edits; after it the linker is as before."""
    kb = linker.kb
    name = f"extra{number}"
    doc = annotated(NLP, f"Number {number}: the [Amazon|shop] of another kind of thing.")
    (span,) = doc.ents
    yield lambda: kb.add(Entity(name, "Mercury", "a god of the Romans"))
    yield lambda: linker.feedback.learn(span, name)
    yield lambda: kb.update(Entity(name, "Amazon", "a woman who fights"))
    yield lambda: linker.feedback.reject_link(span, "shop")
    yield lambda: linker.feedback.add_exemplars(
        [annotated(NLP, f"The [jaguar|{name}] number {number}.")]
    )
    yield lambda: linker.refresh()
    yield lambda: linker.feedback.remove_exemplars(
        annotated(NLP, f"The [jaguar|x] number {number}.").ents
    )
    yield lambda: linker.feedback.forget(span)
    yield lambda: kb.remove(name)


@pytest.mark.attack
@pytest.mark.parametrize("settings", [{}, RANKER], ids=["plain", "ranker"])
def test_each_call_sees_one_state_while_other_threads_edit(attacks, tiny_bert, settings):
    linker = tiny_linker(tiny_bert, **settings)
    states = States(linker, DEV[:4])
    n_threads, n_calls, seconds = 8, attacks(5, 2000), attacks(PATIENCE, 7200)
    stop, seen = threading.Event(), []

    def link():
        for _ in range(n_calls):
            seen.append(described(linker, DEV[:4]))

    def edit():
        for number in range(10**6):
            for make_edit in edits(linker, number):
                if stop.is_set():
                    return
                states.add(make_edit)
                if number % 7 == 0:
                    linker.to_bytes(exclude=["model", "vocab"])

    def link_then_stop():
        try:
            run_in_threads(*[link] * n_threads, seconds=seconds)
            wait_until(lambda: len(states.answers) > 1, "the first edit")
        finally:
            stop.set()

    run_in_threads(edit, link_then_stop, seconds=seconds)
    print(f"{len(seen)} calls, {len(states.answers)} states")
    assert len(seen) == n_threads * n_calls
    assert set(seen) <= states.answers


def test_the_first_calls_of_many_threads_encode_once(linker):
    """`learn`, then eight threads: this broke the pipeline for good."""
    linker.refresh()
    calls = []
    original = linker.encoder.encode_texts
    linker.encoder.encode_texts = lambda inputs: (calls.append(len(inputs)), original(inputs))[1]
    linker.kb.add(Entity("new", "thing that is new"))
    linker.feedback.learn(annotated(NLP, "A [jaguar|cat] again.").ents[0], "new")
    run_in_threads(*[lambda: described(linker, DEV)] * 8)
    assert calls == [1]


def test_saving_while_threads_link_and_edit_ends(tmp_path, tiny_bert, linker):
    stop = threading.Event()

    def link():
        while not stop.is_set():
            described(linker, DEV[:2])

    def save():
        try:
            for number in range(3):
                linker.kb.add(Entity(f"n{number}", f"number {number}"))
                linker.to_disk(tmp_path / "linker")
                copy = tiny_linker(tiny_bert, entities=[], train=[]).from_disk(tmp_path / "linker")
                assert len(copy.kb) == len(ENTITIES) + number + 1
        finally:
            stop.set()

    run_in_threads(link, link, save)


def test_a_saved_state_is_one_state(tiny_bert, linker):
    """The exemplars and the knowledge base that are saved belong together."""
    stop = threading.Event()

    def edit():
        number = 0
        while not stop.is_set():
            number += 1
            doc = annotated(NLP, f"The [jaguar|n{number}] number {number}.")
            with linker.datastore.editing():
                linker.kb.add(Entity(f"n{number}", f"number {number}"))
                linker.feedback.add_exemplars([doc])
            stop.wait(0.01)  # thousands of edits would make each save slow

    def save():
        try:
            for _ in range(4):
                data = linker.to_bytes(exclude=["model", "vocab"])
                copy = tiny_linker(tiny_bert, entities=[], train=[])
                copy.from_bytes(data, exclude=["model", "vocab"])
                labels = {i for record in copy.exemplars.records for i in record.kb_ids}
                assert labels <= {entity.id for entity in copy.kb}
                assert len(labels - {e.id for e in ENTITIES}) == len(copy.kb) - len(ENTITIES)
        finally:
            stop.set()

    run_in_threads(edit, save)


def test_an_edit_within_linking_is_an_error(linker):
    with linker.datastore.reading(), pytest.raises(RuntimeError, match="E770"):
        linker.kb.add(Entity("new", "new"))
    linker.kb.add(Entity("new", "new"))


def test_a_search_stays_in_use_when_another_program_edits_the_folder(tmp_path, linker):
    linker.kb.to_disk(tmp_path / "kb")
    linker.set_kb(tmp_path / "kb")
    expected = described(linker, DEV[:1])
    with linker.datastore.reading() as retriever:
        with ArboKB.open(tmp_path / "kb") as other:
            other.add(Entity("new", "new"))
        assert linker.kb.has_changed_outside
        assert linker.datastore.refresh() is retriever
        with linker.datastore.reading() as within:
            assert within is retriever
        assert described(linker, DEV[:1]) == expected
    described(linker, DEV[:1])
    assert "new" in linker.kb


def test_a_knowledge_base_can_be_replaced_while_threads_link(linker):
    kbs = [ArboKB(linker.vocab, ENTITIES), ArboKB(linker.vocab, ENTITIES[:5])]
    answers = set()
    for kb in kbs:
        linker.set_kb(lambda _, kb=kb: kb)
        answers.add(described(linker, DEV[:3]))
    stop, seen = threading.Event(), set()

    def link():
        while not stop.is_set():
            seen.add(described(linker, DEV[:3]))

    def replace():
        try:
            for number in range(20):
                linker.set_kb(lambda _, number=number: kbs[number % 2])
                linker.refresh()
            wait_until(lambda: seen, "the first call that links")
        finally:
            stop.set()

    run_in_threads(link, link, link, replace)
    assert seen <= answers


@needs_fork
def test_a_process_that_is_forked_while_threads_read_and_edit_can_link_and_edit(linker):
    expected = described(linker, DEV[:1])
    is_reading, done = threading.Event(), threading.Event()

    def read():
        with linker.datastore.reading():
            is_reading.set()
            wait_for(done, "the forked process")

    def edit():
        wait_for(is_reading, "the reader")
        with linker.datastore.editing():
            pass

    def links_and_edits():
        same = described(linker, DEV[:1]) == expected
        linker.kb.add(Entity("new", "new"))
        return same and "new" in linker.kb

    def fork():
        wait_for(is_reading, "the reader")
        assert forked(links_and_edits)
        done.set()

    run_in_threads(read, edit, fork)


@pytest.mark.attack
def test_threads_that_update_new_entities_lose_nothing(attacks):
    # No invented name is linked, however similar it is to one that is known.
    nlp = build(threshold=1.0)
    linker = nlp.get_pipe("arbo_linker")
    for seed in range(attacks(1, 10)):
        texts = list(dict.fromkeys(many(attacks(400, 2000), seed)))
        texts = [f"{text} It was number {number}." for number, text in enumerate(texts * 8)]
        linker.new_entities = NewEntities()

        def work(part):
            for start in range(0, len(part), 10):
                later = linker.corpus.discover(docs_of(nlp, part[start : start + 10]))
                linker.new_entities.update(later)
            for one in linker.new_entities[:3]:
                linker.new_entities.resolve(one.id)
            NewEntities.from_bytes(linker.new_entities.to_bytes())

        run_in_threads(*[partial(work, texts[i::8]) for i in range(8)])
        again = NewEntities.from_bytes(linker.new_entities.to_bytes())
        assert len(again.rows) == len(texts) == sum(len(one.members) for one in again)
        plain = {text_fingerprint(doc.text) for doc in docs_of(nlp, texts)}
        assert {record.key[0] for record in again.rows.records} == plain
        assert len(set(again.clusters.ids)) == len(again.clusters.ids)
        assert again.documents == len(texts)


def test_edits_of_new_entities_from_many_threads_are_all_kept():
    nlp = build(threshold=0.6)
    linker = nlp.get_pipe("arbo_linker")
    linker.new_entities = linker.corpus.discover(docs_of(nlp, many(60)))
    ids, before = linker.new_entities.ids, len(linker.new_entities.rows)

    def work(name):
        linker.new_entities.reject(name)
        linker.new_entities.to_bytes()

    run_in_threads(*[partial(work, name) for name in ids])
    assert not len(linker.new_entities) and len(linker.new_entities.rows) == before
    numbers = [entry["n"] for entry in linker.new_entities.log if entry["action"] == "reject"]
    assert numbers[-1] - numbers[0] == len(ids) - 1 and numbers == sorted(set(numbers))
