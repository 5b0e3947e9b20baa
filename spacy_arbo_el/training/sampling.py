"""Random numbers of training."""

import numpy as np


def random_generator() -> np.random.Generator:
    """A generator that NumPy's global state seeds, which a checkpoint saves."""
    return np.random.default_rng(np.random.randint(2**31 - 1))
