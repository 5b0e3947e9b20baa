"""Equality of float32 sums whose terms were added in another order.

Another number of threads, another instruction set or another batch adds in another order. Each
addition rounds by a share of at most ``EPS`` of the largest sum on the way, so what may differ is a
share of the largest values, and not a fixed number.
"""

import numpy as np

EPS = float(np.finfo(np.float32).eps)
# Roundings of the largest sums that may add up: those of some hundred additions in several layers.
ROUNDINGS = 1000


def assert_same_vectors(actual, expected):
    """Assert that arrays are equal but for roundings of the largest values in a row.

    actual, expected: (..., width).
    """
    actual, expected = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
    assert actual.shape == expected.shape
    largest = np.abs(expected).max(axis=-1, keepdims=True, initial=0.0)
    off = np.abs(actual - expected)
    assert (off <= ROUNDINGS * EPS * largest).all(), (off.max(), largest.max())


def assert_same_gradients(actual, expected):
    """Assert that gradients are equal but for roundings of the largest ones.

    A gradient that is 0 by arithmetic, such as that of a bias of keys, is a sum of others that
    cancel: it has a tenth of the roundings of the largest of all.

    actual, expected: Tensors by name.
    """
    assert actual.keys() == expected.keys()
    sizes = {name: float(one.abs().max()) for name, one in expected.items()}
    largest = max(sizes.values())
    for name, one in expected.items():
        off = float((actual[name] - one).abs().max())
        allowed = ROUNDINGS * EPS * (sizes[name] + 0.1 * largest)
        assert off <= allowed, (name, off, allowed)
