"""Random spans of random passages, and what they hold as plain lists."""

import numpy as np
from hypothesis import strategies as st

from spacy_arbo_el import SpanInputs
from spacy_arbo_el.base.arrays import offsets_of

# The passage of a span, and its first, last and marker word piece.
Place = tuple[int, int, int, int]

passages_of_ids = st.lists(st.lists(st.integers(0, 99), max_size=6), max_size=8)


def build_inputs(passages, places):
    """``SpanInputs`` of passages and of spans in them."""
    passage, first, last, marker = np.array(places, dtype=np.int64).reshape(-1, 4).T
    return SpanInputs(
        np.array([i for ids in passages for i in ids], dtype=np.int32),
        offsets_of(np.array([len(ids) for ids in passages], dtype=np.int64)),
        passage,
        *(array.astype(np.int32) for array in (first, last, marker)),
    )


@st.composite
def span_inputs(draw):
    """``SpanInputs`` of any number of spans in each passage, in any order."""
    passages = draw(passages_of_ids)
    numbers = st.integers(0, len(passages) - 1)
    places = []
    for passage in draw(st.lists(numbers, max_size=10)) if passages else []:
        within = st.integers(0, max(len(passages[passage]) - 1, 0))
        first, last = sorted([draw(within), draw(within)])
        places.append((passage, first, last, draw(within)))
    return build_inputs(passages, places)


def windows_of(passages):
    """``SpanInputs`` of one span in each passage, at its start."""
    return build_inputs(passages, [(i, 0, 0, 0) for i in range(len(passages))])


def passages_of(inputs):
    """The ids of each passage."""
    bounds = zip(inputs.offsets[:-1], inputs.offsets[1:])
    return [inputs.ids[start:end].tolist() for start, end in bounds]


def spans_of(inputs):
    """Each span: the ids of its passage, and its first, last and marker word piece."""
    passages = passages_of(inputs)
    return [
        (passages[inputs.passage[i]], inputs.first[i], inputs.last[i], inputs.marker[i])
        for i in range(len(inputs))
    ]
