"""Settings and vectors at their limits and beyond: one message, or sensible links."""

import math
from inspect import isfunction, signature
from typing import get_type_hints

import pytest
from spacy.tokens import Span
from spacy.util import registry

from spacy_arbo_el import ArboError, Entity, find_linker

from ..cases import cases
from ..expecting import raises
from .conftest import TOWER, build
from .world import DEV, ENTITIES, TRAIN, annotated, unlinked_doc

NAN, INF = math.nan, math.inf
# What no setting of a type can be: types are those of the parameters of registered parts.
WRONG = {int: [2.5, NAN, True, "3"], float: [NAN, True, "0.5"]}
OUT_OF_RANGE = {(part, name): values for part, name, values in cases("settings_out_of_range")}
NEEDED = {
    "Retriever.v1": {"verbalization": None, "similarity": None, "index": None},
    "FaissIndex.v1": {"factory": "IVF64,SQ8", "search": "nprobe=8"},
    "TransformerEncoder.v1": {"name": "x", "window": 32, "pooling": None},
    "DocumentEncoder.v1": {"name": "x", "passage": 32, "text": 32, "pooling": None},
    "batch_by_concept.v1": {"n_concepts": 1, "n_mentions": 1},
    "batch_by_mention.v1": {"size": 1},
}
PARTS = {
    name.removeprefix("spacy-arbo-el."): table.get(name)
    for table in (registry.misc, registry.losses, registry.batchers, registry.architectures)
    for name in table.get_all()
    if name.startswith("spacy-arbo-el.")
}


@pytest.mark.parametrize("part", PARTS)
def test_settings_of_another_type_or_out_of_range_are_refused_with_their_name(part):
    types = get_type_hints(PARTS[part] if isfunction(PARTS[part]) else PARTS[part].__init__)
    settings = signature(PARTS[part]).parameters
    needed = {name: None for name, one in settings.items() if one.default is one.empty}
    assert {name for key, name in OUT_OF_RANGE if key == part} <= settings.keys()
    for name in settings:
        for value in [*WRONG.get(types.get(name), []), *OUT_OF_RANGE.get((part, name), [])]:
            with pytest.raises(ArboError) as error:
                PARTS[part](**{**needed, **NEEDED.get(part, {}), name: value})
            assert repr(value) in str(error.value), (name, value)
            assert name in str(error.value), (name, value)


@pytest.mark.parametrize("threshold", [-0.1, 1.1, NAN, INF, -INF, None, "0.3", True])
def test_thresholds_that_are_no_probabilities_are_refused(hashed, threshold):
    linker = find_linker(hashed)
    doc = annotated(hashed, DEV[0])
    with raises("E402.*between 0 and 1"):
        linker.threshold = threshold
    if not isinstance(threshold, float):
        return
    with raises("between 0 and 1"):
        linker.corpus.discover([doc], threshold=threshold)
    with raises("between 0 and 1"):
        list(linker.corpus.link_stream(lambda: [doc], threshold=threshold))
    # JSON has no NaN and no infinity: spaCy refuses them in a config.
    with raises("between 0 and 1|non-serializable"):
        build(**TOWER, threshold=threshold)


@pytest.fixture(scope="module")
def hashed():
    """A linker whose encoder is in NumPy. Don't change it."""
    return build(**TOWER)


def checked_links(nlp, texts=DEV):
    """The links of documents, each of which must be an entity with a probability, or NIL."""
    linker = find_linker(nlp)
    docs = list(nlp.pipe(unlinked_doc(nlp, text) for text in texts))
    links = [ent._.arbo for doc in docs for ent in doc.ents]
    assert len(links) == sum(text.count("[") for text in texts)
    for link in links:
        assert link.kb_id == "NIL" or link.kb_id in linker.kb
        assert link.score >= 0.0
        assert link.score <= 1.0
        assert len(set(link.ids)) == len(link.ids)
        assert len(link.ids) == len(link.scores)
        assert all(0.0 <= score <= 1.0 for score in link.scores)
    linker.explain(docs[0].ents[0], "planet")
    linker.corpus.link(docs)
    linker.corpus.discover(docs)
    return links


@pytest.mark.parametrize("config", cases("sane_settings"), ids=str)
@pytest.mark.parametrize("entities", [ENTITIES, ENTITIES[:1], []], ids=["all", "one", "none"])
def test_settings_at_their_limits_give_sensible_links(config, entities):
    inference = config.get("inference", {})
    clustering = {"@misc": "spacy-arbo-el.Clustering.v1", **inference}
    nlp = build(entities, [], **{**TOWER, **config, "inference": clustering})
    links = checked_links(nlp)
    if not entities:
        assert all(link.is_nil and not link.ids for link in links)


@pytest.mark.parametrize("fill", ["equal", "tiny", "one row", "zero"])
@pytest.mark.parametrize("similarity", ["Cosine", "Dot", "NegativeSquaredEuclidean"])
def test_degenerate_vectors_give_sensible_links(fill, similarity):
    nlp = build(**TOWER, retriever={"similarity": {"@misc": f"spacy-arbo-el.{similarity}.v1"}})
    linker = find_linker(nlp)
    weights = linker.model.get_ref("mention").get_param("E")
    weights[:] = {"equal": 1.0, "tiny": 1e-30}.get(fill, 0.0)
    if fill == "one row":
        weights[::2] = 1.0
    linker.encoder.weights_changed()
    links = checked_links(nlp)
    if fill == "zero":
        # A row of zeros is no vector, so that names alone are left.
        texts = [ent.text for text in DEV for ent in annotated(nlp, text).ents]
        for text, link in zip(texts, links):
            positions = linker.kb.entities.with_name(text.casefold())
            assert sorted(link.ids) == sorted(linker.kb.entities.at(p).id for p in positions)


def test_more_candidates_than_entities_are_all_entities(hashed):
    links = checked_links(hashed)
    assert all(len(link.ids) == len(ENTITIES) for link in links)


def test_mentions_of_one_character_white_space_and_the_whole_document(hashed):
    for text in ("x", "\n", "Mercury", "The " * 3000 + "end"):
        doc = hashed.make_doc(text)
        doc.ents = [Span(doc, 0, len(doc), label="X")]
        hashed(doc)
        assert len(doc.ents) <= 1


def test_entities_with_endless_names_and_without_any():
    entities = [
        Entity("long", "word " * 200_000, "text " * 200_000, ["alias " * 50_000]),
        Entity("empty", "", ""),
        *ENTITIES,
    ]
    nlp = build(entities, TRAIN)
    doc = nlp(unlinked_doc(nlp, DEV[0]))
    assert doc.ents[0].kb_id_ == "planet"
