"""The linker with a lexicon and a fitted ranker, as a whole."""

import numpy as np
import pytest
import spacy
from spacy.util import registry

from spacy_arbo_el.evaluation.calibrate import calibrate_pipeline
from spacy_arbo_el.evaluation.comparison import PROCEDURES, compare_procedures
from spacy_arbo_el.evaluation.report import compare_inference, scores_of
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.retrieval.candidates import FEATURES

from .conftest import build
from .world import DEV, ENTITIES, TRAIN, annotated, examples, without_links

LEXICON = {"@misc": "spacy-arbo-el.CharacterNgrams.v1"}


def fitted():
    nlp = build(train=TRAIN[:4], lexicon=LEXICON)
    calibrate_pipeline(nlp, [eg.reference for eg in examples(nlp, [*DEV, *TRAIN[4:]])])
    return nlp


def links(nlp, texts, **how):
    docs = nlp.pipe([annotated(nlp, text) for text in texts], **how)
    return [
        [(span.kb_id_, span._.arbo.score, span._.arbo.ids) for span in doc.ents] for doc in docs
    ]


def test_a_ranker_is_fitted_saved_and_used(tmp_path):
    nlp = fitted()
    linker = nlp.get_pipe("arbo_linker")
    assert linker.calibration.ranker is not None
    assert nlp.evaluate(examples(nlp, DEV))["arbo_acc"] >= 0.7
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path)
    calibration = again.get_pipe("arbo_linker").calibration
    assert calibration.to_config() == linker.calibration.to_config()
    assert calibration.ranker.to_bytes() == linker.calibration.ranker.to_bytes()
    assert links(again, DEV) == links(nlp, DEV)


def test_the_batch_does_not_matter():
    nlp = fitted()
    assert links(nlp, DEV, batch_size=1) == links(nlp, DEV, batch_size=8)


def test_an_entity_added_is_found_by_its_letters_at_once():
    nlp = fitted()
    nlp.get_pipe("arbo_linker").kb.add(Entity("zyx", "Zyxwvut"))
    assert nlp(annotated(nlp, "A trip to [Zyxwvut|zyx] is long.")).ents[0].kb_id_ == "zyx"


def test_settings_of_the_encoder_given_on_loading_win(tmp_path):
    nlp = build()
    nlp.to_disk(tmp_path)
    setting = {"components.arbo_linker.model.mention.predict_tokens": 64}
    again = spacy.load(tmp_path, config=setting)
    tower = again.get_pipe("arbo_linker").model.get_ref("mention")
    assert tower.attrs["predict_tokens"] == 64
    assert nlp.get_pipe("arbo_linker").model.get_ref("mention").attrs["predict_tokens"] == 0


def test_cross_validated_scores_leave_the_calibration_as_it_was():
    nlp = fitted()
    linker = nlp.get_pipe("arbo_linker")
    before = linker.calibration.ranker.to_bytes()
    data = examples(nlp, [*DEV, *TRAIN[4:]])
    scores = compare_inference(nlp, data, folds=4)
    assert linker.calibration.ranker.to_bytes() == before
    as_it_is = compare_inference(nlp, data)
    for name in ("names alone", "names + exemplars", "as configured"):
        # Every mention is scored once, by a calibration that did not see it.
        assert scores[name]["arbo_mentions"] == as_it_is[name]["arbo_mentions"] > len(DEV)
    assert scores["as configured"]["arbo_acc"] <= as_it_is["as configured"]["arbo_acc"]


def test_names_stay_alike_in_the_words_that_mentions_are_read_in():
    british = Entity("a", "haemolytic anaemia", "a disease")
    entities = [british, Entity("b", "hemolysis", "a process")]
    rewrite = {"@misc": "spacy-arbo-el.AmericanSpelling.v1"}
    nlp = build(entities, train=["nothing here"], lexicon=LEXICON, rewrite=rewrite)
    linker = nlp.get_pipe("arbo_linker")
    doc = annotated(nlp, "She has [haemolytic anaemia|a].")
    candidates = linker.find_neighbours([doc.ents]).candidates
    at = candidates.entities[0].tolist().index(0)
    assert candidates.features[0, at, FEATURES.index("name_letters")] == pytest.approx(1.0)


def test_a_lexicon_without_any_exemplar():
    nlp = build(train=["nothing here"], lexicon=LEXICON)
    assert not len(nlp.get_pipe("arbo_linker").exemplars)
    doc = nlp(annotated(nlp, DEV[0]))
    assert doc.ents[0].kb_id_ in ("planet", "metal")
    calibrate_pipeline(nlp, [eg.reference for eg in examples(nlp, [*DEV, *TRAIN])])
    assert nlp.evaluate(examples(nlp, DEV))["arbo_acc"] > 0


def test_mentions_are_encoded_once_for_all_procedures():
    nlp = fitted()
    linker = nlp.get_pipe("arbo_linker")
    data = examples(nlp, DEV)
    one_by_one = {name: scores_of(nlp, linker, how, data) for name, how in PROCEDURES.items()}
    encode, counted = linker.encoding.encode_windows, []
    linker.encoding.encode_windows = lambda w: counted.append(len(w)) or encode(w)
    assert compare_procedures(nlp, data) == one_by_one
    assert sum(counted) == len(DEV)


def test_an_entity_known_by_exemplars_alone_goes_by_their_forms():
    nlp = build(
        [*ENTITIES, Entity("X17"), Entity("X18")],
        lexicon=LEXICON,
        train=[*TRAIN, "They rode a [Zorblat|X17] home.", "The [Zorblat|X17] was green."],
    )
    linker = nlp.get_pipe("arbo_linker")
    doc = without_links(annotated(nlp, "She bought a [Zorblat|X17] there."))
    found = linker.find_neighbours([doc.ents]).candidates
    place = linker.kb.entities.position("X17")
    (column,) = np.flatnonzero(found.entities[0] == place)
    features = dict(zip(FEATURES, found.features[0, column].tolist()))
    assert features["name_letters"] == pytest.approx(1.0) and features["seen"] == 1
    assert features["name"] == features["exemplar"] == features["nearest"]
    # One without exemplars has its id for a name.
    strings = linker.memory._strings[1]
    assert strings.nameless.sum() == 1 and not strings.nameless[linker.kb.entities.position("X18")]


@pytest.mark.parametrize("is_fitted", [True, False])
@pytest.mark.parametrize("kind", ["Clustering", "Consensus", "Independent"])
def test_a_corpus_of_one_document_is_linked_as_the_document_is(is_fitted, kind):
    nlp = fitted() if is_fitted else build(train=TRAIN[:4], lexicon=LEXICON)
    linker = nlp.get_pipe("arbo_linker")
    linker.inference = registry.misc.get(f"spacy-arbo-el.{kind}.v1")()
    linker.threshold = 0.4
    for text in [*DEV, *TRAIN]:
        alone, together = (without_links(annotated(nlp, text)) for _ in range(2))
        expected = [ent._.arbo for ent in nlp(alone).ents]
        linker.link_corpus([together])
        found = [ent._.arbo for ent in together.ents]
        for one, other in zip(expected, found):
            assert (one.kb_id, one.score, one.ids) == (other.kb_id, other.score, other.ids)
            assert one.scores == pytest.approx(other.scores)
            assert [step[:3] for step in one.evidence] == [step[:3] for step in other.evidence]
