"""Mentions that decide together, against working it out one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.inference.calibration import Calibration, probability
from spacy_arbo_el.inference.consensus import consensus, support
from spacy_arbo_el.inference.edges import CERTAIN
from spacy_arbo_el.retrieval.neighbours import Neighbours

CURVES = Calibration(entity=(10.0, -5.0), exemplar=(10.0, -5.0), near=(10.0, -5.0))


@given(st.integers(0, 10_000), st.integers(1, 12))
def test_support_is_the_mean_over_the_group(seed, count):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 4, count)
    entities = np.array([rng.permutation(5)[:3] for _ in range(count)])
    entities[rng.random(entities.shape) < 0.3] = -1
    chance = np.where(entities >= 0, rng.random(entities.shape), 0)
    found = support(group, entities, chance)
    for i in range(count):
        members = np.flatnonzero(group == group[i])
        for column, entity in enumerate(entities[i].tolist()):
            if entity >= 0:
                same = [chance[j][entities[j] == entity].sum() for j in members]
                assert found[i, column] == pytest.approx(np.mean(same))


def neighbours(**changes):
    """Three mentions in much the same place, the third unsure between entities 0 and 1."""
    parts = {
        "document": np.zeros(3, np.int64),
        "entities": np.array([[0, 1], [0, 1], [1, 0]]),
        "entity_similarity": np.array([[0.9, 0.4], [0.8, 0.4], [0.52, 0.5]], np.float32),
        "exemplars": np.array([[4], [-1], [-1]]),
        "exemplar_similarity": np.array([[0.95], [-np.inf], [-np.inf]], np.float32),
        "exemplar_entity": np.array([[0], [-1], [-1]]),
        "mentions": np.array([[1, 2], [0, 2], [0, 1]]),
        "mention_similarity": np.full((3, 2), 0.9, np.float32),
        "vectors": np.array([[1, 0], [0.95, 0.3122], [0.9, 0.4359]], np.float32),
    }
    return Neighbours(**{**parts, **changes})


def test_the_group_carries_who_is_unsure():
    alone = consensus(weight=0.0)(neighbours(), CURVES, -np.inf)
    assert alone.entity.tolist() == [0, 0, 1]
    together = consensus()(neighbours(), CURVES, -np.inf)
    assert together.entity.tolist() == [0, 0, 0]
    chances = probability(CURVES.logits("entity", np.array([0.8, 0.5])))
    first = probability(CURVES.logits("exemplar", np.array([0.95])))[0]
    expected = 0.5 * chances[1] + 0.5 * (first + chances.sum()) / 3
    assert probability(together.logit[2]) == pytest.approx(expected, abs=1e-5)
    # It hangs under the surest of the group, which hangs under its exemplar.
    kinds = [(step.kind, step.ref) for step in together.paths[2]]
    assert kinds == [("entity", 0), ("exemplar", 4), ("mention", 0), ("mention", 2)]
    assert [step.kind for step in together.paths[1]] == ["entity", "mention"]


def test_far_mentions_and_people_decide_for_themselves():
    far = neighbours(vectors=np.eye(3, 2, dtype=np.float32))
    assert consensus(threshold=0.99)(far, CURVES, -np.inf).entity.tolist() == [0, 0, 1]
    none = np.zeros((3, 0))
    apart = neighbours(mentions=none.astype(np.int64), mention_similarity=none.astype(np.float32))
    assert consensus()(apart, CURVES, -np.inf).entity.tolist() == [0, 0, 1]
    said = np.array([False, False, True])
    corrected = consensus()(neighbours(corrected=said), CURVES, -np.inf)
    assert corrected.entity.tolist() == [0, 0, 1]
    decided = consensus()(neighbours(corrected=said, decided=said), CURVES, 5.0)
    assert decided.entity.tolist()[2] == 1 and decided.logit[2] == pytest.approx(CERTAIN, abs=0.1)


def test_chances_that_are_nearly_1():
    sure = Calibration(entity=(400.0, -15.0), exemplar=(400.0, -15.0), near=(10.0, -5.0))
    found = consensus()(neighbours(), sure, -np.inf)
    assert found.entity.tolist() == [0, 0, 1]
    assert all(np.isfinite(step.logit) for path in found.paths for step in path[-1:])
    with pytest.raises(ValueError, match="between 0 and 1"):
        consensus(weight=1.5)


def test_under_the_threshold_is_nil():
    found = consensus()(neighbours(), CURVES, 50.0)
    assert found.entity.tolist() == [-1, -1, -1] and found.paths[0] == []
    assert (found.logit == -np.inf).all()
    empty = neighbours(
        entities=np.full((3, 1), -1),
        entity_similarity=np.full((3, 1), -np.inf, np.float32),
        exemplars=np.full((3, 1), -1),
        exemplar_entity=np.full((3, 1), -1),
        exemplar_similarity=np.full((3, 1), -np.inf, np.float32),
    )
    assert consensus()(empty, CURVES, -np.inf).entity.tolist() == [-1, -1, -1]
