"""Iterative prediction: what is written into the text, and when a link changes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.contrib.papers.verbalized_links import insertions, write_links
from spacy_arbo_el.linking.stages import LinkingStages
from spacy_arbo_el.mentions.normalization.text import replace as edited

from ...linker.conftest import build, build_bundled
from ...linker.world import DEV, TRAIN, annotated, unlinked_docs, without_links

TEXT = "Mercury and the planet Mercury, Amazon and its river, Apple, the jaguar."
ITERATIVE = {
    "factory": "arbo_iterative_linker",
    "iteration": {"@misc": "spacy-arbo-el.IterativePrediction.v1"},
}
MENTIONS = [
    *("A spacecraft saw [Mercury|planet], [Amazon|river], [Jaguar|car] and [Apple|maker].",),
    *("[Mercury|metal] is not [Mercury|planet].", "Only [Amazon|shop] here.", *DEV),
]


@pytest.fixture(scope="module")
def nlp():
    return build(train=TRAIN[:6], **ITERATIVE)


def links_of(docs):
    return [[(ent.kb_id_, ent._.arbo.score) for ent in doc.ents] for doc in docs]


@st.composite
def texts_with_mentions(draw):
    text = draw(st.text("ab ", min_size=1, max_size=20))
    place = st.integers(0, len(text))
    spans = st.tuples(place, place).map(sorted).filter(lambda pair: pair[0] < pair[1])
    pairs = draw(st.lists(spans, max_size=6))
    phrases = [draw(st.sampled_from(["", "X", "YZ"])) for _ in pairs]
    return text, np.array(pairs, dtype=np.int64).reshape(-1, 2), phrases


@given(texts_with_mentions())
def test_insertions_leave_mentions_as_they_are(example):
    text, pairs, phrases = example
    edits = insertions(pairs, phrases)
    changed, moved = edited(text, pairs, edits)
    for (start, end), (new_start, new_end) in zip(pairs.tolist(), moved.tolist()):
        assert changed[new_start:new_end] == text[start:end]
    assert changed.count("(") == len(edits)
    strictly_inside = {at for at, _, _ in edits for a, b in pairs.tolist() if a < at < b}
    assert not strictly_inside
    # Of mentions that end at one place, one is written in.
    assert len({at for at, _, _ in edits}) == len(edits)


def test_what_is_written_stands_behind_the_mention(nlp):
    linker = nlp.get_pipe("arbo_linker")
    doc = without_links(annotated(nlp, "See [Mercury|planet] and [Amazon|river]."))
    texts = linker.reader.texts_of([list(doc.ents)])
    written = np.array([linker.kb.entities.position("planet"), -1])
    new = write_links(linker.kb, texts, written, 50)
    expected = "See Mercury (smallest planet of the solar system) and Amazon."
    assert new.texts == [expected]
    assert new.normalized == ["Mercury", "Amazon"]
    assert texts.texts == [doc.text]


def test_a_chance_never_falls_and_the_text_stays(nlp):
    linker = nlp.get_pipe("arbo_linker")
    spans = [list(doc.ents) for doc in unlinked_docs(nlp, MENTIONS)]
    before = LinkingStages.link(linker.stages, spans, 0.0)
    after = linker.stages.link(spans, 0.0)
    firsts = [r.ranked.ranking.candidates.scores[:, 0] for r in (before, after)]
    assert (firsts[1] >= firsts[0]).all()
    assert (firsts[1] > firsts[0]).any()
    docs = list(nlp.pipe(unlinked_docs(nlp, MENTIONS)))
    assert [doc.text for doc in docs] == [doc.text for doc in unlinked_docs(nlp, MENTIONS)]


def test_a_mention_alone_in_its_document_is_linked_as_without(nlp):
    linker = nlp.get_pipe("arbo_linker")
    spans = [list(doc.ents) for doc in unlinked_docs(nlp, MENTIONS) if len(doc.ents) == 1]
    plain = LinkingStages.link(linker.stages, spans, 0.0)
    assert linker.stages.link(spans, 0.0).links == plain.links


@pytest.mark.parametrize("batch_size", [1, 2, 64])
def test_links_do_not_depend_on_the_batch(nlp, batch_size):
    expected = links_of([nlp(doc) for doc in unlinked_docs(nlp, MENTIONS)])
    assert links_of(nlp.pipe(unlinked_docs(nlp, MENTIONS), batch_size=batch_size)) == expected


@pytest.mark.bundled
def test_only_mentions_whose_text_changed_are_encoded_again(monkeypatch):
    """The window of a mention far from all insertions stays as it is."""
    nlp = build_bundled(train=TRAIN[:6], **ITERATIVE)
    linker = nlp.get_pipe("arbo_linker")
    linker.refresh()
    far = "word " * 200
    text = f"[Mercury|planet] and [Amazon|river] {far} [Apple|maker] {far} [Jaguar|car]"
    doc = without_links(annotated(nlp, text))
    encoded = []
    encode = type(linker.encoder).encode_mentions

    def counted(self, inputs):
        encoded.append(len(inputs))
        return encode(self, inputs)

    monkeypatch.setattr(type(linker.encoder), "encode_mentions", counted)
    nlp(doc)
    # Of the two neighbours the one that is not written in first.
    assert encoded[0] == 4
    assert sum(encoded[1:]) <= 1


def test_a_correction_stays_whatever_is_written_beside_it(nlp):
    nlp = build(train=TRAIN[:6], **ITERATIVE)
    linker = nlp.get_pipe("arbo_linker")
    text = "[Amazon|river] [Jaguar|car] [Apple|maker] [Mercury|planet] ."
    linker.feedback.learn(nlp(without_links(annotated(nlp, text))).ents[2], "NIL")
    for ending in ("", " !", " indeed."):
        assert nlp(without_links(annotated(nlp, text + ending))).ents[2].kb_id_ == "NIL"


def test_only_links_are_written_in(nlp):
    linker = nlp.get_pipe("arbo_linker")
    doc = without_links(annotated(nlp, "The [Zorblat|x] and the [qwerty|y] left."))
    batch = linker.stages.encode(linker.stages.read([list(doc.ents)]))
    iteration = linker.iteration
    assert iteration.revise(linker.stages, [list(doc.ents)], batch, 40.0) is batch
    assert iteration.revise(linker.stages, [list(doc.ents)], batch, -np.inf) is not batch
