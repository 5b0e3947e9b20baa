"""Optimizers: the same steps as thinc's, and averages that are interpolated."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.util import registry
from thinc.api import Adam

from ..systems import load_system

NAME, OPTIMIZER = "training.optimizer.@optimizers", "spacy-arbo-el.InterpolatedAdam.v1"
make = registry.optimizers.get(OPTIMIZER)


@given(st.floats(0, 1), st.integers(0, 12), st.integers(0, 1000))
def test_averages_lie_between_the_first_weights_and_the_present_ones(share, steps, seed):
    rng = np.random.default_rng(seed)
    start = {("layer", name): rng.normal(size=(3, 4)).astype("f") for name in "ab"}
    settings = {"L2": 0.01, "grad_clip": 1.0}
    ours, plain = make(0.01, start_share=share, **settings), Adam(0.01, **settings)
    one, other = ({key: w.copy() for key, w in start.items()} for _ in range(2))
    for _ in range(steps):
        for key in start:
            gradient = rng.normal(size=(3, 4)).astype("f")
            one[key], cleared = ours(key, one[key], gradient.copy())
            other[key], _ = plain(key, other[key], gradient.copy())
            assert not cleared.any()
    assert set(ours.averages) == (set(start) if steps else set())
    for key in start:
        np.testing.assert_array_equal(one[key], other[key])
        expected = share * start[key] + (1 - share) * one[key]
        np.testing.assert_allclose(ours.averages.get(key, start[key]), expected, atol=1e-5)


def test_the_settings_of_adam_are_accepted():
    """A command's option can replace Adam alone, since configs are complete."""
    overrides = {NAME: OPTIMIZER, "training.optimizer.start_share": 0.25}
    config = load_system("linker", overrides)
    optimizer = registry.resolve(config["training"])["optimizer"]
    assert optimizer.start_share == 0.25 and optimizer.averages == {}


def test_learn_rates_can_be_schedules():
    optimizer = make(iter([0.1, 0.2]))
    assert optimizer.learn_rate == 0.1
    optimizer.step_schedules()
    assert optimizer.learn_rate == 0.2


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan"), "half"])
def test_bad_shares(share):
    with pytest.raises(ValueError, match="training.optimizer.start_share"):
        make(0.1, start_share=share)
