"""Clusters to which mentions are added one by one, compared with a literal procedure."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.graph.online import attach, merged_numbers

NONE = np.zeros((0, 2), dtype=np.int64)


@st.composite
def arrivals(draw):
    """The neighbours of mentions that come one after the other, and their documents."""
    count = draw(st.integers(1, 12))
    rows = []
    for i in range(count):
        row = draw(st.lists(st.integers(0, i - 1), max_size=3, unique=True)) if i else []
        rows.append([*row, *[-1] * (3 - len(row))])
    documents = np.cumsum(draw(st.lists(st.integers(0, 1), min_size=count, max_size=count)))
    return np.array(rows), documents


def literal(neighbours, documents):
    """Sets of mentions, named by their first mentions: at the end of documents, and in the end."""
    sets, assigned = [], []
    for i, row in enumerate(neighbours.tolist()):
        touched = [s for s in sets if any(other in s for other in row if other >= 0)]
        sets = [s for s in sets if s not in touched] + [{i}.union(*touched)]
        if i + 1 == len(documents) or documents[i + 1] != documents[i]:
            assigned += [min(next(s for s in sets if j in s)) for j in range(len(assigned), i + 1)]
    return assigned, [min(next(s for s in sets if i in s)) for i in range(len(documents))]


def firsts(clusters):
    """Each mention's cluster, by its first mention."""
    return [int(np.flatnonzero(clusters == label)[0]) for label in clusters]


@given(arrivals(), st.data())
def test_attach_equals_literal_merging_however_documents_are_batched(drawn, data):
    neighbours, documents = drawn
    empty = np.zeros(0, dtype=np.int64)
    whole = attach(empty, empty, neighbours, documents, NONE, np.zeros(0, bool))
    assigned, at_end = literal(neighbours, documents)
    assert firsts(whole.of_mention) == at_end
    assert whole.first_mentions[whole.assigned].tolist() == assigned
    # Batches of whole documents give the same numbers.
    borders = np.flatnonzero(np.diff(documents)) + 1
    chosen = sorted(data.draw(st.sets(st.sampled_from(borders.tolist())))) if len(borders) else []
    clusters, merged_into, in_batches = empty, empty, []
    for start, end in zip([0, *chosen], [*chosen, len(documents)]):
        closed = np.zeros(len(merged_into), bool)
        part = attach(
            clusters, merged_into, neighbours[start:end], documents[start:end], NONE, closed
        )
        clusters, merged_into = part.of_mention, part.merged_into
        in_batches += part.assigned.tolist()
    assert merged_numbers(merged_into)[clusters].tolist() == whole.of_mention.tolist()
    assert in_batches == whole.assigned.tolist()


def test_attach_keeps_split_and_closed_clusters_apart():
    two = np.array([0, 1])
    both = np.array([[0, 1]])
    documents, none_closed = np.array([0]), np.zeros(2, bool)
    joined = attach(two, two, both, documents, NONE, none_closed)
    assert joined.of_mention.tolist() == [0, 0, 0] and joined.merges == [(1, 0, 0)]
    apart = attach(two, two, both, documents, np.array([[1, 0]]), none_closed)
    assert apart.of_mention.tolist() == [0, 1, 0] and not apart.merges
    closed = attach(two, two, np.array([[1, 0]]), documents, NONE, np.array([True, False]))
    assert closed.of_mention.tolist() == [0, 1, 1] and not closed.merges


@pytest.mark.parametrize(
    "change, message",
    [
        ({"of_mention": [0, 2]}, "in a cluster that does not exist"),
        ({"of_mention": [0, -1]}, "in a cluster that does not exist"),
        ({"merged_into": [0, 2]}, "merged into one that does not exist"),
        ({"merged_into": [-1, 1]}, "merged into one that does not exist"),
        ({"merged_into": [1, 0]}, "in a circle"),
        ({"kept_apart": [[0, 2]]}, "kept apart"),
        ({"neighbours": [[2, 0]]}, "came later"),
        ({"neighbours": [[1 << 40, 0]]}, "came later"),
        ({"documents": [0, 1]}, "different lengths"),
        ({"closed": [False]}, "different lengths"),
    ],
)
def test_arrays_that_do_not_fit_are_an_error_and_no_crash(change, message):
    arrays = {
        "of_mention": [0, 1],
        "merged_into": [0, 1],
        "neighbours": [[1, 0]],
        "documents": [0],
        "kept_apart": np.zeros((0, 2)),
        "closed": [False, False],
    }
    arrays = {name: np.array(values) for name, values in {**arrays, **change}.items()}
    integers = {n: a if n == "closed" else a.astype(np.int64) for n, a in arrays.items()}
    with pytest.raises(ValueError, match=message):
        attach(**integers)
