"""Programs with different encoders that use one knowledge base at the same time, in processes."""

import os
import time
from collections import Counter

import numpy as np
import pytest
import spacy
from thinc.api import require_cpu

from spacy_arbo_el.encoders.dual import one_thread_after_fork
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.kb.loaders import KBFromPath
from spacy_arbo_el.kb.verification import verify
from spacy_arbo_el.retrieval import datastore

from ..floats import assert_same_vectors
from .world import DEV, ENTITIES, TRAIN, annotated, examples

ROUNDS = 20


def new_linker(tiny_bert, text):
    encoder = {"@architectures": "spacy-arbo-el.TransformerEncoder.v1", "name": str(tiny_bert)}
    reading = {**encoder, "window": 24, "text": text, "precision": "float32"}
    nlp = spacy.blank("xx")
    refresh = {"@misc": "spacy-arbo-el.CacheRefresh.v1", "every": 4}
    config = {"model": {"mention": reading}, "objective": {"refresh": refresh}}
    return nlp, nlp.add_pipe("arbo_linker", config=config)


def link(nlp, linker, path):
    """Each round is a program that opens the folder, links, and looks for edits once."""
    doc = annotated(nlp, DEV[0])
    for _ in range(ROUNDS):
        linker.set_kb(path)
        for _ in range(2):
            assert all(one.candidates for one in linker.predict([doc])[0].values())
        check_vectors(linker)


def train(nlp, linker, path):
    optimizer = None
    for number in range(ROUNDS):
        if number % 5 == 0:
            nlp.initialize(lambda: examples(nlp, TRAIN[:4]))
            linker.initialize(lambda: examples(nlp, TRAIN[:4]), nlp=nlp, kb_loader=KBFromPath(path))
            optimizer = nlp.resume_training()
            check_vectors(linker)
        assert np.isfinite(nlp.update(examples(nlp, TRAIN[:4]), sgd=optimizer)["arbo_linker"])
        if number % 5 == 4:
            assert nlp.evaluate(examples(nlp, DEV[:2]))["arbo_mentions"] == 2


def edit(nlp, linker, path):
    for number in range(ROUNDS):
        with ArboKB.open(path) as kb:
            kb.upsert(Entity(f"new {number}", f"thing {number}", f"the thing of number {number}"))
            if number % 4 == 3:
                kb.remove(f"new {number - 2}")
        time.sleep(0.02)


def check_vectors(linker):
    """The vectors in use are those that the linker's encoder gives."""
    verbalize, encoder = linker.datastore.settings.verbalization, linker.encoder
    with linker.datastore.reading():
        # Not ``kb.get_vector``, which looks for edits by others.
        entities = list(linker.kb)[-3:]
        vectors = [linker.kb.vectors.of_entity(entity.id) for entity in entities]
    texts = [verbalize(entity)[0] for entity in entities]
    expected = encoder.encode_texts(encoder.read_texts(texts))
    assert_same_vectors(vectors, expected)


@pytest.mark.slow
def test_twenty_rounds_of_linking_training_and_editing(tiny_bert, tmp_path, monkeypatch):
    path, log = tmp_path / "kb", tmp_path / "encoded"
    ArboKB(spacy.blank("xx").vocab, ENTITIES).to_disk(path)
    encode_texts = datastore.encode_texts

    def logged(encoder, texts):
        if not encoder.is_trained:
            lines = [f"{encoder.text_fingerprint} {text}\n" for text in texts]
            descriptor = os.open(log, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
            os.write(descriptor, "".join(lines).encode())
            os.close(descriptor)
        return encode_texts(encoder, texts)

    monkeypatch.setattr(datastore, "encode_texts", logged)
    programs = [(link, 16), (link, 24), (link, 24), (train, 24), (train, 32), (edit, 16)]
    children = []
    for number, (work, text) in enumerate(programs):
        child = os.fork()
        if not child:
            status = 1
            try:
                one_thread_after_fork()
                require_cpu()
                work(*new_linker(tiny_bert, text), path)
                status = 0
            except BaseException:
                import traceback

                traceback.print_exc()
            finally:
                os._exit(status)
        children.append(child)
        assert number < len(programs)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * len(programs)
    counts = Counter(log.read_text().splitlines())
    assert len(counts) > 3 * len(ENTITIES)
    assert [text for text, count in counts.items() if count > 1] == [], "encoded twice"
    assert verify(path) == []
    assert len(ArboKB.for_reading(path)) == len(ENTITIES) + ROUNDS - ROUNDS // 4
