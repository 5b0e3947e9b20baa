"""The linker with a fitted feature ranker, as a whole."""

from functools import cache

import numpy as np
import pytest
import spacy
from spacy.util import registry

from spacy_arbo_el import Entity, find_linker
from spacy_arbo_el.fitting.calibrate import annotated_mentions, calibrate_pipeline, install
from spacy_arbo_el.ranking.feature_ranker import PARTS, PRIME
from spacy_arbo_el.ranking.features import FEATURES, CandidateFeatures

from ..expecting import no_warnings, warns
from ..linker.conftest import build as build_hashed
from ..linker.conftest import build_bundled as build
from ..linker.world import DEV, ENTITIES, TRAIN, annotated, examples, unlinked_doc

# Words alone can't do what most of these are about.
pytestmark = pytest.mark.bundled

FEATURE_RANKER = {"@misc": "spacy-arbo-el.FeatureRanker.v1"}


@cache
def learned():
    nlp = build(train=TRAIN[:4], reranker=FEATURE_RANKER)
    docs = [eg.reference for eg in examples(nlp, [*DEV, *TRAIN[4:]])]
    return calibrate_pipeline(nlp, docs)["arbo_linker"]


def fitted():
    nlp = build(train=TRAIN[:4], reranker=FEATURE_RANKER)
    install(nlp, "arbo_linker", find_linker(nlp), learned())
    return nlp


def links(nlp, texts, **how):
    docs = nlp.pipe([annotated(nlp, text) for text in texts], **how)
    return [
        [(span.kb_id_, span._.arbo.score, span._.arbo.ids) for span in doc.ents] for doc in docs
    ]


def test_a_ranker_is_fitted_saved_and_used(tmp_path):
    nlp = fitted()
    linker = find_linker(nlp)
    assert linker.reranker.weights is not None
    assert nlp.evaluate(examples(nlp, DEV))["arbo_acc"] >= 0.7
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path)
    loaded = find_linker(again)
    assert loaded.calibration.to_config() == linker.calibration.to_config()
    assert loaded.reranker.to_bytes() == linker.reranker.to_bytes()
    assert links(again, DEV) == links(nlp, DEV)


def gather(linker, doc):
    """The candidates of a Doc's mentions with their features."""
    stages = linker.stages
    batch = stages.encode(stages.read([doc.ents]))
    return stages.reranker.gather(batch, stages.retrieve(batch), stages.context)


def test_names_are_normalized_as_mentions_are():
    british = Entity("a", "haemolytic anaemia", "a disease")
    entities = [british, Entity("b", "hemolysis", "a process")]
    mentions = {"normalizer": {"@misc": "spacy-arbo-el.AmericanSpelling.v1"}}
    nlp = build(entities, train=["nothing here"], reranker=FEATURE_RANKER, mentions=mentions)
    doc = annotated(nlp, "She has [haemolytic anaemia|a].")
    candidates = gather(find_linker(nlp), doc)
    at = candidates.entities[0].tolist().index(0)
    assert candidates.features[0, at, FEATURES.index("name_ngrams")] == pytest.approx(1.0)


def test_an_entity_without_a_name_goes_by_the_surface_forms_of_its_exemplars():
    nlp = build(
        [*ENTITIES, Entity("X17"), Entity("X18")],
        reranker=FEATURE_RANKER,
        train=[*TRAIN, "They rode a [Zorblat|X17] home.", "The [Zorblat|X17] was green."],
    )
    linker = find_linker(nlp)
    doc = unlinked_doc(nlp, "She bought a [Zorblat|X17] there.")
    candidates = gather(linker, doc)
    position = linker.kb.entities.position("X17")
    (column,) = np.flatnonzero(candidates.entities[0] == position)
    features = dict(zip(FEATURES, candidates.features[0, column].tolist()))
    assert features["name_ngrams"] == pytest.approx(1.0)
    assert features["has_exemplar"] == 1
    assert features["name"] == features["exemplar"]
    assert features["exemplar"] == features["nearest"]
    # One without exemplars has its id as its name.
    everything = np.arange(-1, linker.kb.entities.positions)
    has_only_id = linker.refresh().strings.has_only_id(everything)
    assert has_only_id.sum() == 1
    assert has_only_id[position + 1]


@pytest.mark.parametrize("is_fitted", [True, False])
@pytest.mark.parametrize("kind", ["Clustering", "Independent"])
def test_a_corpus_of_one_document_is_linked_as_the_document_is(is_fitted, kind):
    nlp = build_hashed(train=TRAIN[:4], reranker=FEATURE_RANKER)
    linker = find_linker(nlp)
    if is_fitted:
        install(nlp, "arbo_linker", linker, learned())
    linker.inference = registry.misc.get(f"spacy-arbo-el.{kind}.v1")()
    linker.threshold = 0.4
    for text in [*DEV, *TRAIN]:
        doc, corpus_doc = (unlinked_doc(nlp, text) for _ in range(2))
        expected = [ent._.arbo for ent in nlp(doc).ents]
        linker.corpus.link([corpus_doc])
        actual = [ent._.arbo for ent in corpus_doc.ents]
        for one, other in zip(expected, actual):
            assert (one.kb_id, one.score, one.ids) == (other.kb_id, other.score, other.ids)
            assert one.scores == pytest.approx(other.scores)
            assert [step[:3] for step in one.evidence] == [step[:3] for step in other.evidence]


@pytest.mark.slow
def test_another_reranker_in_the_config_leaves_out_what_was_learned(tmp_path):
    nlp = fitted()
    nlp.to_disk(tmp_path / "model")

    def loaded(**reranker):
        config = {"components": {"arbo_linker": {"reranker": reranker}}}
        return find_linker(spacy.load(tmp_path / "model", config=config)).reranker

    with warns("W503.*saved as FeatureRanker, .*config has BestEvidence"):
        loaded(**{"@misc": "spacy-arbo-el.BestEvidence.v1"})
    with no_warnings():
        assert loaded(n_reranked=12).to_bytes() == find_linker(nlp).reranker.to_bytes()


def test_withheld_features_are_those_without_the_exemplars():
    """The same as in a linker from which the exemplars of these entities were removed."""
    linker = trained_linker()
    mentions, context = retrieved(linker), linker.stages.context
    rows, parts = linker.reranker.gather_withheld(mentions, context)
    withheld = CandidateFeatures.concat(parts)
    assert sorted(rows) == np.flatnonzero((mentions.gold >= 0).any(axis=1)).tolist()
    part_of = np.arange(len(linker.kb)) * PRIME % PARTS
    owners = linker.datastore.exemplars.entities(linker.kb)
    assert len(owners)
    for part in range(PARTS):
        other = trained_linker()
        store = other.datastore.exemplars
        keys = [record.key for record, i in zip(store.records, owners) if part_of[i] == part]
        with other.datastore.editing():
            store.remove(keys)
        expected = other.reranker.gather(*retrieved(other)[:2], other.stages.context)
        places = np.flatnonzero(part_of[mentions.gold[rows].max(axis=1)] == part)
        without = expected.take(rows[places])
        np.testing.assert_array_equal(withheld.entities[places], without.entities)
        # The weights of n-grams count the surface forms of exemplars too.
        np.testing.assert_allclose(withheld.features[places], without.features, atol=0.01)


def trained_linker():
    return find_linker(build_hashed(train=TRAIN, reranker=FEATURE_RANKER))


def retrieved(linker):
    """Annotated mentions with their neighbours and gold entities."""
    docs = [eg.reference for eg in examples(spacy.blank("xx"), DEV)]
    return annotated_mentions(linker.stages, docs)
