"""A correction holds for its own mention and for passages that say the same, and no further."""

import pytest
import spacy
from spacy.tokens import Span

from spacy_arbo_el import find_linker

from ..cases import cases
from ..expecting import raises

COMPANIES = cases("companies")
PLANT = "The plant of Kestrel in Windsor, Ontario, will build the new truck."
SAME = "Kestrel will build its new truck in Windsor."
FLIGHTS = "Kestrel cancelled all flights between Cork and Bristol."
OTHERS = (
    "Kestrel recalled 4,000 pickups because of a battery fault.",
    "Kestrel sold more pickups in Detroit than ever.",
    FLIGHTS,
    "Passengers of Kestrel waited at Dublin airport.",
)


@pytest.fixture(scope="module")
def nlp():
    nlp = spacy.blank("en")
    nlp.add_pipe("arbo_linker").set_kb(COMPANIES)
    return nlp


def marked(nlp, text, *mentions, labels=("ORG",)):
    doc = nlp.make_doc(text)
    at = 0
    spans = []
    for mention in mentions:
        at = text.index(mention, at)
        span = doc.char_span(at, at + len(mention))
        spans += [Span(doc, span.start, span.end, label) for label in labels]
        at += len(mention)
    if len(labels) == 1:
        doc.ents = spans
    doc.spans["sc"] = spans
    return doc


def links(nlp, text, *mentions, **more):
    doc = find_linker(nlp)(marked(nlp, text, *mentions, **more))
    return [(ent.kb_id_, round(ent._.arbo.score, 2)) for ent in doc.ents]


@pytest.fixture
def corrected(nlp):
    """Make corrections that are undone after the test."""
    feedback = find_linker(nlp).feedback
    made = []

    def correct(text, mention, kb_id, how="learn"):
        span = marked(nlp, text, mention).ents[0]
        made.append(span)
        getattr(feedback, how)(span, kb_id)

    yield correct
    for span in made:
        feedback.forget(span)


def test_a_correction_of_a_shared_name_leaves_other_texts_as_they_are(nlp, corrected):
    before = [links(nlp, text, "Kestrel") for text in OTHERS]
    corrected(PLANT, "Kestrel", "canada")
    assert links(nlp, PLANT, "Kestrel") == [("canada", 1.0)]
    assert [links(nlp, text, "Kestrel") for text in OTHERS] == before


def test_it_holds_where_the_same_is_said_without_being_certain(nlp, corrected):
    corrected(PLANT, "Kestrel", "us")
    ((kb_id, score),) = links(nlp, SAME, "Kestrel")
    assert kb_id == "us"
    assert score > 0.9
    assert score < 1.0


@pytest.mark.parametrize("how", ["learn", "reject_link"])
@pytest.mark.parametrize("said, mention, want, later", cases("other_senses"))
def test_a_no_in_one_sense_leaves_the_other_sense_linked(
    nlp, corrected, how, said, mention, want, later
):
    corrected(said, mention, "NIL" if how == "learn" else want, how)
    assert links(nlp, said, mention)[0][0] == "NIL"
    words = mention if mention in later else mention.lower()
    assert links(nlp, later, words)[0][0] == want


def test_a_no_holds_in_its_document_and_where_the_same_is_said(nlp, corrected):
    text = "The thermometer is full of Mercury. Nobody touched the Mercury."
    doc = marked(nlp, text, "Mercury", "Mercury")
    feedback = find_linker(nlp).feedback
    feedback.learn(doc.ents[0], "NIL")
    found = links(nlp, text, "Mercury", "Mercury")
    feedback.forget(doc.ents[0])
    assert [kb_id for kb_id, _ in found] == ["NIL", "NIL"]
    corrected("The thermometer is full of Mercury.", "Mercury", "NIL")
    assert links(nlp, "The old thermometer was full of Mercury.", "Mercury")[0][0] == "NIL"


def test_equal_cells_of_a_table_are_one_passage(nlp, corrected):
    corrected("Kestrel", "Kestrel", "air")
    assert links(nlp, "Kestrel", "Kestrel", labels=("ORG",)) == [("air", 1.0)]
    assert links(nlp, "Kestrel\n", "Kestrel") == [("air", 1.0)]


def test_a_name_that_no_other_entity_has_is_learned_everywhere(nlp, corrected):
    corrected("The crew had the azure shakes.", "azure shakes", "fever")
    assert links(nlp, "Two passengers died of azure shakes.", "azure shakes")[0][0] == "fever"


def test_the_mentions_that_it_would_hold_for_are_known_before(nlp, corrected):
    feedback = find_linker(nlp).feedback
    docs = [marked(nlp, text, "Kestrel") for text in (PLANT, SAME, *OTHERS)]
    span = docs[0].ents[0]
    covered = feedback.covered(span, docs, "us")
    assert [one.doc.text for one in covered] == [PLANT, SAME]
    assert [one.doc.text for one in feedback.covered(span, docs)] == [PLANT, SAME]
    with raises("E510"):
        feedback.covered(span, docs, "nobody")
    assert not find_linker(nlp).stages.corrections.items, "nothing is corrected"
    corrected(PLANT, "Kestrel", "us")
    assert [links(nlp, doc.text, "Kestrel")[0][0] == "us" for doc in docs[:2]] == [True, True]


def test_equal_spans_of_two_labels_are_corrected_apart():
    nlp = spacy.blank("en")
    getter = {"@misc": "spacy-arbo-el.GroupSpans.v1", "spans_key": "sc"}
    linker = nlp.add_pipe("arbo_linker", config={"mentions": {"getter": getter}})
    linker.set_kb([{"id": "1", "title": "Veil"}, {"id": "2", "title": "Port Veil"}])

    def found():
        doc = linker(marked(nlp, "They saw Veil there.", "Veil", labels=("A", "B")))
        return {span.label_: span.kb_id_ for span in doc.spans["sc"]}

    doc = marked(nlp, "They saw Veil there.", "Veil", labels=("A", "B"))
    first, second = doc.spans["sc"]
    before = found()
    linker.feedback.learn(first, "2")
    assert found() == {"A": "2", "B": before["B"]}
    linker.feedback.learn(second, "NIL")
    assert found() == {"A": "2", "B": "NIL"}
    again = spacy.blank("en")
    again.add_pipe("arbo_linker", config={"mentions": {"getter": getter}})
    again.from_bytes(nlp.to_bytes())
    items = find_linker(again).stages.corrections.items
    assert sorted(key[3] for key in items) == ["A", "B"]
    assert linker.feedback.forget(first)
    assert found() == {"A": before["A"], "B": "NIL"}
    linker.feedback.learn(first, "2")
    assert linker.feedback.forget(second)
    assert found() == {"A": "2", "B": before["B"]}
    assert linker.feedback.forget(first)
    assert found() == before
    assert not len(linker.exemplars)


def test_equal_spans_of_two_labels_have_the_labels_of_what_stands(nlp):
    doc = marked(nlp, PLANT, "Kestrel", labels=("A", "B"))
    first, second = doc.spans["sc"]
    linker = find_linker(nlp)
    doc.spans["sc"] = [Span(doc, first.start, first.end, "A", kb_id="air")]
    doc.ents = doc.spans["sc"]
    linker.feedback.add_exemplars([doc])
    linker.feedback.reject_link(first, "air")
    linker.feedback.reject_link(second, "us")
    (record,) = linker.exemplars.records
    assert record.kb_ids == ("air",)
    linker.feedback.forget(second)
    (record,) = linker.exemplars.records
    assert record.kb_ids == ()
    linker.feedback.forget(first)
    (record,) = linker.exemplars.records
    assert record.kb_ids == ("air",)
    linker.feedback.remove_exemplars([first])
