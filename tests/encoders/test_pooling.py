"""Poolings against NumPy, one span at a time."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.encoders.pooling import (
    ClsPooling,
    FirstLastPooling,
    SpanMeanPooling,
    SpanStates,
    StartPooling,
    pooled_width,
)

from ..floats import assert_same_vectors

NAIVE = {
    ClsPooling: lambda hidden, first, last, marker: hidden[0],
    StartPooling: lambda hidden, first, last, marker: hidden[marker],
    SpanMeanPooling: lambda hidden, first, last, marker: hidden[first : last + 1].mean(axis=0),
    FirstLastPooling: lambda hidden, first, last, marker: np.append(hidden[first], hidden[last]),
}


@pytest.mark.parametrize("pooling", NAIVE, ids=lambda pooling: pooling.__name__)
@given(st.integers(1, 4), st.integers(0, 12), st.integers(1, 6), st.integers(0, 2**16))
def test_poolings_equal_numpy(pooling, n_passages, n_spans, longest, seed):
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n_passages, longest, 3)).astype(np.float32)
    lengths = rng.integers(1, longest + 1, size=n_passages)
    passage = rng.integers(0, n_passages, size=n_spans)
    places = [np.sort(rng.integers(0, lengths[p], size=2)) for p in passage]
    places = np.array(places, dtype=np.int64).reshape(-1, 2)
    marker = np.array([rng.integers(0, lengths[p]) for p in passage], dtype=np.int64)
    mask = np.arange(longest) < lengths[:, None]
    # What stands past a passage's end must not count.
    hidden[~mask] = 1e6
    arrays = (hidden, passage, *places.T.copy(), marker)
    vectors = pooling()(SpanStates(*map(torch.from_numpy, arrays))).numpy()
    expected = [NAIVE[pooling](hidden[p], *places[i], marker[i]) for i, p in enumerate(passage)]
    expected = np.array(expected, dtype=np.float32)
    expected = expected.reshape(-1, pooled_width(pooling(), 3))
    assert_same_vectors(vectors, expected)


def test_mean_pooling_is_not_rounded_under_autocast():
    hidden = torch.rand(2, 9, 4)
    passage, first, last = torch.tensor([[0, 1], [1, 1], [7, 8]])
    states = SpanStates(hidden, passage, first, last, first)
    plain = SpanMeanPooling()(states)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(SpanMeanPooling()(states), plain)
