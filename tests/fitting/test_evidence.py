"""The curves of texts and of exemplars, fitted together."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_arbo_el.base.arrays import TopK
from spacy_arbo_el.base.calibration import Calibration, fit_logistic, probability
from spacy_arbo_el.fitting.calibrate import fit_evidence
from spacy_arbo_el.mentions.labels import is_gold
from spacy_arbo_el.ranking.ranking import rank_by_best_evidence
from spacy_arbo_el.retrieval.neighbours import Neighbours

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


def test_less_reliable_evidence_counts_less():
    texts, exemplars, gold = world(0, m=2000, text_noise=0.3, exemplar_noise=0.05)
    neighbours = neighbours_of(texts, exemplars)
    fitted = fit_evidence(neighbours, gold, Calibration())
    assert fitted.exemplar[0] > 2 * fitted.entity[0]
    apart = replace(
        Calibration(),
        entity=fit_logistic(texts.max(axis=1), (texts.argmax(axis=1)[:, None] == gold)[:, 0]),
        exemplar=fit_logistic(exemplars.ravel(), (np.arange(ENTITIES) == gold).ravel()),
    )
    found, expected = (accuracy(one, neighbours, gold) for one in (fitted, apart))
    assert found >= expected and found > 0.9


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


def test_where_all_candidates_can_be_ranked_rightly_they_are():
    texts, exemplars, gold = world(1, text_noise=0.02, exemplar_noise=0.3, shift=0.3)
    neighbours = neighbours_of(texts, exemplars)
    assert accuracy(Calibration(), neighbours, gold) < 0.5
    fitted = fit_evidence(neighbours, gold, Calibration())
    assert accuracy(fitted, neighbours, gold) > 0.99
