"""Results that are kept are those of computing each key anew, and each is computed once."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.encoders.inputs import KeptResults

CALLS = st.lists(st.tuples(st.sampled_from("ab"), st.lists(st.integers(0, 4), max_size=5)))


@given(CALLS)
def test_each_key_is_computed_once_for_each_kind(calls):
    kept, computed = KeptResults(), []
    for kind, keys in calls:

        def compute(places, kind=kind, keys=keys):
            some = [keys[place] for place in places]
            computed.extend((kind, key) for key in some)
            return np.array([[key, ord(kind)] for key in some], dtype=float).reshape(-1, 2)

        expected = np.array([[key, ord(kind)] for key in keys], dtype=float).reshape(-1, 2)
        np.testing.assert_array_equal(kept.of(kind, keys, compute), expected)
    assert len(computed) == len(set(computed))
    assert set(computed) == {(kind, key) for kind, keys in calls for key in keys}
