"""Candidates: what speaks for them, and a ranker that learns what counts."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from spacy_arbo_el.inference.calibration import Calibration, probability
from spacy_arbo_el.inference.clustering import clustering
from spacy_arbo_el.inference.decisions import rank_candidates
from spacy_arbo_el.inference.independent import independent
from spacy_arbo_el.inference.ranker import Ranker, fit_ranker
from spacy_arbo_el.io import pack_arrays
from spacy_arbo_el.retrieval.candidates import FEATURES, Candidates, Strings, gather_candidates
from spacy_arbo_el.retrieval.lexical import character_ngrams
from spacy_arbo_el.retrieval.neighbours import Neighbours

NONE = np.zeros((2, 0))


def strings_of(lexicon, seen):
    return Strings(lexicon, seen, np.zeros_like(seen))


def neighbours(candidates=None):
    """Two mentions; entities 0 to 3; exemplars 7 (of entity 2) and 9 (of entity 1)."""
    return Neighbours(
        document=np.array([0, 1]),
        entities=np.array([[0, 1], [3, -1]]),
        entity_similarity=np.array([[0.9, 0.8], [0.5, -np.inf]], np.float32),
        exemplars=np.array([[7, 9], [9, -1]]),
        exemplar_similarity=np.array([[0.7, 0.6], [0.4, -np.inf]], np.float32),
        exemplar_entity=np.array([[2, 1], [1, -1]]),
        mentions=NONE.astype(np.int64),
        mention_similarity=NONE.astype(np.float32),
        candidates=candidates,
    )


@pytest.fixture
def candidates():
    lexicon = character_ngrams()([["aa"], ["bb"], ["cc"], ["dd"]], [[], ["bb"], ["xx"], []])
    seen = np.array([False, True, True, False])
    return gather_candidates(neighbours(), ["bb", "dd"], strings_of(lexicon, seen))


def ranker_of(**weights):
    """A ranker that adds up features by these weights, and leaves log-odds as they are."""
    width = 2 * len(FEATURES)
    linear = np.zeros(width, np.float32)
    linear[: len(FEATURES)] = [weights.get(feature, 0.0) for feature in FEATURES]
    none = np.zeros((width, 1), np.float32)
    return Ranker(
        mean=np.zeros(width, np.float32),
        spread=np.ones(width, np.float32),
        linear=linear,
        hidden=none,
        bias=none[0],
        out=none[0],
        curve=np.array([1.0, 0.0, 0.0], np.float32),
    )


def features_of(candidates, mention, entity):
    at = candidates.entities[mention].tolist().index(entity)
    values = dict(zip(FEATURES, candidates.features[mention, at].tolist()))
    return values, candidates.exemplar[mention, at]


def test_what_speaks_for_a_candidate(candidates):
    assert sorted(candidates.entities[0][candidates.entities[0] >= 0]) == [0, 1, 2]
    both, exemplar = features_of(candidates, 0, 1)
    assert both == pytest.approx(
        {"name": 0.8, "exemplar": 0.6, "nearest": 0.8, "name_letters": 1, "form_letters": 1,
         "letters": 1, "name_words": 1, "words": 1, "name_numbers": 1, "numbers": 1, "seen": 1}
    )  # fmt: skip
    assert exemplar == -1, "its name is nearer"
    # Not among the nearest entities: no nearer than the last of them.
    by_exemplar, exemplar = features_of(candidates, 0, 2)
    assert by_exemplar["name"] == pytest.approx(0.8) and by_exemplar["exemplar"] == pytest.approx(
        0.7
    )
    only_name, exemplar = features_of(candidates, 1, 3)
    assert only_name["exemplar"] == pytest.approx(0.4) and exemplar == -1
    assert only_name["seen"] == 0


def test_the_very_string_makes_a_candidate():
    lexicon = character_ngrams()([["far off"], ["x"], ["y"], ["z"]], [[], ["BB"], [], []])
    seen = np.array([False, True, False, False])
    found = gather_candidates(neighbours(), ["bb", "far off"], strings_of(lexicon, seen))
    assert lexicon.owners(["bb", "no"], 2).tolist() == [[1, -1], [-1, -1]]
    assert 0 in found.entities[1], "it is not among the nearest"


def random_candidates(rng, mentions=200, count=6):
    entities = np.tile(np.arange(count), (mentions, 1))
    features = rng.normal(size=(mentions, count, len(FEATURES))).astype(np.float32)
    features[..., 5] = 1.0  # never differs
    return Candidates(entities, features, np.full(entities.shape, -1))


def accuracy_of(ranker, candidates, right):
    best = ranker.logits(candidates).argmax(axis=1)
    return right[np.arange(len(best)), best].mean()


def test_the_ranker_finds_what_counts():
    rng = np.random.default_rng(0)
    candidates, unseen = random_candidates(rng, 600), random_candidates(rng, 600)

    def right_of(found):
        true = 3 * found.features[..., 0] - 2 * found.features[..., 3]
        return np.eye(6, dtype=bool)[(true + rng.gumbel(size=true.shape)).argmax(axis=1)]

    right, later = right_of(candidates), right_of(unseen)
    fitted = fit_ranker(candidates, right, np.arange(600) // 4)
    best = accuracy_of(ranker_of(name=3.0, name_letters=-2.0), unseen, later)
    reached = accuracy_of(fitted, unseen, later)
    assert reached > best - 0.03
    # What is held out says what to expect, and so do the probabilities.
    assert fitted.accuracy == pytest.approx(reached, abs=0.04)
    chance = probability(fitted.logits(unseen).max(axis=1))
    assert chance.mean() == pytest.approx(reached, abs=0.04)


def test_the_ranker_sees_what_no_weights_add_up_to():
    """Right is who has both of two features, or neither."""
    rng = np.random.default_rng(0)
    candidates = random_candidates(rng, 900)
    both = np.sign(candidates.features[..., 0]) * np.sign(candidates.features[..., 3]) > 0
    right = np.zeros_like(both)
    right[np.arange(900), np.where(both, rng.random(both.shape), -1).argmax(axis=1)] = True
    right &= both
    fitted = fit_ranker(candidates, right, np.arange(900))
    picked = fitted.logits(candidates).argmax(axis=1)
    assert both[np.arange(900), picked].mean() > 0.9


def test_fitting_disturbs_no_random_state():
    candidates = random_candidates(np.random.default_rng(0))
    right = np.eye(6, dtype=bool)[candidates.features[..., 0].argmax(axis=1)]
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    first = fit_ranker(candidates, right, np.arange(200))
    assert (torch.get_rng_state() == before[0]).all()
    assert (np.random.get_state()[1] == before[1]).all()
    torch.manual_seed(5)
    second = fit_ranker(candidates, right, np.arange(200))
    assert first.to_bytes() == second.to_bytes()


def test_scores_do_not_depend_on_the_batch():
    rng = np.random.default_rng(0)
    candidates = random_candidates(rng)
    right = np.eye(6, dtype=bool)[candidates.features[..., 0].argmax(axis=1)]
    ranker = fit_ranker(candidates, right, np.arange(200))
    whole = ranker.logits(candidates)
    for size in (1, 3, 64):
        parts = [
            ranker.logits(Candidates(*(array[i : i + size] for array in candidates[:3])))
            for i in range(0, 200, size)
        ]
        np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_one_document_is_held_out_by_mentions():
    candidates = random_candidates(np.random.default_rng(0))
    right = np.eye(6, dtype=bool)[candidates.features[..., 0].argmax(axis=1)]
    fitted = fit_ranker(candidates, right, np.zeros(200, int))
    assert 0.8 < fitted.accuracy <= 1.0


def test_too_little_to_learn_from():
    candidates = random_candidates(np.random.default_rng(0), mentions=10)
    right = np.eye(6, dtype=bool)[np.zeros(10, int)]
    assert fit_ranker(candidates, right, np.arange(10)) is None


def test_decisions_follow_the_ranker(candidates):
    # All by letters: entity 1 for "bb", though entity 0 is nearest.
    letters = Calibration(ranker=ranker_of(letters=50.0))
    found = neighbours(candidates)
    for inference in (independent(8), clustering(), clustering("minimax")):
        decisions = inference(found, letters, -np.inf)
        assert decisions.entity.tolist() == [1, 3]
        assert [step.kind for step in decisions.paths[0]] == ["entity", "mention"]
    entities, logits = rank_candidates(found, letters, 64)
    assert entities[0, 0] == 1 and set(entities[0][entities[0] >= 0]) == {0, 1, 2}
    assert (np.diff(logits[0][entities[0] >= 0]) <= 0).all()
    # Without a ranker, as ever.
    assert independent(8)(found, Calibration(), -np.inf).entity.tolist() == [0, 3]


def test_an_exemplar_that_decides_stands_on_the_path(candidates):
    by_exemplar = candidates._replace(exemplar=np.where(candidates.entities == 1, 9, -1))
    letters = Calibration(ranker=ranker_of(letters=50.0))
    for inference in (independent(8), clustering()):
        path = inference(neighbours(by_exemplar), letters, -np.inf).paths[0]
        assert [(step.kind, step.ref) for step in path] == [
            ("entity", 1), ("exemplar", 9), ("mention", 0),
        ]  # fmt: skip


def test_a_ranker_survives_and_is_left_out_where_features_differ():
    ranker = ranker_of(name=1.0, seen=3.0)
    again = Ranker.from_bytes(ranker.to_bytes())
    assert again.to_bytes() == ranker.to_bytes()
    other = replace(ranker, mean=ranker.mean[:4])
    assert Ranker.from_bytes(other.to_bytes()) is None
    assert Ranker.from_bytes(pack_arrays({"mean": ranker.mean})) is None
    assert "ranker" not in Calibration(ranker=ranker).to_config()
    with pytest.raises(ValueError, match="E401"):
        Calibration.from_config({"ranker": [1.0, 2.0]})


def test_the_best_of_a_bad_lot_is_unlikely():
    rng = np.random.default_rng(1)
    candidates = random_candidates(rng, 400)
    features = candidates.features
    features[..., 3:] = 0
    features[:, :, 2] = rng.random((400, 1))  # how near the nearest is, alike for all
    right = np.eye(6, dtype=bool)[(4 * features[..., 0]).argmax(axis=1)]
    right[features[:, 0, 2] < 0.5] = False  # far away, nothing is right
    ranker = fit_ranker(candidates, right, np.arange(400))
    chance = probability(ranker.logits(candidates).max(axis=1))
    near = features[:, 0, 2] > 0.7
    far = features[:, 0, 2] < 0.3
    assert chance[near].mean() > 0.75 and chance[far].mean() < 0.25
