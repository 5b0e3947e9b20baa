"""Bad and unusual input: a clear error, or a sensible result."""

import warnings

import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_arbo_el.base.log import warn_once
from spacy_arbo_el.corpora.docs import unlinked

from .conftest import build
from .world import DEV, ENTITIES, TRAIN, annotated, examples, without_links

SENTENCE = "The river was calm and the boats lay at the quay of the town ."


@pytest.mark.slow
def test_a_doc_of_20_000_tokens(shared_nlp):
    words = SENTENCE.split() * 1340
    words[10_000] = "Amazon"
    words[0], words[-1] = "Mercury", "Jaguar"
    doc = Doc(shared_nlp.vocab, words=words)
    assert len(doc) > 20_000
    ends = len(words)
    places = [(0, 1), (10_000, 10_001), (ends - 1, ends)]
    doc.ents = [Span(doc, a, b, label="THING") for a, b in places]
    doc = shared_nlp(doc)
    assert [ent.kb_id_ in ("NIL", "") for ent in doc.ents] == [False, False, False]


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
    linker = nlp.get_pipe("arbo_linker")
    losses = linker.update(examples(nlp, TRAIN[:4]), sgd=nlp.create_optimizer())
    assert losses["arbo_linker"] >= 0.0
    assert nlp(without_links(annotated(nlp, DEV[0]))).ents[0].kb_id_ == "NIL"


def test_unknown_gold_ids_in_training_data():
    strange = [*TRAIN, "They met [Zaphod|unknown-1] and [Trillian|unknown-2]."]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        build()
    with pytest.warns(UserWarning, match="2 gold ids.*unknown-1, unknown-2"):
        nlp = build(train=strange)
    linker = nlp.get_pipe("arbo_linker")
    losses = linker.update(examples(nlp, strange), sgd=nlp.create_optimizer())
    assert losses["arbo_linker"] > 0.0
    doc = nlp(without_links(annotated(nlp, strange[-1])))
    assert all(ent.kb_id_ in [e.id for e in ENTITIES] for ent in doc.ents)


@pytest.mark.parametrize(
    "curves", [{"entity": [0.0, 1.0]}, {"entity": [1.0]}, {"nonsense": [1.0, 0.0]}]
)
def test_unusable_calibration(curves):
    with pytest.raises(ValueError, match="calibration"):
        build(calibration=curves)


def test_extension_name_that_is_taken():
    Span.set_extension("taken", default=1)
    with pytest.raises(ValueError, match="extension 'taken'"):
        build(extension="taken")
    assert Span.get_extension("taken")[0] == 1


def test_predicted_and_reference_tokens_may_differ(nlp):
    gold = annotated(nlp, DEV[2])
    predicted = Doc(nlp.vocab, words=gold.text.split(" "))
    scores = nlp.get_pipe("arbo_linker").score([Example(predicted, gold)])
    assert scores["arbo_mentions"] == 1


def test_a_corpus_without_gold_ids_is_refused():
    nlp = build()
    data = examples(nlp, DEV[:2])
    without = [Example(eg.predicted, unlinked(eg.reference)) for eg in data]
    with pytest.raises(ValueError, match="E508.*No mention of the training corpus has a gold id"):
        nlp.initialize(lambda: without)


def test_two_linkers_with_one_extension_are_named():
    nlp = spacy.blank("xx")
    nlp.add_pipe("arbo_linker", name="first")
    with pytest.warns(UserWarning, match=r"W544.*'first' and 'second' both write to span._.arbo"):
        nlp.add_pipe("arbo_linker", name="second")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nlp.add_pipe("arbo_linker", name="third", config={"extension": "other"})


def test_an_empty_knowledge_base_is_said_once():
    nlp = build([])
    warn_once.cache_clear()
    doc = without_links(annotated(nlp, DEV[0]))
    with pytest.warns(UserWarning, match="W545.*'arbo_linker' is empty"):
        nlp(doc.copy())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nlp(doc.copy())
        nlp(nlp.make_doc("No mention here."))
