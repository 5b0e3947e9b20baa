"""What a block of a test is to do: raise an error, warn, or give no warning."""

import warnings
from contextlib import contextmanager

import pytest


def raises(pattern):
    """Expect an error of this package, which is a ValueError with a message of its own."""
    return pytest.raises(ValueError, match=pattern)


def warns(pattern):
    """Expect a warning whose message matches."""
    return pytest.warns(UserWarning, match=pattern)


@contextmanager
def no_warnings():
    """Turn warnings into errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
