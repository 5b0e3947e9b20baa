"""Clusters that grow mention by mention, against a literal account of the same."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.graph.online import attach, settled

NONE = np.zeros((0, 2), dtype=np.int64)


@st.composite
def arrivals(draw):
    """Neighbours of mentions that come one after the other, and how they fall into documents."""
    count = draw(st.integers(1, 12))
    rows = []
    for i in range(count):
        near = draw(st.lists(st.integers(0, i - 1), max_size=3, unique=True)) if i else []
        rows.append([*near, *[-1] * (3 - len(near))])
    document = np.cumsum(draw(st.lists(st.integers(0, 1), min_size=count, max_size=count)))
    return np.array(rows), document


def literal(neighbours, document):
    """Sets of mentions; a set's age is that of its first mention."""
    sets, seen, at_once = [], [], []
    for i, row in enumerate(neighbours.tolist()):
        touched = [s for s in sets if any(other in s for other in row if other >= 0)]
        sets = [s for s in sets if s not in touched] + [{i}.union(*touched)]
        if i + 1 == len(document) or document[i + 1] != document[i]:
            at_once += [min(next(s for s in sets if j in s)) for j in range(len(at_once), i + 1)]
            seen.append(i)
    return at_once, [min(next(s for s in sets if i in s)) for i in range(len(document))]


def firsts(cluster):
    """Each mention's cluster, by its first mention."""
    return [int(np.flatnonzero(cluster == label)[0]) for label in cluster]


@given(arrivals(), st.data())
def test_as_literally_and_in_any_pieces(given_arrivals, data):
    neighbours, document = given_arrivals
    empty = np.zeros(0, dtype=np.int64)
    whole = attach(empty, empty, neighbours, document, NONE, np.zeros(0, bool))
    at_once, at_end = literal(neighbours, document)
    assert firsts(whole.cluster) == at_end
    assert whole.begun[whole.at_once].tolist() == at_once
    # In pieces that don't cut documents, the same numbers come out.
    borders = np.flatnonzero(np.diff(document)) + 1
    chosen = sorted(data.draw(st.sets(st.sampled_from(borders.tolist())))) if len(borders) else []
    cluster, leads, told = empty, empty, []
    for start, end in zip([0, *chosen], [*chosen, len(document)]):
        closed = np.zeros(len(leads), bool)
        part = attach(cluster, leads, neighbours[start:end], document[start:end], NONE, closed)
        cluster, leads = part.cluster, part.leads
        told += part.at_once.tolist()
    assert settled(leads)[cluster].tolist() == whole.cluster.tolist()
    assert told == whole.at_once.tolist()


def test_what_is_kept_apart_stays_apart():
    two = np.array([0, 1])
    both = np.array([[0, 1]])
    document, open_ = np.array([0]), np.zeros(2, bool)
    joined = attach(two, two, both, document, NONE, open_)
    assert joined.cluster.tolist() == [0, 0, 0] and joined.merges == [(1, 0, 0)]
    apart = attach(two, two, both, document, np.array([[1, 0]]), open_)
    assert apart.cluster.tolist() == [0, 1, 0] and not apart.merges
    closed = attach(two, two, np.array([[1, 0]]), document, NONE, np.array([True, False]))
    assert closed.cluster.tolist() == [0, 1, 1] and not closed.merges
