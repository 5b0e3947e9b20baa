"""Bad and unusual input, what spaCy's entity_linker gets wrong, and entities without a name."""

import warnings

import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import Adam

from spacy_arbo_el import Entity, find_linker
from spacy_arbo_el.base.log import warn_once
from spacy_arbo_el.corpora.docbin import write_docbin
from spacy_arbo_el.corpora.docs import unlinked
from spacy_arbo_el.corpora.reader import KBFromCorpus

from ..expecting import no_warnings, raises, warns
from .conftest import build
from .world import DEV, ENTITIES, TRAIN, annotated, examples, unlinked_doc, without_links


@pytest.mark.parametrize("is_initialized", [False, True])
def test_a_pretrained_encoder_needs_no_initialization_and_no_data(is_initialized):
    nlp = spacy.blank("xx")
    linker = nlp.add_pipe("arbo_linker")
    if is_initialized:
        nlp.initialize()
    assert nlp(annotated(nlp, DEV[0])).ents[0].kb_id_ == "NIL"
    linker.kb.add(ENTITIES[0])
    assert nlp(annotated(nlp, DEV[0])).ents[0].kb_id_ == "planet"
    assert linker.update(examples(nlp, DEV))["arbo_linker"] >= 0.0


def test_training_with_an_empty_kb():
    nlp = build([], train=TRAIN)
    linker = find_linker(nlp)
    losses = linker.update(examples(nlp, TRAIN[:4]), sgd=nlp.create_optimizer())
    assert losses["arbo_linker"] >= 0.0
    assert nlp(unlinked_doc(nlp, DEV[0])).ents[0].kb_id_ == "NIL"


def test_unknown_gold_ids_in_training_data():
    strange = [*TRAIN, "They met [Zaphod|unknown-1] and [Trillian|unknown-2]."]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        build()
    with warns("2 gold ids.*unknown-1, unknown-2"):
        nlp = build(train=strange)
    linker = find_linker(nlp)
    losses = linker.update(examples(nlp, strange), sgd=nlp.create_optimizer())
    assert losses["arbo_linker"] > 0.0
    doc = nlp(unlinked_doc(nlp, strange[-1]))
    assert all(ent.kb_id_ in [e.id for e in ENTITIES] for ent in doc.ents)


@pytest.mark.parametrize(
    "curves", [{"entity": [0.0, 1.0]}, {"entity": [1.0]}, {"nonsense": [1.0, 0.0]}]
)
def test_unusable_calibration(curves):
    with raises("calibration"):
        build(calibration=curves)


def test_extension_name_that_is_taken():
    Span.set_extension("taken", default=1)
    with raises("extension 'taken'"):
        build(extension="taken")
    assert Span.get_extension("taken")[0] == 1


def test_predicted_and_reference_tokens_may_differ(nlp):
    gold = annotated(nlp, DEV[2])
    predicted = Doc(nlp.vocab, words=gold.text.split(" "))
    scores = find_linker(nlp).score([Example(predicted, gold)])
    assert scores["arbo_mentions"] == 1


def test_a_corpus_without_gold_ids_is_refused(nlp):
    data = examples(nlp, DEV[:2])
    without = [Example(eg.predicted, unlinked(eg.reference)) for eg in data]
    with raises("E508.*No mention of the training corpus has a gold id"):
        nlp.initialize(lambda: without)


def test_two_linkers_with_one_extension_are_named():
    nlp = spacy.blank("xx")
    nlp.add_pipe("arbo_linker", name="first")
    with warns(r"W544.*'first' and 'second' both write to span._.arbo"):
        nlp.add_pipe("arbo_linker", name="second")
    with no_warnings():
        nlp.add_pipe("arbo_linker", name="third", config={"extension": "other"})


def test_an_empty_knowledge_base_is_said_once():
    nlp = build([])
    warn_once.cache_clear()
    doc = unlinked_doc(nlp, DEV[0])
    with warns("W545.*'arbo_linker' is empty"):
        nlp(doc.copy())
    with no_warnings():
        nlp(doc.copy())
        nlp(nlp.make_doc("No mention here."))


def test_ties_are_always_decided_in_the_same_way():
    twins = [Entity("b", "Springfield"), Entity("a", "Springfield")]
    nlp = build(twins, train=[])
    doc = annotated(nlp, "He moved to [Springfield|a] last year.")
    links = [ent.kb_id_ for _ in range(20) for ent in nlp(without_links(doc)).ents]
    assert links == ["b"] * 20, "a tie goes to the entity that comes first in the KB"
    candidates = nlp(without_links(doc)).ents[0]._.arbo.candidates
    assert [c.kb_id for c in candidates] == ["b", "a"]
    assert candidates[0].score == candidates[1].score


def test_spans_in_doc_spans_are_linked():
    nlp = build(key="sc")
    gold = annotated(nlp, TRAIN[1], key="sc")
    doc = without_links(gold, key="sc")
    doc.spans["sc"][0].id_ = "kept"
    doc.spans["other"] = [Span(doc, 0, 1, label="X")]
    doc = nlp(doc)
    # Spans of a group may overlap, and two may have one place.
    other = nlp.make_doc("The Amazon River floods.")
    other.spans["sc"] = [Span(other, 1, 2, "A"), Span(other, 1, 3, "B"), Span(other, 1, 3, "C")]
    places = [(span.start, span.end, span.label_) for span in nlp(other).spans["sc"]]
    assert places == [(1, 2, "A"), (1, 3, "B"), (1, 3, "C")]
    assert [span.kb_id_ for span in other.spans["sc"]][1:] == ["river", "river"]
    assert [span.kb_id_ for span in doc.spans["sc"]] == ["metal", "metal"]
    assert [span.label_ for span in doc.spans["sc"]] == ["THING", "THING"]
    assert [span.kb_id_ for span in doc.spans["other"]] == [""]
    assert doc.spans["sc"][1]._.arbo.kb_id == "metal"
    assert not doc.ents


def test_evaluate_counts_gold_mentions(shared_nlp):
    scores = shared_nlp.evaluate(examples(shared_nlp, DEV))
    assert scores["arbo_mentions"] == len(DEV)
    assert scores["arbo_recall_at_8"] == 1.0
    plain = [
        Example(shared_nlp.make_doc(eg.text), eg.reference) for eg in examples(shared_nlp, DEV)
    ]
    assert shared_nlp.evaluate(plain)["arbo_acc"] == scores["arbo_acc"]


@pytest.mark.parametrize(
    "pipes, problems",
    [
        (["ner", "arbo_linker"], []),
        (["entity_ruler", "arbo_linker"], []),
        (["arbo_linker", "ner"], ["doc.ents"]),
        (["arbo_linker", "entity_ruler"], ["doc.ents"]),
        (["arbo_linker"], ["doc.ents"]),
    ],
)
def test_analyze_pipes_finds_a_linker_before_what_finds_mentions(pipes, problems):
    nlp = spacy.blank("xx")
    for pipe in pipes:
        nlp.add_pipe(pipe)
    assert nlp.analyze_pipes()["problems"]["arbo_linker"] == problems


def test_a_missing_span_group_is_warned_of_once():
    warn_once.cache_clear()
    nlp = build(key="genes")
    with warns("no group doc.spans.'genes'.*spans_key") as caught:
        docs = list(nlp.pipe(["Boats travel up the Amazon.", "Nothing.", ""]))
    assert len(caught) == 1
    assert not any(doc.ents for doc in docs)
    with no_warnings():
        doc = nlp.make_doc("Nothing.")
        doc.spans["genes"] = []
        warn_once.cache_clear()
        nlp(doc)


COMET = Entity("C7", types=("STAR",), meta={"unnamed": True})
SEEN = "The [comet|C7] with its bright tail came back after years."


def linked(nlp, marked):
    return nlp(unlinked_doc(nlp, marked)).ents[0]._.arbo


def test_an_unnamed_entity_has_no_vector_and_is_linked_by_its_exemplar(tmp_path):
    nlp = build([*ENTITIES, COMET, Entity("C8", meta={"unnamed": True})], [*TRAIN, SEEN])
    linker = find_linker(nlp)
    owners = set(linker.refresh().retriever.entities.owners.tolist())
    texts = {e.id: position in owners for position, e in linker.kb.entities.items()}
    assert not texts.pop("C7")
    assert not texts.pop("C8")
    assert all(texts.values())
    link = linked(nlp, "They saw the [comet|C7] with a bright tail.")
    assert link.kb_id == "C7"
    assert [step.kind for step in link.evidence][:2] == ["entity", "exemplar"]
    assert "C8" not in linked(nlp, "[C8|C8] is a name that nothing has.").ids
    nlp.to_disk(tmp_path / "model")
    assert linked(spacy.load(tmp_path / "model"), "They saw the [comet|C7].").kb_id == "C7"
    trained = examples(nlp, [*TRAIN, SEEN, "A [comet|C7] has a tail of dust."])
    assert nlp.update(trained, sgd=Adam(1e-4))["arbo_linker"] > 0


NO_TEXT = {"@misc": "spacy-arbo-el.NoText.v1"}


def test_links_without_any_text_of_entities(tmp_path):
    blank = spacy.blank("xx")
    write_docbin([annotated(blank, text) for text in TRAIN], tmp_path / "train.spacy")
    nlp = build(retriever={"verbalization": NO_TEXT})
    linker = find_linker(nlp)
    linker.set_kb(KBFromCorpus(tmp_path / "train.spacy"))
    gold = {e.kb_id_ for text in TRAIN for e in annotated(blank, text).ents} - {"NIL"}
    assert {entity.id for entity in linker.kb.entities} == gold
    assert not len(linker.kb.rows)
    scores = nlp.evaluate(examples(nlp, DEV))
    assert scores["arbo_acc"] >= 0.5
    doc = nlp(annotated(nlp, DEV[0]))
    evidence = doc.ents[0]._.arbo.evidence
    assert [step.kind for step in evidence][:2] == ["entity", "exemplar"]


def test_a_text_in_the_place_of_a_doc_or_a_mention_is_one_clear_error(linker):
    for call in (linker.fit, lambda texts: linker.set_annotations(texts, [{}])):
        with raises("E512.*'text' is no Doc"):
            call(["text"])
    feedback = linker.feedback
    for call in (feedback.learn, feedback.reject_link, feedback.covered, linker.explain):
        with raises("E513.*'text' is no mention"):
            call("text", "Q1")
    for links in (None, ["text"]):
        with raises("E514.*is not the links of a document"):
            linker.set_annotations([Doc(linker.vocab, ["A"])], links)


def test_an_entity_in_the_place_of_its_id_is_one_clear_error(nlp, linker):
    span = nlp("A cat")[1:]
    feedback = linker.feedback
    for call in (feedback.learn, feedback.reject_link, linker.explain):
        with raises("E048.*'cat' was given itself"):
            call(span, linker.kb["cat"])
    with raises("E048.*'cat' was given itself"):
        linker.kb.remove(linker.kb["cat"])
