"""New entities that grow from document to document, and are accepted into the knowledge base."""

import copy
import os
import random
import threading
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import spacy
from sklearn.metrics import adjusted_rand_score
from spacy.tokens import Span
from spacy.training import Example

from spacy_arbo_el.discovery.new_entities import NewEntities
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.mentions.record import text_fingerprint

from ..linker.conftest import build, build_bundled
from ..linker.world import DEV, annotated, without_links
from ..threads import forked, run_in_threads, wait_for

NEW = [
    "The [Zorblat|x] landed on the roof.",
    "They sold [Quimby's fizzle|y] in the shop.",
    "A green [Zorblat|x] landed on the roof again.",
    "We drank [Quimby's fizzle|y] in the shop, and [Quimby's fizzle|y] at home.",
    "Every [Zorblat|x] landed on the roof & left.",
    "The town of [Ulmenau|z] has a bridge over the [Amazon|river].",
    "In [Ulmenau|z], the town with a bridge, a green [Zorblat|x] landed.",
]


def docs_of(nlp, texts=NEW):
    return [without_links(annotated(nlp, text)) for text in texts]


def clusters(docs):
    return [ent._.arbo.cluster for doc in docs for ent in doc.ents if ent._.arbo.is_nil]


@pytest.fixture
def nlp():
    return build(threshold=0.6)


def test_streaming_is_off_by_default(nlp):
    linker = nlp.get_pipe("arbo_linker")
    (doc,) = nlp.pipe(docs_of(nlp, NEW[:1]))
    assert clusters([doc]) == ["new-1"] and len(linker.new_entities) == 0
    assert "new_entities" not in doc.spans


def many(count, seed=0):
    """A corpus of invented names, each in a few sentences, in random order."""
    rng = random.Random(seed)
    letters = "bdfgklmnprstvz"
    names = [
        "".join(rng.choice(letters) + rng.choice("aeiou") for _ in range(4)) for _ in range(12)
    ]
    frames = ["We saw [{}|x] in the morning.", "Nobody has heard of [{}|x].", "[{}|x] was closed."]
    return [rng.choice(frames).format(rng.choice(names).title()) for _ in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize("batch_size", [1, 7, 64])
def test_streaming_does_not_depend_on_batches(nlp, batch_size):
    texts = [*NEW, *many(60), *NEW[:2]]
    linker = nlp.get_pipe("arbo_linker")
    runs, at_once = [], []
    for pieces in (1, 5, 50):
        linker.new_entities, linker.stream = NewEntities(), True
        size = -(-len(texts) // pieces)
        names, stable = [], []
        for start in range(0, len(texts), size):
            docs = list(nlp.pipe(docs_of(nlp, texts[start : start + size]), batch_size=batch_size))
            stable.append(set(linker.new_entities.ids))
            names += clusters(docs)
        at_once.append(names)
        runs.append([linker.new_entities.resolve(name) for name in names])
        assert linker.new_entities.documents == len(texts)
        # Ids are stable: each still resolves at the end.
        final = set(linker.new_entities.ids)
        kept = [name for ids in stable for name in ids if name in final]
        assert len(kept) >= 0.9 * sum(map(len, stable))
        assert all(linker.new_entities.resolve(name) in final for ids in stable for name in ids)
    assert at_once[0] == at_once[1] == at_once[2] and runs[0] == runs[1] == runs[2]
    linker.stream = False
    corpus = docs_of(nlp, texts)
    linker.corpus.discover(corpus)
    assert adjusted_rand_score(clusters(corpus), runs[0]) >= 0.95


def test_streaming_writes_ids_and_a_span_group(nlp):
    linker = nlp.get_pipe("arbo_linker")
    linker.stream = True
    docs = list(nlp.pipe(docs_of(nlp)))
    names = clusters(docs)
    assert len(set(names)) == 3 and set(names) == set(linker.new_entities.ids)
    group = docs[5].spans["new_entities"]
    assert [(s.text, s.id_, s.kb_id_, s.label_) for s in group] == [
        ("Ulmenau", names[-2], "NIL", "THING")
    ]
    # The same text again is the same document: nothing is added.
    before = linker.new_entities.to_bytes(), len(linker.new_entities.rows)
    assert clusters(nlp.pipe(docs_of(nlp))) == names and len(linker.new_entities.rows) == before[1]


def test_the_next_document_links_to_an_accepted_entity(nlp, tmp_path):
    linker = nlp.get_pipe("arbo_linker")
    linker.stream = True
    list(nlp.pipe(docs_of(nlp)))
    (zorblat,) = (one for one in linker.new_entities if one.name == "Zorblat")
    encoded = []
    encode = linker.encoder.encode_mentions
    linker.encoder.encode_mentions = lambda w: encoded.append(len(w)) or encode(w)
    entity = linker.new_entities.accept(
        zorblat.id, "E77", title="Zorblat", description="a kind of craft"
    )
    assert encoded == [], "mentions are not encoded again"
    assert entity == linker.kb.get("E77") and entity.types == ("THING",)
    assert entity.meta["discovered_as"] == zorblat.id and entity.meta["mentions"] == 4
    assert (
        linker.new_entities.resolve(zorblat.id) == "E77" and zorblat.id not in linker.new_entities
    )
    assert [item.kb_ids for item in linker.exemplars.records[-4:]] == [("E77",)] * 4
    doc = nlp(docs_of(nlp, ["A [Zorblat|x] landed on the roof of the town hall."])[0])
    assert doc.ents[0].kb_id_ == "E77"
    assert doc.ents[0]._.arbo.evidence[0].id == "E77"
    # New entities are saved, and streaming can continue.
    nlp.to_disk(tmp_path / "model")
    again = spacy.load(tmp_path / "model")
    kept = again.get_pipe("arbo_linker")
    assert kept.new_entities.ids == linker.new_entities.ids and not kept.stream
    assert kept.new_entities.log[-1]["action"] == "accept"
    assert again(docs_of(again, NEW[:1])[0]).ents[0].kb_id_ == "E77"
    kept.stream = True
    assert clusters([again(docs_of(again, NEW[1:2])[0])]) == [kept.new_entities.ids[0]]


def test_accepting_discovered_and_existing_entities(nlp):
    linker = nlp.get_pipe("arbo_linker")
    discovered = linker.corpus.discover(docs_of(nlp))
    one = discovered[0]
    with pytest.raises(KeyError, match="no new entity"):
        linker.new_entities.accept(one.id)
    entity = discovered.accept(one.id)
    assert entity.id == one.id.replace("NEW-", "ENT-") and entity.title == one.name
    assert one.id not in discovered
    other = discovered[0]
    assert discovered.accept(other.id, "river") == linker.kb.get("river")
    assert linker.exemplars.records[-1].kb_ids == ("river",)
    with pytest.raises(ValueError, match="E001|NIL"):
        discovered.accept(discovered.ids[0], "NIL")
    assert len(discovered) == 1, "a failed call changes nothing"


def test_streaming_continues_from_discovered_entities(nlp):
    linker = nlp.get_pipe("arbo_linker")
    linker.new_entities, linker.stream = linker.corpus.discover(docs_of(nlp, NEW[:4])), True
    zorblat = linker.new_entities.ids[:]
    names = clusters(nlp.pipe(docs_of(nlp, NEW[4:])))
    assert names[0] in zorblat and names[1] == names[2] not in zorblat


def test_changed_weights_encode_new_entities_again(nlp):
    linker = nlp.get_pipe("arbo_linker")
    linker.stream = True
    list(nlp.pipe(docs_of(nlp)))
    before = linker.new_entities.rows.vectors.copy()
    weights = linker.model.get_ref("mention").get_param("E")
    weights += 0.01 * np.random.default_rng(0).standard_normal(weights.shape, weights.dtype)
    linker.encoder.weights_changed()
    names = clusters(nlp.pipe(docs_of(nlp, NEW[:1])))
    assert names == [linker.new_entities.ids[0]]
    assert linker.new_entities.fingerprint == linker.encoder.fingerprint
    assert abs(linker.new_entities.rows.vectors - before).max() > 1e-4


def test_streaming_in_several_processes_raises(nlp):
    linker = nlp.get_pipe("arbo_linker")
    linker.stream = True
    with pytest.raises(ValueError, match="separate copy"):
        list(nlp.pipe(docs_of(nlp), n_process=2, batch_size=2))


def test_without_a_discovery(nlp):
    alone = build(threshold=0.6, discovery=None)
    linker = alone.get_pipe("arbo_linker")
    docs = list(alone.pipe(docs_of(alone)))
    assert clusters(docs)[2:5] == ["new-1", "new-1", "new-2"], "each mention for itself"
    with pytest.raises(ValueError, match="can.t group new entities"):
        linker.corpus.discover(docs)
    linker.stream = True
    with pytest.raises(ValueError, match="can.t group new entities"):
        alone(docs_of(alone)[0])


def test_link_stream_reads_documents_twice(nlp):
    linker = nlp.get_pipe("arbo_linker")
    texts = [*DEV, *NEW]
    reads = []

    def read():
        reads.append(True)
        return iter(docs_of(nlp, texts))

    streamed = list(linker.corpus.link_stream(read))
    corpus = linker.corpus.link(docs_of(nlp, texts))
    assert len(reads) == 2
    for one, other in zip(streamed, corpus):
        assert [e._.arbo for e in one.ents] == [e._.arbo for e in other.ents]
    assert [s.id_ for doc in streamed for s in doc.spans["new_entities"]] == clusters(corpus)
    steps = iter([docs_of(nlp, texts), docs_of(nlp, texts[1:])])
    with pytest.raises(ValueError, match="second time"):
        list(linker.corpus.link_stream(lambda: next(steps)))
    assert list(linker.corpus.link_stream(lambda: [])) == []


@pytest.mark.bundled
def test_evidence_names_other_documents():
    far = Entity("E1", "Quorn Limited", "food company of the village")
    nlp = build_bundled([far, Entity("E2", "Zanzibar")], train=[], threshold=0.5)
    linker = nlp.get_pipe("arbo_linker")
    texts = ["The food company [Quorn Limited|E1] grew.", "Shares of [QRN Ltd|E1] fell."]
    docs = docs_of(nlp, [texts[0], texts[0].replace("grew", "fell"), *texts[1:]])
    docs[0].user_data["doc_id"] = "first"
    curves = {"entity": (12.0, -6.0), "mention": (60.0, -20.0)}
    linker.calibration = type(linker.calibration).from_config(curves)
    linked = linker.corpus.link(docs)
    steps = linked[2].ents[0]._.arbo.evidence
    assert [step.kind for step in steps][0] == "entity" and len(steps) > 2
    others = steps[1:-1]
    assert all(step.kind == "mention" and step.document and step.context for step in others)
    assert others[0].id.count(":") == 2 and steps[-1].document == ""


def test_repeated_texts_have_one_id(nlp):
    linker = nlp.get_pipe("arbo_linker")
    linker.discovery = replace(linker.discovery, method="strong", threshold=1.0)
    docs = docs_of(nlp, NEW[:1] * 4)
    discovered = linker.corpus.discover(docs)
    assert clusters(docs) == discovered.ids * 4 and len(discovered[0].members) == 1


def test_accepting_forgets_outdated_corrections(nlp):
    linker = nlp.get_pipe("arbo_linker")
    linker.stream = True
    docs = list(nlp.pipe(docs_of(nlp)))
    linker.feedback.learn(docs[0].ents[0], "NIL")
    linker.new_entities.accept(docs[0].ents[0]._.arbo.cluster, "E77")
    assert nlp(docs_of(nlp, NEW[:1])[0]).ents[0].kb_id_ == "E77"
    assert not linker.feedback.forget(docs[0].ents[0])


def test_a_failure_while_accepting_changes_nothing(nlp, monkeypatch):
    linker = nlp.get_pipe("arbo_linker")
    discovered = linker.corpus.discover(docs_of(nlp))
    before, exemplars = discovered.to_bytes(), len(linker.exemplars)

    def fail(texts):
        raise RuntimeError("out of memory")

    with monkeypatch.context() as patch:
        patch.setattr(linker.encoder, "encode_texts", fail)
        with pytest.raises(RuntimeError, match="out of memory"):
            discovered.accept(discovered.ids[0], "E77")
    assert "E77" not in linker.kb and len(linker.exemplars) == exemplars
    assert discovered.to_bytes() == before
    assert discovered.accept(discovered.ids[0], "E77").id == "E77"


def test_accepting_from_another_source_and_scoring_keep_the_stream_consistent(nlp):
    linker = nlp.get_pipe("arbo_linker")
    linker.stream = True
    docs = list(nlp.pipe(docs_of(nlp)))
    name = docs[0].ents[0]._.arbo.cluster
    linker.stream = False
    discovered = linker.corpus.discover(docs_of(nlp))
    discovered.accept(name, "E77")
    assert name not in linker.new_entities and linker.new_entities.resolve(name) == "E77"
    linker.stream = True
    before = linker.new_entities.to_bytes()
    linker.score([Example(nlp.make_doc(doc.text), doc) for doc in docs])
    assert linker.new_entities.to_bytes() == before
    copy.deepcopy(linker).predict(docs_of(nlp))


@pytest.mark.parametrize(
    "settings",
    [{"retriever": {"match_types": True}}, {"mentions": {"labels_discard": ["THING"]}}, {}],
)
def test_nothing_to_link(settings):
    nlp = build(**settings)
    linker = nlp.get_pipe("arbo_linker")
    docs = [nlp.make_doc("none here"), nlp.make_doc("")]
    assert len(linker.corpus.link(docs)) == 2 and list(linker.corpus.discover(docs)) == []


@pytest.mark.parametrize("streams", [True, False])
def test_new_entities_have_one_type_with_match_types(streams):
    texts = NEW[:1] + NEW[2:3]
    for types, expected in ((False, 1), (True, 2)):
        nlp = build(threshold=0.6, retriever={"match_types": types})
        linker = nlp.get_pipe("arbo_linker")
        docs = [
            without_links(annotated(nlp, text, label=label))
            for text, label in zip(texts, ("THING", "PERSON"))
        ]
        both = without_links(annotated(nlp, " ".join(texts)))
        first, second = both.ents
        both.ents = [first, Span(both, second.start, second.end, label="PERSON")]
        linker.stream = streams
        docs = list(nlp.pipe([*docs, both])) if streams else linker.corpus.link([*docs, both])
        assert len(set(clusters(docs))) == expected
        linker.stream = False
        assert len(set(clusters([nlp(both.copy())]))) == expected


@pytest.mark.attack
def test_threads_share_a_stream(attacks):
    # No invented name is linked, however similar it is to one that is known.
    nlp = build(threshold=1.0)
    linker = nlp.get_pipe("arbo_linker")
    for seed in range(attacks(1, 10)):
        texts = list(dict.fromkeys(many(attacks(400, 2000), seed)))
        texts = [f"{text} It was number {number}." for number, text in enumerate(texts * 8)]
        linker.new_entities, linker.stream = NewEntities(), True

        def work(part):
            for doc in docs_of(nlp, part):
                nlp(doc)
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


def test_edits_from_many_threads_are_all_kept(nlp):
    linker = nlp.get_pipe("arbo_linker")
    linker.stream = True
    list(nlp.pipe(docs_of(nlp, many(60))))
    ids, before = linker.new_entities.ids, len(linker.new_entities.rows)

    def work(name):
        linker.new_entities.reject(name)
        linker.new_entities.to_bytes()

    run_in_threads(*[partial(work, name) for name in ids])
    assert not len(linker.new_entities) and len(linker.new_entities.rows) == before
    numbers = [entry["n"] for entry in linker.new_entities.log if entry["action"] == "reject"]
    assert numbers[-1] - numbers[0] == len(ids) - 1 and numbers == sorted(set(numbers))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_forked_process_can_use_new_entities_that_a_thread_was_changing():
    entities = NewEntities()
    held, release = threading.Event(), threading.Event()

    def hold():
        with entities.lock:
            held.set()
            wait_for(release, "the forked process")

    thread = threading.Thread(target=hold)
    thread.start()
    wait_for(held, "the thread that takes the lock")
    is_usable = forked(lambda: len(entities) == 0)
    release.set()
    thread.join()
    assert is_usable
