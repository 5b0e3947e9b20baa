"""The features of candidates, and a reranker that learns from them."""

import pickle
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from spacy_arbo_el import Calibration, Entity, MentionBatch, MentionRecord, Neighbours, TopK
from spacy_arbo_el.base.calibration import probability
from spacy_arbo_el.ranking import ranker_fit
from spacy_arbo_el.ranking.decisions import Clustering, Independent
from spacy_arbo_el.ranking.feature_ranker import FeatureRanker, feature_ranker
from spacy_arbo_el.ranking.features import (
    CONTEXT_FEATURES,
    FEATURES,
    MOST_BY_FREQUENCY,
    CandidateFeatures,
    gather_features,
)
from spacy_arbo_el.ranking.ranker_fit import (
    ABSENT,
    FOLDS,
    Labelled,
    cross_fit,
    fit_weights,
    train_network,
)
from spacy_arbo_el.ranking.ranker_weights import PRESENCE_FEATURES, RankerWeights, sum_of_networks
from spacy_arbo_el.ranking.ranking import AnnotatedMentions, BestEvidence
from spacy_arbo_el.retrieval.neighbours import AllowedEntities
from spacy_arbo_el.storage.files import pack_arrays

from ..expecting import raises
from .examples import ranked, top_k, weights_of
from .strings import datastore_of, inputs, strings_of

# Two mentions; entities 0 to 3; exemplars 7 (of entity 2) and 9 (of entity 1).
NEIGHBOURS = Neighbours(
    entities=top_k([[0, 1], [3, -1]], [[0.9, 0.8], [0.5, 0]]),
    exemplars=top_k([[7, 9], [9, -1]], [[0.7, 0.6], [0.4, 0]]),
    mentions=TopK.empty(2),
    exemplar_entities=np.array([[2, 1], [1, -1]]),
)
NAMES = [["aa"], ["bb"], ["cc"], ["dd"]]
SURFACE_FORMS = [[], ["bb"], ["xx"], []]


def strings_of_lists(names, surface_forms=()):
    datastore = datastore_of(*(Entity(str(i), *group) for i, group in enumerate(names)))
    forms = [(str(i), form) for i, group in enumerate(surface_forms) for form in group]
    records = [MentionRecord(("doc", n, n), (id_,), form) for n, (id_, form) in enumerate(forms)]
    datastore.exemplars.extend(records, inputs(len(records)))
    return strings_of(datastore)


def records_of(*strings):
    return batch_of(*strings).records


def batch_of(*strings):
    """Mentions with these surface forms, each in a document of its own."""
    empty = MentionBatch.empty()
    records = [MentionRecord(("doc", i, i), (), s, normalized=s) for i, s in enumerate(strings)]
    labels = np.zeros(len(strings), dtype=np.uint64)
    return MentionBatch(records, empty.inputs, np.arange(len(strings)), labels, len(strings))


def gathered(*mentions, strings=None, neighbours=NEIGHBOURS, allowed=None, count=24):
    """The candidates of mentions with these surface forms."""
    strings = strings or strings_of_lists(NAMES, SURFACE_FORMS)
    return gather_features(neighbours, records_of(*mentions), strings, allowed, count)


def context_of(n_candidates=64, strings=None):
    """A context whose snapshot gives these strings of entities."""
    strings = strings or strings_of_lists(NAMES, SURFACE_FORMS)
    snapshot = SimpleNamespace(
        kb=range(4),
        exemplars=(),
        strings=strings,
        allowed_entities=lambda batch: None,
        encoder=SimpleNamespace(reads_passages=False),
    )
    return SimpleNamespace(snapshot=snapshot, calibration=Calibration(), n_candidates=n_candidates)


def features_of(candidates, mention, entity):
    at = candidates.entities[mention].tolist().index(entity)
    values = dict(zip(FEATURES, candidates.features[mention, at].tolist()))
    return values, candidates.exemplars[mention, at]


def test_the_features_of_candidates():
    candidates = gathered("bb", "dd")
    assert sorted(candidates.entities[0][candidates.entities[0] >= 0]) == [0, 1, 2]
    both, exemplar = features_of(candidates, 0, 1)
    assert both == pytest.approx(
        {"name": 0.8, "exemplar": 0.6, "nearest": 0.8, "name_ngrams": 1, "exemplar_ngrams": 1,
         "ngrams": 1, "name_words": 1, "words": 1, "name_numbers": 1, "numbers": 1,
         "extra": 0, "missing": 0, "swapped": 0, "opposed": 0, "exact": 1, "title": 1,
         "has_exemplar": 1, "attested": 1, **dict.fromkeys(CONTEXT_FEATURES, 0), "contains": 1}
    )  # fmt: skip
    assert exemplar == -1, "its name is nearer"
    # Not among the nearest entities: no more similar than the last of them.
    by_exemplar, exemplar = features_of(candidates, 0, 2)
    assert by_exemplar["name"] == pytest.approx(0.8)
    assert by_exemplar["exemplar"] == pytest.approx(0.7)
    only_name, exemplar = features_of(candidates, 1, 3)
    assert only_name["exemplar"] == pytest.approx(0.5), "without a near one, that of its name"
    assert exemplar == -1
    assert only_name["has_exemplar"] == 0


def test_entities_with_the_same_string_are_candidates():
    strings = strings_of_lists([["far off"], ["x"], ["y"], ["z"]], [[], ["BB"]])
    candidates = gathered("bb", "far off", strings=strings)
    assert 0 in candidates.entities[1], "it is not among the nearest"
    # Unless the mention may not be linked to it.
    allowed = AllowedEntities(np.array([0, 0]), np.array([[False, True, True, True]]))
    candidates = gathered("bb", "far off", strings=strings, allowed=allowed)
    assert 0 not in candidates.entities[1]


def test_a_mention_has_at_most_so_many_candidates():
    candidates = gathered("bb", "dd", count=2)
    # The one with the same string first, then those of near exemplars, then the nearest. The
    # second mention has room for entity 1, whose exemplar is far, with a similarity of 0.4.
    assert candidates.entities.tolist() == [[1, 2], [3, -1]]
    assert candidates.features.shape == (2, 2, len(FEATURES))


def test_all_owners_of_a_name_are_candidates_however_many():
    names = [["zz"]] * 40 + [["bb"], ["cc"]]
    exemplars = top_k([[7], [9]], [[0.99], [0.99]])
    neighbours = replace(NEIGHBOURS, exemplars=exemplars, exemplar_entities=np.array([[41], [41]]))
    candidates = gathered("zz", "bb", strings=strings_of_lists(names), neighbours=neighbours)
    assert set(range(40)) | {41} <= set(candidates.entities[0].tolist())
    assert candidates.entities.shape[1] == 48
    assert (candidates.entities[1] >= 0).sum() == 3, "of its own string, nearest and exemplar"


def random_candidates(rng, mentions=200, count=6):
    entities = np.tile(np.arange(count), (mentions, 1))
    features = rng.normal(size=(mentions, count, len(FEATURES))).astype(np.float32)
    features[..., 5] = 1.0  # never differs
    prior = np.zeros(entities.shape, dtype=np.float32)
    return CandidateFeatures(entities, features, np.full(entities.shape, -1), prior)


def accuracy_of(weights, candidates, correct):
    best = weights.logits(candidates).argmax(axis=1)
    return correct[np.arange(len(best)), best].mean()


def drawn(rng, log_odds):
    """Which candidate of each mention is right, drawn by their log-odds."""
    return np.eye(6, dtype=bool)[(log_odds + rng.gumbel(size=log_odds.shape)).argmax(axis=1)]


def test_fitting_finds_the_features_that_count(rng):
    candidates, unseen = random_candidates(rng, 2000), random_candidates(rng, 2000)
    correct, later = (
        drawn(rng, 3 * each.column("name") - 2 * each.column("extra"))
        for each in (candidates, unseen)
    )
    fitted = fit_weights(candidates, correct, np.arange(2000) // 4)
    best = accuracy_of(weights_of(name=3.0, extra=-2.0), unseen, later)
    reached = accuracy_of(fitted, unseen, later)
    assert reached > best - 0.03
    # The accuracy on held-out mentions is that on new ones, and so are the probabilities, of which
    # NIL has the share of mentions that count as if their entity were absent.
    assert fitted.accuracy == pytest.approx(reached, abs=0.04)
    probabilities = probability(fitted.logits(unseen).max(axis=1))
    assert probabilities.mean() == pytest.approx((1 - ABSENT) * reached, abs=0.04)


def test_fitting_finds_what_no_weighted_sum_of_features_can_express(rng):
    """Correct is a candidate that has both of two features, or neither."""
    candidates = random_candidates(rng, 900)
    both = np.sign(candidates.features[..., 0]) * np.sign(candidates.features[..., 3]) > 0
    correct = np.zeros_like(both)
    correct[np.arange(900), np.where(both, rng.random(both.shape), -1).argmax(axis=1)] = True
    correct &= both
    fitted = fitted_on(candidates, correct)
    picked = fitted.logits(candidates).argmax(axis=1)
    assert both[np.arange(900), picked].mean() > 0.9


def fitted_on(candidates, correct):
    """Weights by mentions each of a document of its own."""
    return fit_weights(candidates, correct, np.arange(len(correct)))


def feature_decides(candidates, column=0):
    return np.eye(6, dtype=bool)[candidates.features[..., column].argmax(axis=1)]


def test_fitting_leaves_random_states_unchanged(rng):
    candidates = random_candidates(rng)
    correct = feature_decides(candidates)
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    first = fitted_on(candidates, correct)
    assert (torch.get_rng_state() == before[0]).all()
    assert (np.random.get_state()[1] == before[1]).all()
    torch.manual_seed(5)
    second = fitted_on(candidates, correct)
    assert first.to_bytes() == second.to_bytes()


def test_contributions_of_features_sum_to_the_difference_between_candidates(rng):
    candidates = random_candidates(rng)
    weights = fitted_on(candidates, feature_decides(candidates))
    one = candidates.take(np.array([7]))
    parts = weights.contributions(one, 2, 4)
    scores = weights.scores(one)[0] * weights.curve[0]
    assert parts.sum() == pytest.approx(scores[2] - scores[4])
    assert weights.contributions(one, 4, 2) == pytest.approx(-parts)
    assert parts[5] == 0, "of the feature that never differs"
    assert np.abs(parts).argmax() == 0, "of the feature that decides"


def test_the_best_of_bad_candidates_is_unlikely():
    rng = np.random.default_rng(1)
    candidates = random_candidates(rng, 400)
    features = candidates.features
    features[..., 3:] = 0
    features[:, :, 2] = rng.random((400, 1))  # the similarity of the nearest, equal for all
    correct = np.eye(6, dtype=bool)[(4 * features[..., 0]).argmax(axis=1)]
    correct[features[:, 0, 2] < 0.5] = False  # without a similar candidate, none is correct
    weights = fitted_on(candidates, correct)
    probabilities = probability(weights.logits(candidates).max(axis=1))
    near, far = features[:, 0, 2] > 0.7, features[:, 0, 2] < 0.3
    assert probabilities[near].mean() > 0.75
    assert probabilities[far].mean() < 0.25


def test_the_ranking_starts_with_scored_candidates_and_continues_with_the_others():
    # By strings alone: entity 1 for "bb", though the text of entity 0 is nearer.
    weights, batch = weights_of(ngrams=50.0), batch_of("bb", "dd")
    whole = FeatureRanker(weights=weights)(batch, NEIGHBOURS, context_of())
    assert whole.candidates.ids.shape == (2, 64)
    ids, scores = whole.candidates.ids[0], whole.candidates.scores[0]
    assert ids[0] == 1
    assert set(ids[ids >= 0]) == {0, 1, 2}
    assert (np.diff(scores[ids >= 0]) <= 0).all()
    # Only the candidate with the same string and that of the nearest exemplar are scored.
    part = FeatureRanker(2, weights=weights)(batch, NEIGHBOURS, context_of())
    assert part.candidates.ids[0, :3].tolist() == [1, 2, 0]
    scored = weights.logits(gathered("bb", "dd", count=2))
    assert part.candidates.scores[0, :2].tolist() == scored[0].tolist()
    # The log-odds of entity 0 are 4.8 by its text: as high as those before it allow.
    assert part.candidates.scores[0, 2] == pytest.approx(min(4.8, scored[0].min() - 1e-3))
    assert part.exemplars[0, :3].tolist() == [-1, -1, -1]
    first = FeatureRanker(2, weights=weights)(batch, NEIGHBOURS, context_of(1))
    assert first.candidates.ids.tolist() == part.candidates.ids[:, :1].tolist()


def test_without_weights_it_ranks_by_the_best_evidence():
    batch, context = batch_of("bb", "dd"), context_of()
    ranking = feature_ranker(pretrained=False)(batch, NEIGHBOURS, context)
    plain = BestEvidence()(batch, NEIGHBOURS, context)
    assert ranking.candidates.ids.tolist() == plain.candidates.ids.tolist()
    assert ranking.candidates.scores.tolist() == plain.candidates.scores.tolist()
    assert ranking.exemplars.tolist() == plain.exemplars.tolist()


def test_the_exemplar_nearer_than_the_texts_is_on_the_path():
    """Entity 1 is nearer by exemplar 9 than by its text."""
    exemplars = TopK(NEIGHBOURS.exemplars.ids, np.array([[0.7, 0.85], [0.4, -np.inf]], np.float32))
    neighbours = replace(NEIGHBOURS, exemplars=exemplars)
    batch, context = batch_of("bb", "dd"), context_of()
    ranking = FeatureRanker(weights=weights_of(ngrams=50.0))(batch, neighbours, context)
    for inference in (Independent(8), Clustering()):
        path = inference.decide(ranked(neighbours, ranking), Calibration(), -np.inf).paths[0]
        assert [(step.kind, step.ref) for step in path] == [
            ("entity", 1), ("exemplar", 9), ("mention", 0),
        ]  # fmt: skip


def test_fit_learns_from_gold_entities_and_forgets_with_too_few_mentions(rng):
    names = [[f"name {i}"] for i in range(4)]
    context = context_of(strings=strings_of_lists(names))
    gold = rng.integers(0, 4, (60, 1))
    strings = [f"the name {entity}" for entity in gold[:, 0].tolist()]
    batch = batch_of(*strings)
    scores = np.sort(rng.random((60, 4)).astype(np.float32), axis=1)[:, ::-1]
    ids = np.array([rng.permutation(4) for _ in range(60)])
    nothing = np.zeros((60, 0), dtype=np.int64)
    neighbours = Neighbours(TopK(ids, scores), TopK.empty(60), TopK.empty(60), nothing)
    gold[0] = -1  # without a correct candidate, a mention counts for the curve only
    mentions = AnnotatedMentions(batch, neighbours, gold, [set()] * 60)
    fold_of = np.arange(60) % FOLDS
    fitted = feature_ranker(pretrained=False).fit(mentions, context, fold_of, FOLDS)[0]
    assert fitted.weights.accuracy > 0.9
    ranking = fitted(batch, neighbours, context)
    assert (ranking.candidates.ids[1:, 0] == gold[1:, 0]).mean() > 0.9
    near = neighbours.take(np.arange(10))
    few = AnnotatedMentions(batch_of(*strings[:10]), near, gold[:10], [set()] * 10)
    assert fitted.fit(few, context, fold_of[:10], FOLDS)[0].weights is None


def test_learned_weights_survive_bytes_and_other_features_are_refused():
    ranker = FeatureRanker(n_reranked=8, weights=weights_of(name=1.0, has_exemplar=3.0))
    again = feature_ranker(n_reranked=8).from_bytes(ranker.to_bytes())
    assert again.to_bytes() == ranker.to_bytes()
    assert again.n_reranked == 8
    assert pickle.loads(pickle.dumps(ranker)).to_bytes() == ranker.to_bytes()
    assert ranker.from_bytes(b"") == feature_ranker(n_reranked=8)
    assert feature_ranker().to_bytes() == b""
    with raises("other features"):
        ranker.from_bytes(pack_arrays({"mean": ranker.weights.mean}))
    for name, value in (
        ("linear", ranker.weights.linear[:4]),
        ("linear", ranker.weights.linear.astype(np.float64)),
        ("curve", np.full(len(PRESENCE_FEATURES) + 3, np.nan, np.float32)),
        ("coverage", 1.0),
    ):
        other = replace(ranker.weights, **{name: value})
        with raises(name):
            ranker.from_bytes(other.to_bytes())


def test_weights_fitted_from_others_are_the_mean_of_both():
    """Each at its temperature, so that the surer one does not outvote the other."""
    rng = np.random.default_rng(3)
    candidates, some = random_candidates(rng, 300), random_candidates(rng, 120)
    start = fitted_on(candidates, feature_decides(candidates))
    labelled = Labelled(some, feature_decides(some, 1), np.ones(120))
    moved = train_network(labelled, (start.mean, start.spread), start)
    both = sum_of_networks([start, moved], [0.25, 0.5])
    expected = 0.25 * start.scores(candidates) + 0.5 * moved.scores(candidates)
    np.testing.assert_allclose(both.scores(candidates), expected, atol=1e-4)
    again = RankerWeights.from_bytes(both.to_bytes())
    np.testing.assert_array_equal(again.scores(some), both.scores(some))


@pytest.mark.parametrize("begun", [False, True])
def test_the_network_of_a_part_has_not_seen_it(begun):
    """Other labels of its mentions change nothing but those of the other networks."""
    rng = np.random.default_rng(6)
    candidates, part_of = random_candidates(rng, 240), np.arange(240) % 3
    correct = feature_decides(candidates)
    start = fit_weights(
        random_candidates(rng, 90), np.eye(6, dtype=bool)[np.zeros(90, int)], np.arange(90)
    )
    other = np.where((part_of == 1)[:, None], correct[:, ::-1], correct)
    one, two = (
        cross_fit(Labelled(candidates, labels, np.ones(240)), part_of, 3, start if begun else None)
        for labels in (correct, other)
    )
    same = [np.array_equal(a.hidden, b.hidden) for a, b in zip(one[1:], two[1:])]
    assert same == [False, True, False]
    assert not np.array_equal(one[0].hidden, two[0].hidden)
    rows = np.flatnonzero(part_of == 1)
    best = one[2].logits(candidates.take(rows)).argmax(axis=1)
    assert (best == correct[rows].argmax(axis=1)).mean() > 0.8
    mean = np.mean([weights.scores(candidates) for weights in one[1:]], axis=0)
    np.testing.assert_allclose(one[0].scores(candidates), mean, atol=1e-3)


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("mentions", [1, 7, 30])
def test_blocks_of_mentions_make_no_difference_to_a_network(monkeypatch, begun, mentions):
    rng = np.random.default_rng(6)
    candidates = random_candidates(rng, 30)
    labelled = Labelled(candidates, feature_decides(candidates), rng.random(30))
    standards = ranker_fit.standards_of(candidates)
    start = ranker_fit.train_network(labelled, standards, 1) if begun else 0
    # One step: rounding grows with them.
    monkeypatch.setattr(ranker_fit, "MAX_STEPS", 1)
    whole = ranker_fit.train_network(labelled, standards, start)
    monkeypatch.setattr(ranker_fit, "BLOCK", mentions * 6 * ranker_fit.HIDDEN)
    in_blocks = ranker_fit.train_network(labelled, standards, start)
    np.testing.assert_allclose(
        in_blocks.scores(candidates), whole.scores(candidates), rtol=1e-3, atol=1e-3
    )


def fit_from(start, candidates, correct):
    labelled = Labelled(candidates, correct, np.ones(len(correct)))
    return cross_fit(labelled, np.arange(len(correct)) % FOLDS, FOLDS, start)[0]


def test_few_mentions_change_little_what_fitting_starts_from():
    rng = np.random.default_rng(4)
    many, few, unseen = (random_candidates(rng, count) for count in (800, 24, 1500))
    labels, correct, later = (
        drawn(rng, 2 * each.features[..., 0] + 2 * each.features[..., 3])
        for each in (many, few, unseen)
    )
    start = fitted_on(many, labels)
    alone = fitted_on(few, correct)
    started = fit_from(start, few, correct)
    whole, reached = accuracy_of(start, unseen, later), accuracy_of(started, unseen, later)
    assert reached > accuracy_of(alone, unseen, later)
    assert reached > whole - 0.05
    # What contradicts the mentions is not started from.
    wrong = replace(start, linear=-start.linear, out=-start.out)
    again = fit_from(wrong, few, correct)
    assert accuracy_of(again, unseen, later) >= accuracy_of(alone, unseen, later) - 1e-6


def test_frequency_counts_the_less_the_more_a_context_leads(rng):
    candidates = random_candidates(rng, mentions=3, count=2)
    features = candidates.features.copy()
    lead = FEATURES.index("shared_lead")
    features[:, :, lead] = [[0.0, 0.0], [-0.1, 0.1], [-0.4, 0.4]]
    prior = np.array([[0.0, -2.0]] * 3, dtype=np.float32)
    with_prior = replace(candidates, features=features, prior=prior)
    assert with_prior.frequency_prior()[:, 1] == pytest.approx([-2.0, -1.0, -0.4])
    extreme = replace(with_prior, prior=10 * prior)
    assert extreme.frequency_prior().min() == -MOST_BY_FREQUENCY


@pytest.mark.parametrize(
    "mention, name, contains",
    [
        ("Halix", "Halix Oil & Gas", True),
        ("halix", "halix marker", False),  # a modifier, as "genetic" of "genetic marker"
        ("cell", "ganglion cell", True),
        ("Smith", "John Smith", True),
        ("Smith 2", "John Smith 3", False),
        ("Bank", "Halix Bank Oslo", False),
        ("Oslo Bank", "Halix Bank", False),
    ],
)
def test_a_name_that_contains_the_mention_could_be_it(mention, name, contains):
    candidates = gathered(mention, "bb", strings=strings_of_lists([["zz"], [name], ["y"], ["z"]]))
    features, _ = features_of(candidates, 0, 1)
    assert bool(features["contains"]) == contains


@pytest.mark.parametrize("before, contains", [("It rained. ", False), ("We saw ", True)])
def test_a_capital_at_the_beginning_of_a_sentence_makes_no_proper_name(before, contains):
    strings = strings_of_lists([["tumor"], ["tumor lysis"], ["y"], ["z"]])
    records = [replace(record, before=before) for record in records_of("Tumor", "bb")]
    features, _ = features_of(gather_features(NEIGHBOURS, records, strings, None, 24), 0, 1)
    assert bool(features["contains"]) == contains
