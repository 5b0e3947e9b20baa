"""The cross-encoder as the reranker of a linker: bad input, round trips, explanations."""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
import spacy
from thinc.api import set_dropout_rate

from spacy_arbo_el import Calibration, Entity, find_linker
from spacy_arbo_el.base.log import warn_once
from spacy_arbo_el.contrib.papers.cross_encoder.cross_encoder import cross_encoder
from spacy_arbo_el.contrib.papers.cross_encoder.pair_scorer import PairScorer, check_scores
from spacy_arbo_el.encoders.shim import EncoderShim, shim_of
from spacy_arbo_el.fitting.calibrate import calibrate_pipeline
from spacy_arbo_el.ranking.ranking import BestEvidence, log_odds_by_vectors

from ...encoders.numpy_tower import build_hashed_encoder
from ...expecting import no_warnings, raises, warns
from ...linker.conftest import build_tiny
from ...linker.world import DEV, ENTITIES, TRAIN, annotated, examples
from ...tiny import save_tiny

SECTION = {
    "@misc": "spacy-arbo-el.CrossEncoder.v1",
    "n_reranked": 4,
    "as_feature": False,
    "window": 24,
    "text": 16,
    "ranker": {"@misc": "spacy-arbo-el.BestEvidence.v1"},
}
IN_RANKER = {
    **SECTION,
    "n_reranked": 5,
    "window": 20,
    "text": 12,
    "as_feature": True,
    "ranker": {"@misc": "spacy-arbo-el.FeatureRanker.v1", "pretrained": False},
}


def with_scorer(tiny_bert, entities=ENTITIES, section=SECTION, weight=0.0, **config):
    """A pipeline whose cross-encoder has random weights, so that it turns links at random."""
    nlp = build_tiny(tiny_bert, entities, reranker=section, **config)
    linker = find_linker(nlp)
    source = linker.model.get_ref("mention")
    scorer = PairScorer.create(source, linker.reranker.size, linker.encoder.fingerprint)
    head = scorer.model.layers[1]
    head.set_param("W", head.get_param("W") * 50)
    curves = linker.calibration.times(weight) if weight else None
    linker.reranker = replace(linker.reranker, scorer=scorer, vector_curves=curves)
    return nlp


@pytest.fixture(scope="module")
def nlp(tiny_bert):
    """Don't change it."""
    return with_scorer(tiny_bert)


@pytest.fixture(scope="module")
def fitted(tiny_bert):
    """One whose scores are a feature of a fitted ranker. Don't change it."""
    nlp = with_scorer(tiny_bert, section=IN_RANKER, weight=0.5)
    calibrate_pipeline(nlp, [eg.reference for eg in examples(nlp, [*DEV, *TRAIN])])
    assert find_linker(nlp).reranker.fitted.weights is not None
    return nlp


@contextmanager
def retrieved(nlp, texts=(*DEV, *TRAIN)):
    """What a reranker gets: the mentions of texts with their neighbours, and its context."""
    stages = find_linker(nlp).stages
    batch = stages.encode(stages.reader.read_docs(docs_of(nlp, texts)))
    with stages.datastore.snapshot():
        yield batch, stages.retrieve(batch), stages.context


def ranked(nlp, texts, reranker=None):
    """The ranking of the mentions of texts, and that of the ranker inside."""
    reranker = reranker or find_linker(nlp).reranker
    with retrieved(nlp, texts) as given:
        return reranker(*given), reranker.ranker(*given)


def pairs_of(nlp, texts=(*DEV, *TRAIN), candidates=(0, 1, 2)):
    """The pairs of the mentions of texts, each with the entities at these positions."""
    with retrieved(nlp, texts) as (batch, _, context):
        table = np.tile(candidates, (len(batch), 1))
        return find_linker(nlp).reranker.pairs(batch, table, context)


def links(docs):
    return [[(span.kb_id_, span._.arbo.ids) for span in doc.ents] for doc in docs]


def docs_of(nlp, texts=(*DEV, *TRAIN)):
    return [annotated(nlp, text) for text in texts]


def scores(docs):
    return [score for doc in docs for span in doc.ents for score in span._.arbo.scores]


def assert_linked_alike(found, expected):
    assert links(found) == links(expected)
    assert scores(found) == scores(expected)


def test_without_training_links_are_those_of_the_ranker_inside(tiny_bert):
    plain, with_section = build_tiny(tiny_bert), build_tiny(tiny_bert, reranker=SECTION)
    found, expected = (list(n.pipe(docs_of(n))) for n in (with_section, plain))
    assert_linked_alike(found, expected)
    assert find_linker(with_section).reranker.to_bytes() == b""


def test_scored_candidates_come_first_by_their_scores_and_the_others_keep_their_order(nlp, linker):
    with retrieved(nlp, TRAIN) as given:
        scored = linker.reranker.score(*given)
    after, before = ranked(nlp, TRAIN)
    best = np.take_along_axis(scored.first, scored.scores.argmax(axis=1)[:, None], axis=1)
    assert (after.candidates.ids[:, 0] == best[:, 0]).all()
    k = linker.reranker.n_reranked
    assert (np.sort(after.candidates.ids[:, :k]) == np.sort(before.candidates.ids[:, :k])).all()
    assert (after.candidates.ids[:, k:] == before.candidates.ids[:, k:]).all()
    assert (after.candidates.ids[:, 0] != before.candidates.ids[:, 0]).any()
    valid = after.candidates.valid
    assert (np.diff(np.where(valid, after.candidates.scores, -1e9), axis=1) <= 0).all()
    assert np.isfinite(after.candidates.scores[valid]).all()


def test_the_order_of_the_knowledge_base_changes_no_score(tiny_bert, nlp):
    other = with_scorer(tiny_bert, entities=ENTITIES[::-1])
    linker = find_linker(other)
    linker.kb.remove([ENTITIES[0].id])
    linker.kb.add([ENTITIES[0]])
    found = []
    for each in (nlp, other):
        own = find_linker(each)
        positions = own.kb.entities.positions_of([e.id for e in ENTITIES[:3]])
        found.append(own.reranker.scorer(pairs_of(each, candidates=positions)))
    np.testing.assert_allclose(*found, atol=1e-5)


def test_token_types_are_those_of_the_two_parts(nlp, monkeypatch):
    scorer, seen = find_linker(nlp).reranker.scorer, []
    pairs = pairs_of(nlp, candidates=range(5))
    shim, predict = shim_of(scorer.tower), EncoderShim.predict
    # Where the candidate begins.
    borders = {}
    for start, end, first in zip(pairs.offsets, pairs.offsets[1:], pairs.first.tolist()):
        borders[tuple(pairs.ids[start:end].tolist())] = first

    def keep(self, inputs):
        if self is shim:
            seen.append(inputs.kwargs)
        return predict(self, inputs)

    monkeypatch.setattr(EncoderShim, "predict", keep)
    scorer(pairs)
    assert seen
    for kwargs in seen:
        keys = ("input_ids", "attention_mask", "token_type_ids")
        for ids, mask, types in zip(*(kwargs[key].tolist() for key in keys)):
            length = sum(mask)
            border = borders[tuple(ids[:length])]
            assert types == [int(border <= i < length) for i in range(len(ids))]


def test_the_gradient_of_the_linear_layer_is_that_of_the_scores(nlp):
    scorer = PairScorer.from_bytes(find_linker(nlp).reranker.scorer.to_bytes())
    pairs = pairs_of(nlp)
    saved = PairScorer.from_bytes(scorer.to_bytes())
    np.testing.assert_array_equal(saved(pairs), scorer(pairs))
    shim_of(scorer.tower).precision = "float32"
    gradient = np.random.default_rng(0).normal(size=len(pairs)).astype(np.float32)
    set_dropout_rate(scorer.model, 0.0)
    scores, backprop = scorer.begin_update(pairs)
    np.testing.assert_allclose(scores, scorer(pairs), atol=1e-3)
    backprop(gradient)
    head, step = scorer.model.layers[1], 1e-2
    for name, place in (("W", (0, 3)), ("b", 0)):
        moved = head.get_param(name).copy()
        moved[place] += step
        expected, old = float(head.get_grad(name)[place]), head.get_param(name)
        head.set_param(name, moved)
        assert ((scorer(pairs) - scores) @ gradient) / step == pytest.approx(expected, rel=0.02)
        head.set_param(name, old)


def test_log_odds_by_vectors_are_added_to_the_scores(nlp, fitted):
    reranker = find_linker(fitted).reranker
    curves = reranker.vector_curves
    with retrieved(fitted) as given:
        with_curves = reranker.score(*given)
        plain = replace(reranker, vector_curves=None).score(*given)
    assert (with_curves.first == plain.first).all()
    assert curves != find_linker(fitted).calibration
    added = log_odds_by_vectors(plain.neighbours, curves).scores_or_least(plain.first)
    np.testing.assert_allclose(with_curves.scores, plain.scores + added, rtol=1e-4, atol=1e-4)


# Bad input


def test_a_mention_without_candidates_and_one_with_one_candidate(tiny_bert):
    for entities in ([], ENTITIES[:1]):
        nlp = with_scorer(tiny_bert, entities, train=[])
        after, before = ranked(nlp, DEV[:2])
        assert (after.candidates.ids == before.candidates.ids).all()
        assert (after.candidates.scores == before.candidates.scores).all()
        expected = "planet" if entities else "NIL"
        assert [span.kb_id_ for span in nlp(docs_of(nlp, DEV[:1])[0]).ents] == [expected]


def test_an_entity_without_text_is_scored_like_the_others(tiny_bert):
    silent = Entity("Q1", meta={"unnamed": True})
    train = [*TRAIN, "A [zorb|Q1] is round.", "The [zorb|Q1] rolled."]
    nlp = with_scorer(tiny_bert, [*ENTITIES, silent], train=train)
    after, before = ranked(nlp, ["Nobody saw the [zorb|Q1] again."])
    position = find_linker(nlp).kb.entities.position("Q1")
    assert position in before.candidates.ids[0, :4]
    assert position in after.candidates.ids[0, :4]
    assert np.isfinite(after.candidates.scores[0, :4]).all()


@pytest.mark.parametrize("kind", ["roberta", "xlm-roberta", "mpnet", "deberta-v2"])
def test_a_transformer_without_token_types_reads_pairs(kind, tmp_path):
    nlp = with_scorer(save_tiny(tmp_path / kind, kind))
    after, before = ranked(nlp, ["He has a [cold|cold] and the [flu|flu]."])
    assert np.isfinite(after.candidates.scores[:, 0]).all()
    assert not np.array_equal(after.candidates.scores, before.candidates.scores)


def test_transformers_that_cannot_read_the_pairs_are_refused(nlp, tiny):
    source = tiny.model.get_ref("mention")
    with raises("E875"):
        find_linker(nlp).reranker.scorer(replace(pairs_of(nlp), ids=np.full(10**4, 10**6)))
    with raises("E206.*4096.*window \\+ text"):
        PairScorer.create(source, 4096, "")
    with raises("E874"):
        PairScorer.create(build_hashed_encoder(), 40, "")


def test_a_retriever_that_has_changed_since_is_warned_of(nlp):
    reranker = find_linker(nlp).reranker
    other = replace(reranker, scorer=PairScorer(reranker.scorer.model, "another"))
    warn_once.cache_clear()
    with warns("W870"):
        ranked(nlp, DEV[:1], other)
    warn_once.cache_clear()
    with no_warnings():
        ranked(nlp, DEV[:1])


def test_nan_is_an_error(tiny_bert):
    with raises("2 of 3"):
        check_scores(np.array([1.0, np.nan, np.inf]))
    nlp = with_scorer(tiny_bert)
    head = find_linker(nlp).reranker.scorer.model.layers[1]
    head.set_param("b", head.ops.asarray1f([np.nan]))
    with raises("E873"):
        nlp(docs_of(nlp)[0])
    with raises("not finite"):
        find_linker(nlp).reranker.from_bytes(find_linker(nlp).reranker.to_bytes())
    curves = replace(Calibration(), exemplar=(np.nan, 0.0))
    broken = replace(find_linker(with_scorer(tiny_bert)).reranker, vector_curves=curves)
    with raises("E401"):
        broken.from_bytes(broken.to_bytes())


def test_settings_that_do_not_fit_are_refused(nlp):
    with raises("E870"):
        cross_encoder(BestEvidence())
    reranker = find_linker(nlp).reranker
    with raises("E871"):
        replace(reranker, window=200).from_bytes(reranker.to_bytes())


# Round trips


@pytest.mark.parametrize("batch_size", [1, 3, 64])
@pytest.mark.parametrize("kind", ["nlp", "fitted"])
def test_call_equals_pipe(request, kind, batch_size):
    nlp = request.getfixturevalue(kind)
    expected = [nlp(doc) for doc in docs_of(nlp)]
    found = list(nlp.pipe(docs_of(nlp), batch_size=batch_size))
    assert links(found) == links(expected)
    assert scores(found) == pytest.approx(scores(expected), abs=1.1e-4)


@pytest.mark.parametrize("kind", ["nlp", "fitted"])
def test_to_bytes_and_to_disk_and_back(request, kind, tmp_path):
    nlp = request.getfixturevalue(kind)
    expected = list(nlp.pipe(docs_of(nlp)))
    config = nlp.config
    nlp.to_disk(tmp_path / "model")
    again = spacy.load(tmp_path / "model")
    assert_linked_alike(list(again.pipe(docs_of(again))), expected)
    copy = spacy.util.load_model_from_config(config).from_bytes(nlp.to_bytes())
    assert_linked_alike(list(copy.pipe(docs_of(copy))), expected)
    reranker = find_linker(nlp).reranker
    assert find_linker(again).reranker.to_bytes() == reranker.to_bytes()
