"""What the calibration is fitted on, and the curves of texts and of exemplars."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_arbo_el import Calibration, Neighbours, TopK, find_linker
from spacy_arbo_el.base.calibration import fit_logistic, fit_offset, probability
from spacy_arbo_el.fitting.calibrate import (
    divided,
    fit_calibration,
    fit_evidence,
    fit_folds,
    mention_edges,
)
from spacy_arbo_el.mentions.labels import is_gold
from spacy_arbo_el.ranking.ranking import rank_by_best_evidence

from ..linker.conftest import build
from ..linker.world import TRAIN, annotated


def test_only_mention_edges_between_different_entities_are_used():
    """The best candidate of mentions 0 and 1 is entity 5. Mention 2 has the gold entity of 0."""
    nearest = np.array([[5], [5], [7], [8]])
    others = np.array([[1, 2], [0, 3], [0, 3], [2, -1]])
    similarity = np.array([[0.9, 0.8], [0.9, 0.4], [0.8, 0.3], [0.3, -np.inf]], np.float32)
    neighbours = Neighbours(
        entities=TopK(nearest, np.full((4, 1), 0.5, np.float32)),
        exemplars=TopK.empty(4),
        mentions=TopK(others, similarity),
        exemplar_entities=TopK.empty(4).ids,
    )
    ranking = rank_by_best_evidence(neighbours, Calibration(), 1)
    identities = [{"a"}, {"a"}, {"a"}, {"new:1"}]
    scores, correct = mention_edges(ranking, neighbours.mentions, identities)
    np.testing.assert_array_equal(scores, np.array([0.8, 0.4, 0.8, 0.3, 0.3], np.float32))
    assert correct.tolist() == [True, False, True, False, False]


@given(st.integers(0, 1 << 30), st.floats(0.5, 30), st.integers(10, 60), st.floats(0, 1))
def test_a_curve_with_a_given_slope_is_right_on_average(seed, slope, n, share):
    rng = np.random.default_rng(seed)
    similarity, correct = rng.normal(size=n), rng.random(n) < share
    found, offset = fit_offset(similarity, correct, slope)
    expected = (correct.sum() + 0.5) / (n + 1)
    assert found == slope
    assert probability(slope * similarity + offset).mean() == pytest.approx(expected, abs=1e-6)
    assert fit_offset(similarity[:9], correct[:9], slope) is None


def test_edges_that_are_never_right_are_hardly_believed():
    """They show no slope, so that no curve can be fitted; the default would believe them."""
    nlp = build(train=TRAIN[:8])
    linker = find_linker(nlp)
    # Mentions of four entities side by side, which look alike.
    text = "[Zed one|planet] and [Zed two|metal] and [Zed three|river] and [Zed four|shop] left."
    fitted = fit_calibration(linker, [annotated(nlp, f"{text} {i}") for i in range(6)])
    before = linker.calibration
    assert fitted.calibration.mention[0] == before.mention[0]
    one = np.ones(1)
    assert probability(fitted.calibration.logits("mention", one)) < 0.3
    assert probability(before.logits("mention", one)) > 0.9


def curves_of(fitted):
    return np.concatenate(list(vars(fitted.calibration).values()))


def test_fits_without_each_part_are_those_of_the_other_documents():
    nlp = build(train=TRAIN[:8])
    linker = find_linker(nlp)
    docs = [annotated(nlp, text) for text in TRAIN]
    whole, parts = fit_folds(linker, docs, 3)
    used = [docs, *(rest for rest, _ in divided(docs, 3))]
    found = [curves_of(fitted) for fitted in (whole, *parts)]
    expected = [curves_of(fit_calibration(linker, some, from_scratch=True)) for some in used]
    np.testing.assert_allclose(found, expected, rtol=2e-3)
    assert len({tuple(curves) for curves in found}) == 4


ENTITIES = 12
# For those that need thousands of mentions.
few_examples = settings(max_examples=settings.default.max_examples // 3)


def neighbours_of(texts, exemplars):
    """Neighbours by the similarities (m, n) of texts and of exemplars; entity i has number i."""

    def nearest(scores):
        order = np.argsort(-scores, axis=1, kind="stable")
        found = np.take_along_axis(scores, order, axis=1).astype(np.float32)
        return TopK(np.where(np.isneginf(found), -1, order), found)

    texts, exemplars = nearest(texts), nearest(exemplars)
    return Neighbours(texts, exemplars, TopK.empty(len(texts)), exemplars.ids)


def world(seed, m=300, text_noise=0.08, exemplar_noise=0.08, shift=0.0):
    """Mentions whose gold entity is the most similar one, but for noise.

    shift: How much more similar exemplars are than texts.
    """
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, ENTITIES, (m, 1))
    right = np.arange(ENTITIES) == gold
    texts = 0.4 + 0.2 * right + rng.normal(0, text_noise, right.shape)
    exemplars = 0.4 + shift + 0.2 * right + rng.normal(0, exemplar_noise, right.shape)
    return texts, exemplars, gold


def accuracy(calibration, neighbours, gold):
    best = rank_by_best_evidence(neighbours, calibration, 1).candidates
    return is_gold(best.ids, gold).mean()


@pytest.mark.slow
@few_examples
@given(st.integers(0, 1 << 30), st.sampled_from([-0.3, -0.1, 0.0, 0.1, 0.3]))
def test_the_better_evidence_is_chosen_whatever_its_scale(seed, shift):
    """Exemplars that are all more similar than texts, or all less, do not decide by that."""
    # Many mentions, so that chance decides about less than two of a hundred.
    texts, exemplars, gold = world(seed, m=2000, shift=shift)
    neighbours = neighbours_of(texts, exemplars)
    fitted = fit_evidence(neighbours, gold, Calibration())
    known = replace(Calibration(), exemplar=(12.0, -6.0 - 12.0 * shift))
    assert accuracy(fitted, neighbours, gold) >= accuracy(known, neighbours, gold) - 0.02


@pytest.mark.slow
@few_examples
@given(st.integers(0, 1 << 30))
def test_probabilities_are_how_often_the_best_candidate_is_right(seed):
    texts, exemplars, gold = world(seed, m=2000, text_noise=0.15, exemplar_noise=0.12)
    neighbours = neighbours_of(texts, exemplars)
    fitted = fit_evidence(neighbours, gold, Calibration())
    best = rank_by_best_evidence(neighbours, fitted, 1).candidates
    expected, right = probability(best.scores[:, 0]), is_gold(best.ids, gold)[:, 0]
    assert expected.mean() == pytest.approx(right.mean(), abs=0.01)
    likely = expected > np.median(expected)
    assert expected[likely].mean() == pytest.approx(right[likely].mean(), abs=0.08)


@given(st.integers(0, 1 << 30), st.floats(0.1, 30), st.floats(-5, 5))
def test_another_unit_of_similarity_changes_nothing(seed, scale, shift):
    texts, exemplars, gold = world(seed)
    one = fit_evidence(neighbours_of(texts, exemplars), gold, Calibration())
    moved = neighbours_of(scale * texts + shift, scale * exemplars + shift)
    other = fit_evidence(moved, gold, Calibration())
    for kind in ("entity", "exemplar"):
        first, second = getattr(one, kind), getattr(other, kind)
        assert first[0] == pytest.approx(second[0] * scale, rel=0.05)
        at = 0.5 * first[0] + first[1]
        assert at == pytest.approx((0.5 * scale + shift) * second[0] + second[1], abs=0.1)


@pytest.mark.parametrize("missing", ["entity", "exemplar"])
def test_a_kind_without_neighbours_keeps_its_curve(missing):
    texts, exemplars, gold = world(1)
    nothing = np.zeros((len(texts), 0))
    given_ones = (nothing, exemplars) if missing == "entity" else (texts, nothing)
    before = Calibration(entity=(3.0, -1.0), exemplar=(4.0, -2.0))
    fitted = fit_evidence(neighbours_of(*given_ones), gold, before)
    assert getattr(fitted, missing) == getattr(before, missing)
    other = "exemplar" if missing == "entity" else "entity"
    scores = max(given_ones, key=lambda one: one.shape[1])
    right = scores.argmax(axis=1) == gold[:, 0]
    expected = fit_logistic(scores.max(axis=1).astype(np.float32), right)
    assert getattr(fitted, other) == pytest.approx(expected, rel=1e-3)


def test_with_too_little_to_learn_from_nothing_changes():
    texts, exemplars, gold = world(2)
    few = neighbours_of(texts[:5], exemplars[:5])
    all_wrong = neighbours_of(texts, exemplars)
    none = neighbours_of(texts[:0], exemplars[:0])
    for before in (Calibration(), Calibration(entity=(12.0, -8.0), exemplar=(40.0, -30.0))):
        for neighbours, ids in ((few, gold[:5]), (all_wrong, 0 * gold - 1), (none, gold[:0])):
            fitted = fit_evidence(neighbours, ids, before)
            for kind in ("entity", "exemplar"):
                assert getattr(fitted, kind) == pytest.approx(getattr(before, kind))


def test_with_few_exemplars_the_order_of_candidates_stays():
    texts, exemplars, gold = world(3)
    exemplars[4:] = -np.inf
    neighbours = neighbours_of(texts, exemplars)
    before = Calibration(entity=(12.0, -8.0), exemplar=(40.0, -20.0))
    fitted = fit_evidence(neighbours, gold, before)
    assert fitted.entity != before.entity
    expected, found = (
        rank_by_best_evidence(neighbours, curves, 24).candidates.ids for curves in (before, fitted)
    )
    assert (found == expected).all()
