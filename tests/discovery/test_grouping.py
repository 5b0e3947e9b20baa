"""Grouping of mentions: any order, any vectors, with and without decisions."""

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.base.calibration import Calibration, similarity_at
from spacy_arbo_el.discovery.grouping import METHODS, Discovery, group_mentions
from spacy_arbo_el.discovery.new_entities import NewEntities
from spacy_arbo_el.retrieval.similarity import Cosine, Dot, NegativeSquaredEuclidean

from .test_new_entities import key_of, mentions, record_of

SIMILARITIES = [Cosine(), Dot(), NegativeSquaredEuclidean()]


def vectors_of(kinds, width=4):
    """Vectors by kind: 0 to 5 for equal ones, 6 for zeros, 7 for NaN, 8 for infinite."""
    vectors = np.random.default_rng(0).standard_normal((9, width)).astype(np.float32)
    vectors[4] = vectors[5] + 1e-6
    vectors[6:9] = np.array([0.0, np.nan, np.inf])[:, None]
    return vectors[np.array(kinds, dtype=np.int64)]


def test_the_defaults_of_the_component_are_those_of_the_class():
    assert spacy.blank("en").add_pipe("arbo_linker").discovery == Discovery()


@pytest.mark.parametrize("probability, groups", [(0.6, 3), (0.75, 1)])
def test_by_default_a_chain_holds_from_a_probability_of_70_percent_on(probability, groups):
    angle = np.arccos(similarity_at(probability, Calibration().same_new_entity))
    vectors = np.array([[np.cos(i * angle), np.sin(i * angle)] for i in range(3)], np.float32)
    found = Discovery().group(vectors, Cosine(), Calibration())
    assert len(set(found.tolist())) == groups


def sets_of(numbers, groups, known):
    """The mentions of each group, with the cluster that the group goes on with."""
    places = {}
    for number, group in zip(numbers, groups.tolist()):
        places.setdefault(group, set()).add(number)
    return {(frozenset(members), known.get(group, -1)) for group, members in places.items()}


def grouped(numbers, vectors, decided, discovery, similarity=None, types=False):
    similarity = similarity or Cosine()
    records = [record_of(number) for number in numbers]
    return group_mentions(
        records, similarity.prepare(vectors), decided, discovery, similarity, Calibration(), types
    )


@given(st.data(), st.sampled_from(METHODS), st.sampled_from(SIMILARITIES))
def test_groups_do_not_depend_on_the_order_of_mentions(data, method, similarity):
    kinds = data.draw(st.lists(st.integers(0, 8), min_size=1, max_size=14))
    threshold = data.draw(st.sampled_from([0.0, 0.3, 0.6, 1.0]))
    discovery = Discovery(threshold, n_neighbors=2, method=method)
    kept = NewEntities(0.5, "encoder")
    kept.put(mentions(range(0, 10)), np.array([0, 0, 1, 1, 2, 2, 3, 3, 4, 4]))
    kept.merge(kept.id_of(key_of(0)), kept.id_of(key_of(2)))
    kept.split(kept.id_of(key_of(4)), [1])
    kept.reject(kept.id_of(key_of(6)))
    kept.release(kept.id_of(key_of(8)), "E1")
    decided = kept.decided() if data.draw(st.booleans()) else NewEntities().decided()
    numbers = list(range(len(kinds)))
    vectors = vectors_of(kinds)
    results = []
    for order in (numbers, numbers[::-1], data.draw(st.permutations(numbers))):
        found = grouped(order, vectors[list(order)], decided, discovery, similarity)
        results.append(sets_of(order, *found))
    assert results[0] == results[1] == results[2]
    of = {number: members for members, _ in results[0] for number in members}
    left_out = next((members for members, _ in results[0] if 8 in members), frozenset())
    if decided.accepted:
        assert left_out <= {8, 9}
        both = [n for n in (0, 1, 2, 3) if n in of]
        assert len({of[n] for n in both}) <= 1, "merged"
        assert not {4, 5} <= set(of) or of[4] != of[5], "split"
        for a, b in ((0, 4), (0, 5), (4, 6), (0, 6)):
            assert not {a, b} <= set(of) or of[a] != of[b], "decided ones are not joined"


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("threshold", [0.0, 0.5, 1.0])
def test_strange_vectors_and_thresholds_are_sane(similarity, method, threshold):
    nothing = NewEntities().decided()
    discovery = Discovery(threshold, method=method)
    assert grouped([], np.zeros((0, 4), np.float32), nothing, discovery, similarity)[0].size == 0
    for kind in (0, 6, 7, 8):
        one, _ = grouped([3], vectors_of([kind]), nothing, discovery, similarity)
        assert one.tolist() == [0]
    for kind in (6, 7, 8):
        alone, _ = grouped(range(4), vectors_of([kind] * 4), nothing, discovery, similarity)
        assert len(set(alone.tolist())) == 4, "what cannot be read is alone"
        mixed, _ = grouped(range(4), vectors_of([0, kind, 0, kind]), nothing, discovery, similarity)
        assert len({mixed[1], mixed[3]} | set(mixed)) >= 3 and mixed[1] != mixed[3]
    same, _ = grouped(range(30), vectors_of([1] * 30), nothing, discovery, similarity)
    if threshold == 0.0:
        assert set(same.tolist()) == {0}
    if threshold == 1.0:
        assert len(set(same.tolist())) == 30


def test_without_neighbours_or_a_discovery_each_is_alone():
    for discovery in (Discovery(n_neighbors=0), None):
        found, _ = grouped(range(3), vectors_of([0] * 3), NewEntities().decided(), discovery)
        assert found.tolist() == [0, 1, 2]


def test_medoid_and_name_do_not_depend_on_the_order():
    forward, backward = NewEntities(), NewEntities()
    numbers = list(range(12))
    forward.put(mentions(numbers), np.zeros(12, dtype=np.int64))
    backward.put(mentions(numbers[::-1]), np.zeros(12, dtype=np.int64))
    one, other = forward[0], backward[0]
    assert (one.id, one.name, one.cohesion) == (other.id, other.name, other.cohesion)
    assert one.members[one.medoid] == other.members[other.medoid] and one.nearest == other.nearest
