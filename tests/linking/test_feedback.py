"""A correction changes the next prediction at once, can be undone, and is saved."""

from functools import partial

import pytest
import spacy
from spacy.tokens import Span
from spacy.util import load_model_from_config

from spacy_arbo_el import Entity, find_linker
from spacy_arbo_el.encoders.inputs import EncodingCache
from spacy_arbo_el.linking.feedback import key_of

from ..expecting import raises
from ..floats import assert_same_vectors
from ..linker.conftest import build, build_bundled
from ..linker.world import ENTITIES, annotated, unlinked_doc, without_links

FEATURES = {"reranker": {"@misc": "spacy-arbo-el.FeatureRanker.v1"}}
VOTE = {"inference": {"@misc": "spacy-arbo-el.ExemplarVote.v1", "n_exemplars": 5, "texts": True}}
TEXT = "Boats travel up the [Amazon|river] through the rain forest."
OTHER = "A [jaguar|cat] hunted at night in the forest, and [jaguars|cat] swim well."


def linked(nlp, text):
    return nlp(unlinked_doc(nlp, text))


def ids(nlp, text=TEXT):
    return [ent.kb_id_ for ent in linked(nlp, text).ents]


def mention(nlp):
    """The mention of a text, with its link."""
    return linked(nlp, TEXT).ents[0]


def label_of(linker, span):
    return linker.exemplars.records[linker.exemplars.row(key_of(span))].kb_ids


KINDS = {
    "best evidence": build,
    "feature ranker": partial(build, **FEATURES),
    # The nearest mentions alone decide, so that it takes vectors that know words.
    "vote": partial(build_bundled, **VOTE),
}


@pytest.fixture
def nlp(request):
    return KINDS[getattr(request, "param", "best evidence")]()


each_kind = pytest.mark.parametrize("nlp", KINDS, indirect=True)


@pytest.mark.parametrize("fingerprint", [None, "another encoder"])
def test_exemplars_with_kept_vectors_are_those_that_are_encoded(nlp, fingerprint):
    plain, kept = find_linker(nlp), find_linker(build())
    docs = [annotated(nlp, text) for text in (TEXT, OTHER, TEXT)]
    for linker in (plain, kept):
        linker.feedback.add_exemplars(docs[:1])
        linker.refresh()
    if fingerprint:
        kept.exemplars.fingerprint = fingerprint
    results = EncodingCache()
    for some in ([], docs):
        plain.feedback.add_exemplars(some)
        kept.feedback.add_exemplars(some, results)
    for linker in (plain, kept):
        linker.refresh()
    assert kept.exemplars.records == plain.exemplars.records
    assert_same_vectors(kept.exemplars.vectors, plain.exemplars.vectors)


@pytest.mark.slow
@each_kind
def test_learn_and_forget(nlp, linker, tmp_path):
    before, other = mention(nlp)._.arbo, ids(nlp, OTHER)
    span = mention(nlp)
    assert before.kb_id == "river"
    linker.feedback.learn(span, "cat")
    link = mention(nlp)._.arbo
    assert link.kb_id == "cat"
    assert link.score > 0.999
    assert [step.kind for step in link.evidence] == ["entity", "exemplar", "mention"]
    assert ids(nlp, OTHER) == other, "nothing else has changed"
    # In a similar context, too.
    assert ids(nlp, TEXT.replace("Boats", "Ships")) == ["cat"]
    # Kept on disk and in bytes.
    nlp.to_disk(tmp_path / "model")
    again = spacy.load(tmp_path / "model")
    assert ids(again) == ["cat"]
    copy = load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())
    assert ids(copy) == ["cat"]
    assert find_linker(again).feedback.forget(mention(again))
    assert ids(again) == ["river"]
    # The last correction counts, and forgetting it restores the first link.
    linker.feedback.learn(span, "shop")
    assert ids(nlp) == ["shop"]
    assert linker.feedback.forget(span)
    assert not linker.feedback.forget(span)
    assert mention(nlp)._.arbo == before


@each_kind
def test_learn_nil_and_reject_links(nlp, linker):
    span = mention(nlp)
    linker.feedback.learn(span, "NIL")
    link = mention(nlp)._.arbo
    assert link.kb_id == "NIL"
    assert link.cluster
    linker.feedback.forget(span)
    seen = []
    for _ in range(3):
        link = mention(nlp)._.arbo
        assert link.kb_id not in seen
        assert link.kb_id != "NIL"
        assert not set(seen) & {candidate.kb_id for candidate in link.candidates}
        seen.append(link.kb_id)
        linker.feedback.reject_link(span, link.kb_id)
    linker.feedback.forget(span)
    assert ids(nlp) == ["river"]


def test_only_entities_of_the_knowledge_base_can_be_learned_or_rejected(nlp, linker):
    span = mention(nlp)
    with raises("no entity 'city' in the knowledge base for the mention 'Amazon'.*Add it first"):
        linker.feedback.learn(span, "city")
    with raises("E510"):
        linker.feedback.reject_link(span, "city")
    assert not linker.stages.corrections.items
    assert len(linker.exemplars.inputs) == len(linker.exemplars)
    linker.kb.add(Entity("city", "Amazonas"))
    linker.feedback.learn(span, "city")
    assert ids(nlp) == ["city"]
    # Once the entity is removed, the correction has no effect.
    linker.kb.remove("city")
    assert ids(nlp) == ["river"]


def test_add_and_remove_exemplars():
    nlp = build([*ENTITIES, Entity("brook", "Brook", "a small stream")])
    linker = find_linker(nlp)
    text = "We fished in the [Glimmerling|brook] near our village."
    assert ids(nlp, text) != ["brook"]
    docs = [annotated(nlp, "They swam in the [Glimmerling|brook] near the village.")]
    count = len(linker.exemplars)
    assert linker.feedback.add_exemplars(docs) == 1
    assert linker.feedback.add_exemplars(docs) == 0
    assert linker.feedback.add_exemplars([without_links(docs[0])]) == 0
    assert ids(nlp, text) == ["brook"]
    assert linker.feedback.remove_exemplars(docs[0].ents) == 1
    assert len(linker.exemplars) == count
    assert ids(nlp, text) != ["brook"]
    assert linker.feedback.remove_exemplars([Span(docs[0], 0, 1)]) == 0


@pytest.mark.parametrize("kind", ["Independent", "Clustering"])
def test_corrections_count_with_an_inference_that_uses_no_exemplars(kind):
    nlp = build(inference={"@misc": f"spacy-arbo-el.{kind}.v1", "n_exemplars": 0})
    linker = find_linker(nlp)
    linker.feedback.learn(mention(nlp), "cat")
    assert ids(nlp) == ["cat"]


def test_a_rejected_entity_leaves_the_label_of_a_training_mention(nlp, linker):
    span, second = linked(nlp, OTHER).ents
    linker.feedback.reject_link(span, "car")
    assert label_of(linker, span) == ("cat",)
    assert ids(nlp, OTHER) == ["cat", "cat"]
    linker.kb.redirect({"animal": "cat"})
    linker.feedback.reject_link(span, "animal")
    assert label_of(linker, span) == ()
    assert ids(nlp, OTHER)[0] != "cat"
    linker.feedback.forget(span)
    assert ids(nlp, OTHER) == ["cat", "cat"]


def test_an_annotation_takes_the_place_of_an_earlier_correction(nlp, linker):
    span = mention(nlp)
    linker.feedback.learn(span, "shop")
    linker.feedback.add_exemplars([annotated(nlp, TEXT)])
    assert ids(nlp) == ["river"]
    assert not linker.feedback.forget(span)
    # One that says the same leaves the correction, and stays when that is forgotten.
    linker.feedback.learn(span, "river")
    linker.feedback.add_exemplars([annotated(nlp, TEXT)])
    # So does what is not annotated at all.
    linker.feedback.add_exemplars([unlinked_doc(nlp, TEXT)])
    assert linker.feedback.forget(span)
    assert label_of(linker, span) == ("river",)
    linker.feedback.learn(span, "shop")
    linker.feedback.add_exemplars([annotated(nlp, TEXT.replace("river", "NIL"))])
    assert not linker.feedback.forget(span)


def test_a_correction_holds_for_mentions_of_the_same_type():
    nlp = build(retriever={"match_types": True})
    linker = find_linker(nlp)
    doc = unlinked_doc(nlp, TEXT, label="COMPANY")
    linker.feedback.learn(doc.ents[0], "shop")
    for label, expected in (("COMPANY", "shop"), ("PLACE", "river")):
        doc = nlp(unlinked_doc(nlp, TEXT, label=label))
        assert [ent.kb_id_ for ent in doc.ents] == [expected]


@each_kind
def test_nothing_but_a_correction_reaches_a_threshold_of_one(nlp, linker):
    linker.threshold = 1.0
    linker.feedback.learn(mention(nlp), "cat")
    assert ids(nlp) == ["cat"]
    assert ids(nlp, OTHER) == ["NIL", "NIL"]


def test_a_rejection_leaves_what_was_learned(nlp, linker):
    span = mention(nlp)
    linker.feedback.learn(span, "shop")
    linker.feedback.reject_link(span, "river")
    assert ids(nlp) == ["shop"]
    linker.feedback.reject_link(span, "shop")
    assert ids(nlp)[0] not in ("shop", "river")
    linker.feedback.learn(span, "river")
    assert ids(nlp) == ["river"]
    linker.feedback.forget(span)
    assert linker.exemplars.row(key_of(span)) < 0
