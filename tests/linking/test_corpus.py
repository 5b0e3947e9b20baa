"""Corpora in one graph: links, new entities, and what is kept of them."""

import numpy as np
import pytest
from spacy.tokens import Span

from spacy_arbo_el import Entity, NewEntities, find_linker

from ..expecting import raises
from ..linker.conftest import build, build_bundled
from ..linker.world import DEV, unlinked_doc
from .invented import NEW, clusters, docs_of


@pytest.fixture
def nlp():
    return build(threshold=0.6)


def vector_of(linker, key):
    """The stored vector of a mention of a new entity."""
    rows = linker.new_entities.rows
    return rows.vectors[rows.row(key)]


def test_a_document_by_itself_keeps_no_new_entities(nlp, linker):
    (doc,) = nlp.pipe(docs_of(nlp, NEW[:1]))
    assert clusters([doc]) == ["new-1"]
    assert len(linker.new_entities) == 0
    assert "new_entities" not in doc.spans


def test_discover_writes_ids_and_a_span_group(nlp, linker):
    docs = docs_of(nlp)
    linker.new_entities.update(linker.corpus.discover(docs))
    names = clusters(docs)
    assert len(set(names)) == 3
    assert set(names) == set(linker.new_entities.ids)
    group = docs[5].spans["new_entities"]
    assert [(s.text, s.id_, s.kb_id_, s.label_) for s in group] == [
        ("Ulmenau", names[-2], "NIL", "THING")
    ]
    # The same text again is the same document: nothing is added.
    rows, again = len(linker.new_entities.rows), docs_of(nlp)
    linker.new_entities.update(linker.corpus.discover(again))
    assert clusters(again) == names
    assert len(linker.new_entities.rows) == rows


def test_documents_by_the_hour_give_what_all_at_once_give(nlp, linker):
    for end in range(1, len(NEW) + 1):
        linker.new_entities.update(linker.corpus.discover(docs_of(nlp, NEW[:end])))
    kept = {frozenset(one.members) for one in linker.new_entities}
    linker.new_entities = NewEntities()
    assert kept == {frozenset(one.members) for one in linker.corpus.discover(docs_of(nlp))}


def test_changed_weights_encode_new_entities_again(nlp, linker):
    linker.new_entities = linker.corpus.discover(docs_of(nlp))
    unseen = linker.new_entities.rows.records[-1].key
    before = vector_of(linker, unseen).copy()
    weights = linker.model.get_ref("mention").get_param("E")
    noise = np.random.default_rng(0).standard_normal(weights.shape, weights.dtype)
    weights += linker.model.ops.asarray(0.01 * noise)
    linker.encoder.weights_changed()
    docs = docs_of(nlp, NEW[:1])
    linker.new_entities.update(linker.corpus.discover(docs))
    assert clusters(docs) == [linker.new_entities.ids[0]]
    assert linker.new_entities.fingerprint == linker.encoder.fingerprint
    assert abs(vector_of(linker, unseen) - before).max() > 1e-4


def test_without_a_discovery():
    alone = build(threshold=0.6, discovery=None)
    linker = find_linker(alone)
    docs = list(alone.pipe(docs_of(alone)))
    assert clusters(docs)[2:5] == ["new-1", "new-1", "new-2"], "each mention for itself"
    with raises("can.t group new entities"):
        linker.corpus.discover(docs)


def test_link_stream_reads_documents_twice(nlp, linker):
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
    with raises("second time"):
        list(linker.corpus.link_stream(lambda: next(steps)))
    assert list(linker.corpus.link_stream(lambda: [])) == []


@pytest.mark.bundled
def test_evidence_names_other_documents():
    far = Entity("E1", "Quorn Limited", "food company of the village")
    nlp = build_bundled([far, Entity("E2", "Zanzibar")], train=[], threshold=0.5)
    linker = find_linker(nlp)
    texts = ["The food company [Quorn Limited|E1] grew.", "Shares of [QRN Ltd|E1] fell."]
    docs = docs_of(nlp, [texts[0], texts[0].replace("grew", "fell"), *texts[1:]])
    docs[0].user_data["doc_id"] = "first"
    curves = {"entity": (12.0, -6.0), "mention": (60.0, -20.0)}
    linker.calibration = type(linker.calibration).from_config(curves)
    linked = linker.corpus.link(docs)
    steps = linked[2].ents[0]._.arbo.evidence
    assert [step.kind for step in steps][0] == "entity"
    assert len(steps) > 2
    others = steps[1:-1]
    assert all(step.kind == "mention" and step.document and step.context for step in others)
    assert others[0].id.count(":") == 2
    assert steps[-1].document == ""


@pytest.mark.parametrize(
    "settings",
    [{"retriever": {"match_types": True}}, {"mentions": {"labels_discard": ["THING"]}}, {}],
)
def test_nothing_to_link(settings):
    nlp = build(**settings)
    linker = find_linker(nlp)
    docs = [nlp.make_doc("none here"), nlp.make_doc("")]
    assert len(linker.corpus.link(docs)) == 2
    assert list(linker.corpus.discover(docs)) == []


def test_new_entities_have_one_type_with_match_types():
    texts = NEW[:1] + NEW[2:3]
    for types, expected in ((False, 1), (True, 2)):
        nlp = build(threshold=0.6, retriever={"match_types": types})
        linker = find_linker(nlp)
        docs = [
            unlinked_doc(nlp, text, label=label) for text, label in zip(texts, ("THING", "PERSON"))
        ]
        both = unlinked_doc(nlp, " ".join(texts))
        first, second = both.ents
        both.ents = [first, Span(both, second.start, second.end, label="PERSON")]
        assert len(set(clusters(linker.corpus.link([*docs, both])))) == expected
        assert len(set(clusters([nlp(both.copy())]))) == expected
