"""Poolings against NumPy, one sequence at a time."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.encoders.pooling import (
    cls_pooling,
    first_last_pooling,
    mean_pooling,
    start_pooling,
)

NAIVE = {
    cls_pooling: lambda hidden, first, last, anchor: hidden[0],
    start_pooling: lambda hidden, first, last, anchor: hidden[anchor],
    mean_pooling: lambda hidden, first, last, anchor: hidden[first : last + 1].mean(axis=0),
    first_last_pooling: lambda hidden, first, last, anchor: (hidden[first] + hidden[last]) / 2,
}


@pytest.mark.parametrize("pooling", NAIVE, ids=lambda pooling: pooling.__name__)
@given(st.integers(1, 4), st.integers(1, 6), st.integers(0, 2**16))
def test_poolings_equal_numpy(pooling, count, longest, seed):
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(count, longest, 3)).astype(np.float32)
    lengths = rng.integers(1, longest + 1, size=count)
    places = np.sort([rng.integers(0, length, size=2) for length in lengths], axis=1)
    anchor = np.array([rng.integers(0, length) for length in lengths])
    mask = np.arange(longest) < lengths[:, None]
    # What stands past a sequence's end must not count.
    hidden[~mask] = 1e6
    tensors = (torch.from_numpy(x) for x in (hidden, mask.astype(int), *places.T.copy(), anchor))
    vectors = pooling()(*tensors).numpy()
    expected = [NAIVE[pooling](hidden[i], *places[i], anchor[i]) for i in range(count)]
    np.testing.assert_allclose(vectors, expected, rtol=1e-5, atol=1e-6)


def test_mean_pooling_is_not_rounded_under_autocast():
    hidden = torch.rand(2, 9, 4)
    ends = torch.tensor([1, 1]), torch.tensor([7, 8])
    plain = mean_pooling()(hidden, None, *ends, None)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(mean_pooling()(hidden, None, *ends, None), plain)
