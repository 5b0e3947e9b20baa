"""Bad and unusual input: a clear error, or a sensible result."""

import warnings

import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_arbo_el.base.log import warn_once
from spacy_arbo_el.corpora.docs import unlinked
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.kb.loaders import KBFromPath

from .conftest import build
from .world import DEV, ENTITIES, TRAIN, annotated, examples, without_links


def test_empty_doc_and_doc_without_ents(shared_nlp):
    empty, plain = shared_nlp(""), shared_nlp("Nothing to link here.")
    assert len(empty) == 0 and not plain.ents
    docs = list(shared_nlp.pipe(["", annotated(shared_nlp, DEV[0]), "Nothing."]))
    assert [len(doc.ents) for doc in docs] == [0, 1, 0]
    assert docs[1].ents[0].kb_id_ == "planet"


@pytest.mark.slow
def test_a_doc_of_20_000_tokens(shared_nlp):
    words = [
        "The",
        "river",
        "was",
        "calm",
        "and",
        "the",
        "boats",
        "lay",
        "at",
        "the",
        "quay",
        "of",
        "the",
        "town",
        ".",
    ] * 1340
    words[10_000] = "Amazon"
    words[0], words[-1] = "Mercury", "Jaguar"
    doc = Doc(shared_nlp.vocab, words=words)
    assert len(doc) > 20_000
    ends = len(words)
    places = [(0, 1), (10_000, 10_001), (ends - 1, ends)]
    doc.ents = [Span(doc, a, b, label="THING") for a, b in places]
    doc = shared_nlp(doc)
    assert [ent.kb_id_ in ("NIL", "") for ent in doc.ents] == [False, False, False]


def test_kb_built_by_another_encoder(nlp, tmp_path):
    linker = nlp.get_pipe("arbo_linker")
    other = build(model={"mention": {"window": 32}}).get_pipe("arbo_linker")
    other.refresh()
    other.kb.to_disk(tmp_path / "kb")
    linker.set_kb(KBFromPath(tmp_path / "kb"))
    doc = nlp(without_links(annotated(nlp, DEV[0])))
    assert doc.ents[0].kb_id_ == "planet"


def test_swapped_kb_in_a_saved_pipeline(nlp, tmp_path):
    nlp.to_disk(tmp_path / "model")
    other = build(model={"mention": {"window": 32}}).get_pipe("arbo_linker")
    other.refresh()
    other.kb.to_disk(tmp_path / "model" / "arbo_linker" / "kb")
    with pytest.raises(ValueError, match="isn't the one that the pipeline was saved with"):
        spacy.load(tmp_path / "model")


def test_a_pretrained_encoder_needs_no_initialization():
    nlp = spacy.blank("en")
    linker = nlp.add_pipe("arbo_linker")
    assert nlp(annotated(nlp, DEV[0])).ents[0].kb_id_ == "NIL"
    linker.kb.add(ENTITIES[0])
    assert nlp(annotated(nlp, DEV[0])).ents[0].kb_id_ == "planet"
    assert linker.update(examples(nlp, DEV))["arbo_linker"] >= 0.0


def test_initialize_without_data():
    nlp = spacy.blank("en")
    nlp.add_pipe("arbo_linker")
    nlp.initialize()
    assert nlp(annotated(nlp, DEV[0])).ents[0].kb_id_ == "NIL"


def test_training_with_an_empty_kb():
    nlp = build([], train=TRAIN)
    linker = nlp.get_pipe("arbo_linker")
    losses = linker.update(examples(nlp, TRAIN[:4]), sgd=nlp.create_optimizer())
    assert losses["arbo_linker"] >= 0.0
    assert nlp(without_links(annotated(nlp, DEV[0]))).ents[0].kb_id_ == "NIL"


@pytest.mark.parametrize("bad", ["", "  ", "NIL", None, 7])
def test_unusable_entity_ids(bad):
    with pytest.raises(ValueError, match="no usable id"):
        Entity(bad, "name")


def test_unknown_gold_ids_in_training_data():
    strange = [*TRAIN, "They met [Zaphod|unknown-1] and [Trillian|unknown-2]."]
    with pytest.warns(UserWarning, match="2 gold ids.*unknown-1, unknown-2"):
        nlp = build(train=strange)
    linker = nlp.get_pipe("arbo_linker")
    losses = linker.update(examples(nlp, strange), sgd=nlp.create_optimizer())
    assert losses["arbo_linker"] > 0.0
    doc = nlp(without_links(annotated(nlp, strange[-1])))
    assert all(ent.kb_id_ in [e.id for e in ENTITIES] for ent in doc.ents)


def test_no_warning_when_all_gold_ids_are_in_the_kb():
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        build()


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


def test_overlapping_spans_in_a_group():
    nlp = build(
        mentions={"getter": {"@misc": "spacy-arbo-el.GroupSpans.v1", "spans_key": "sc"}}, key="sc"
    )
    doc = nlp.make_doc("The Amazon River floods.")
    doc.spans["sc"] = [Span(doc, 1, 2, "A"), Span(doc, 1, 3, "B"), Span(doc, 1, 3, "C")]
    doc = nlp(doc)
    assert [(s.start, s.end, s.label_) for s in doc.spans["sc"]] == [
        (1, 2, "A"), (1, 3, "B"), (1, 3, "C")
    ]  # fmt: skip
    assert [s.kb_id_ for s in doc.spans["sc"]][1:] == ["river", "river"]


def test_predicted_and_reference_tokens_may_differ(nlp):
    gold = annotated(nlp, DEV[2])
    predicted = Doc(nlp.vocab, words=gold.text.split(" "))
    scores = nlp.get_pipe("arbo_linker").score([Example(predicted, gold)])
    assert scores["arbo_mentions"] == 1


def test_kb_swapped_for_a_bigger_one(nlp):
    linker = nlp.get_pipe("arbo_linker")
    nlp(without_links(annotated(nlp, DEV[0])))
    linker.set_kb(lambda vocab: ArboKB(vocab, [Entity("only", "Mercury")]))
    assert nlp(without_links(annotated(nlp, DEV[0]))).ents[0].kb_id_ == "only"


def test_a_corpus_without_gold_ids_is_refused():
    nlp = build()
    data = examples(nlp, DEV[:2])
    without = [Example(eg.predicted, unlinked(eg.reference)) for eg in data]
    with pytest.raises(ValueError, match="E508.*No mention of the training corpus has a gold id"):
        nlp.initialize(lambda: without)


def test_two_linkers_with_one_extension_are_named():
    nlp = spacy.blank("en")
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
