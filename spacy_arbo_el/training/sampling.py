"""Random numbers of training."""

import numpy as np


def random_generator() -> np.random.Generator:
    """A generator seeded by NumPy's global state. A checkpoint saves that state."""
    return np.random.default_rng(np.random.randint(2**31 - 1))
