"""Exemplars that represent their entity, against choosing them the slow way."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.retrieval.representatives import representatives


def slowly(vectors, limit):
    units = [v / np.linalg.norm(v) for v in vectors]
    mean = np.sum(units, axis=0)
    centrality = [float(unit @ mean) for unit in units]
    chosen = [next(i for i, c in enumerate(centrality) if c >= max(centrality) - 1e-4)]
    while len(chosen) < min(limit, len(units)):
        rest = [i for i in range(len(units)) if i not in chosen]
        nearest = {i: round(max(float(units[i] @ units[j]) for j in chosen), 5) for i in rest}
        chosen.append(min(rest, key=lambda i: (nearest[i], i)))
    return set(chosen)


@given(
    st.lists(st.integers(-1, 3), min_size=1, max_size=25),
    st.integers(0, 6),
    st.integers(0, 1000),
)
def test_representatives_are_those_of_a_slow_choice(entities, limit, seed):
    entities = np.array(entities)
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((len(entities), 5)).astype(np.float32)
    chosen = representatives(vectors, entities, limit)
    assert not chosen[entities < 0].any()
    for e in range(4):
        rows = np.flatnonzero(entities == e)
        if limit == 0 or len(rows) <= limit:
            assert chosen[rows].all()
        elif len(rows):
            assert {i for i, row in enumerate(rows) if chosen[row]} == slowly(vectors[rows], limit)


def test_every_group_of_similar_mentions_has_a_representative():
    centres = np.eye(4, 8)
    vectors = np.repeat(centres, [50, 3, 2, 1], axis=0)
    vectors = (vectors + 0.01 * np.arange(len(vectors))[:, None] / 56).astype(np.float32)
    chosen = representatives(vectors, np.zeros(56, dtype=np.int64), 4)
    assert chosen.sum() == 4
    groups = np.repeat(np.arange(4), [50, 3, 2, 1])
    assert set(groups[chosen]) == {0, 1, 2, 3}
