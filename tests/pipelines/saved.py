"""A small pipeline whose linker has something in every part, and what it holds, to compare."""

from dataclasses import replace

import numpy as np
import spacy

from spacy_arbo_el import Entity, find_linker
from spacy_arbo_el.ranking.features import COMPARED
from spacy_arbo_el.ranking.ranker_fit import HIDDEN
from spacy_arbo_el.ranking.ranker_weights import PRESENCE_FEATURES, RankerWeights

from ..linker.conftest import build
from ..linker.world import TRAIN, annotated, unlinked_doc

NAME = "arbo_linker"
PARTS = ("model", "exemplars", "reranker", "corrections", "new_entities")
NEW = ["They met [Quorn Ltd|x] there.", "Shares of [Quorn Ltd|x] fell.", "A [zorb|x] was seen."]


def tiny_pipeline(tiny_bert):
    """A pipeline with exemplars, corrections, new entities, and a fitted reranker."""
    nlp = build(
        model={"mention": {"name": str(tiny_bert), "window": 24, "precision": "float32"}},
        reranker={"@misc": "spacy-arbo-el.FeatureRanker.v1"},
        threshold=0.999,
    )
    linker = find_linker(nlp)
    linker.reranker = replace(linker.reranker, weights=_weights())
    linker.feedback.learn(annotated(nlp, TRAIN[0]).ents[0], "metal")
    linker.feedback.reject_link(annotated(nlp, TRAIN[1]).ents[0], "planet")
    docs = [unlinked_doc(nlp, text) for text in NEW]
    linker.new_entities = linker.corpus.discover(docs)
    # The tiny encoder finds all alike.
    linker.new_entities.split(linker.new_entities[0], [2])
    assert len(linker.new_entities)
    assert len(linker.exemplars)
    return nlp


def _weights():
    rng = np.random.default_rng(0)
    width = 2 * len(COMPARED)
    sizes = (width, width, width, (width, HIDDEN), HIDDEN, HIDDEN, len(PRESENCE_FEATURES) + 3)
    arrays = [rng.random(size).astype(np.float32) + 0.1 for size in sizes]
    return RankerWeights(*arrays)


def empty_linker(nlp):
    """A linker with the settings of a pipeline's, and nothing in it."""
    config = nlp.config.interpolate()["components"][NAME]
    config = {key: value for key, value in config.items() if key != "factory"}
    return spacy.blank("xx").add_pipe(NAME, config=config)


def load_component(folder, nlp):
    """What a fresh linker with the settings of a pipeline reads from a component's folder."""
    return empty_linker(nlp).from_disk(folder, exclude=["vocab"])


def change(nlp):
    """Change every part of a linker, and one of its settings."""
    linker = find_linker(nlp)
    linker.kb.add(Entity("new", "Quorn Ltd", "maker of meat"))
    linker.feedback.learn(annotated(nlp, NEW[0]).ents[0], "new")
    linker.feedback.forget(annotated(nlp, TRAIN[0]).ents[0])
    linker.new_entities.reject(linker.new_entities.ids[0])
    weights = linker.reranker.weights
    linker.reranker = replace(linker.reranker, weights=replace(weights, accuracy=0.5))
    linker.threshold = 0.25
    linker.refresh()


def contents(linker):
    """What a linker holds, settings of the config left aside."""
    kb = linker.kb
    return {
        "kb": [(entity.id, entity.title, entity.description) for entity in kb],
        "vectors": kb.rows.array().tobytes(),
        "exemplars": linker.exemplars.to_bytes(),
        "corrections": linker.stages.corrections.to_bytes(),
        "new_entities": linker.new_entities.to_bytes(),
        "reranker": linker.reranker.to_bytes(),
        "encoder": linker.encoder.fingerprint,
    }
