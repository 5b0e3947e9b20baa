"""Threads and processes that link while others edit: each call sees one state."""

import json
import os
import threading
import time
import traceback
from functools import partial

import pytest
import spacy
import torch

from spacy_arbo_el import ArboKB, Entity, NewEntities, find_linker
from spacy_arbo_el.kb.store import EntityStore
from spacy_arbo_el.mentions.record import text_fingerprint

from ..devices import needs_fork
from ..linker.conftest import build, build_tiny
from ..linker.world import DEV, ENTITIES, annotated
from ..threads import PATIENCE, run_in_threads, wait_until
from .invented import docs_of, many

NLP = spacy.blank("xx")
RANKER = {"reranker": {"@misc": "spacy-arbo-el.FeatureRanker.v1"}}


def tiny_linker(tiny_bert, **settings):
    """A linker over the small world, with a tiny encoder."""
    return find_linker(build_tiny(tiny_bert, **settings))


@pytest.fixture
def nlp(tiny_bert):
    return build_tiny(tiny_bert)


def described(linker, texts):
    """The links of documents, in plain values that can be compared."""
    docs = [annotated(NLP, text) for text in texts]
    return tuple(
        (link.kb_id, link.score, tuple(link.ids), tuple(link.scores), str(link.evidence))
        for of_doc in linker.predict(docs)
        for link in of_doc.values()
    )


def test_an_entity_is_not_removed_while_it_is_looked_up(monkeypatch):
    linker = find_linker(build([Entity("z", "Zorblat")], []))
    at_all, removing = EntityStore.at_all, threading.Thread(target=linker.kb.remove, args=["z"])

    def while_removing(store, positions):
        removing.start()
        removing.join(0.3)
        return at_all(store, positions)

    monkeypatch.setattr(EntityStore, "at_all", while_removing)
    assert linker.datastore.named(["zorblat"]) == {"zorblat": 0}
    removing.join()


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
    with linker.datastore.snapshot(), pytest.raises(RuntimeError, match="E770"):
        linker.kb.add(Entity("new", "new"))
    linker.kb.add(Entity("new", "new"))


def test_a_search_stays_in_use_when_another_program_edits_the_folder(tmp_path, linker):
    linker.kb.to_disk(tmp_path / "kb")
    linker.set_kb(tmp_path / "kb")
    expected = described(linker, DEV[:1])
    with linker.datastore.snapshot() as snapshot:
        with ArboKB.open(tmp_path / "kb") as other:
            other.add(Entity("new", "new"))
        assert linker.kb.has_changed_outside
        assert linker.datastore.refresh() is snapshot
        with linker.datastore.snapshot() as within:
            assert within is snapshot
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


@pytest.mark.attack
def test_threads_that_update_new_entities_lose_nothing(attacks):
    # No invented name is linked, however similar it is to one that is known.
    nlp = build(threshold=1.0)
    linker = find_linker(nlp)
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
        assert len(again.rows) == len(texts)
        assert len(texts) == sum(len(one.members) for one in again)
        plain = {text_fingerprint(doc.text) for doc in docs_of(nlp, texts)}
        assert {record.key[0] for record in again.rows.records} == plain
        assert len(set(again.clusters.ids)) == len(again.clusters.ids)
        assert again.documents == len(texts)


N_PROCESSES = 3
TEXTS = [*DEV[:3], "Nobody knew the [zorblat|x] yet."]


def links(nlp):
    linker = find_linker(nlp)
    found = linker.predict([annotated(nlp, text) for text in TEXTS])
    return [[link.kb_id, *link.ids, *link.scores] for of_doc in found for link in of_doc.values()]


def read(nlp, folder, calls, pipe):
    """Link so many times, and on until both states were read. Report the different answers."""
    find_linker(nlp).set_kb(folder)
    answers = []

    def has_read_both():
        answer = links(nlp)
        if answer not in answers:
            answers.append(answer)
        return len(answers) > 1

    for _ in range(calls):
        has_read_both()
    wait_until(has_read_both, "an answer from each of the two states")
    os.write(pipe, json.dumps(answers).encode())


@pytest.mark.attack
@needs_fork
def test_processes_read_one_state_while_another_edits(tiny_bert, tmp_path, attacks):
    threads, calls, edits = torch.get_num_threads(), attacks(15, 2500), 0
    # A forked process has no threads of torch.
    torch.set_num_threads(1)
    nlp = build_tiny(tiny_bert)
    folder, new = tmp_path / "kb", Entity("new", "zorblat")
    ArboKB(nlp.vocab, ENTITIES).to_disk(folder)
    find_linker(nlp).set_kb(folder)
    states = [links(nlp)]
    with ArboKB.open(folder) as kb:
        kb.add(new)
        states.append(links(nlp))
        assert "new" in states[1][-1]
        assert "new" not in states[0][-1]
        pipes, processes = [os.pipe() for _ in range(N_PROCESSES)], []
        for _, pipe in pipes:
            process = os.fork()
            if not process:  # pragma: no cover - another process
                try:
                    read(nlp, folder, calls, pipe)
                except BaseException:
                    os.write(pipe, json.dumps(traceback.format_exc()).encode())
                os._exit(0)
            processes.append(process)
        running = set(processes)
        while running:
            for edit in (partial(kb.remove, "new"), partial(kb.add, new)):
                edit()
                time.sleep(0.005)
            edits += 2
            running = {process for process in running if os.waitpid(process, os.WNOHANG)[0] == 0}
    reports = []
    for reading, writing in pipes:
        os.close(writing)
        reports.append(json.loads(os.read(reading, 1 << 20)))
        os.close(reading)
    torch.set_num_threads(threads)
    documents = N_PROCESSES * calls * len(TEXTS)
    print(f"{documents} documents by {N_PROCESSES} processes, {edits} edits between")
    assert all(isinstance(r, list) for r in reports), "".join(
        r for r in reports if isinstance(r, str)
    )
    assert all(answer in states for report in reports for answer in report)
