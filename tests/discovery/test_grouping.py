"""Grouping of mentions: any order, any vectors, with decisions, and by name."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el import Calibration, NewEntities
from spacy_arbo_el.base.calibration import similarity_at
from spacy_arbo_el.discovery import same_names
from spacy_arbo_el.discovery.grouping import METHODS, Discovery, group_mentions
from spacy_arbo_el.discovery.mention_names import MentionNames
from spacy_arbo_el.discovery.same_names import Distinct, name_edges
from spacy_arbo_el.retrieval.mention_search import digests_of
from spacy_arbo_el.retrieval.similarity import Cosine, Dot, NegativeSquaredEuclidean

from .test_new_entities import key_of, mentions, record_of

SIMILARITIES = [Cosine(), Dot(), NegativeSquaredEuclidean()]


def vectors_of(kinds, width=4):
    """Vectors by kind: 0 to 5 for equal ones, 6 for zeros, 7 for NaN, 8 for infinite."""
    vectors = np.random.default_rng(0).standard_normal((9, width)).astype(np.float32)
    vectors[4] = vectors[5] + 1e-6
    vectors[6:9] = np.array([0.0, np.nan, np.inf])[:, None]
    return vectors[np.array(kinds, dtype=np.int64)]


@pytest.mark.parametrize("probability, groups", [(0.6, 3), (0.75, 1)])
def test_by_default_a_chain_holds_from_a_probability_of_70_percent_on(probability, groups):
    angle = np.arccos(similarity_at(probability, Calibration().same_new_entity))
    vectors = np.array([[np.cos(i * angle), np.sin(i * angle)] for i in range(3)], np.float32)
    numbers = group(vectors, range(3), Discovery(), Cosine())
    assert len(set(numbers.tolist())) == groups


def sets_of(numbers, groups, known):
    """The mentions of each group, with the cluster that the group goes on with."""
    places = {}
    for number, group in zip(numbers, groups.tolist()):
        places.setdefault(group, set()).add(number)
    return {(frozenset(members), known.get(group, -1)) for group, members in places.items()}


def grouped(numbers, vectors, decided, discovery, similarity=None, types=False):
    similarity = similarity or Cosine()
    records = [record_of(number) for number in numbers]
    return group_mentions(
        records, similarity.prepare(vectors), decided, discovery, similarity, Calibration(), types
    )


@given(st.data(), st.sampled_from(METHODS), st.sampled_from(SIMILARITIES))
def test_groups_do_not_depend_on_the_order_of_mentions(data, method, similarity):
    kinds = data.draw(st.lists(st.integers(0, 8), min_size=1, max_size=14))
    threshold = data.draw(st.sampled_from([0.0, 0.3, 0.6, 1.0]))
    discovery = Discovery(threshold, n_neighbors=2, method=method)
    kept = NewEntities(0.5, "encoder")
    kept.add_groups(mentions(range(0, 10)), np.array([0, 0, 1, 1, 2, 2, 3, 3, 4, 4]))
    kept.merge(kept.id_of(key_of(0)), kept.id_of(key_of(2)))
    kept.split(kept.id_of(key_of(4)), [1])
    kept.reject(kept.id_of(key_of(6)))
    kept.mark_accepted(kept.id_of(key_of(8)), "E1")
    decided = kept.decided() if data.draw(st.booleans()) else NewEntities().decided()
    numbers = list(range(len(kinds)))
    vectors = vectors_of(kinds)
    results = []
    for order in (numbers, numbers[::-1], data.draw(st.permutations(numbers))):
        found = grouped(order, vectors[list(order)], decided, discovery, similarity)
        results.append(sets_of(order, *found))
    assert results[0] == results[1]
    assert results[1] == results[2]
    of = {number: members for members, _ in results[0] for number in members}
    left_out = next((members for members, _ in results[0] if 8 in members), frozenset())
    if decided.accepted:
        assert left_out <= {8, 9}
        both = [n for n in (0, 1, 2, 3) if n in of]
        assert len({of[n] for n in both}) <= 1, "merged"
        assert not {4, 5} <= set(of) or of[4] != of[5], "split"
        for a, b in ((0, 4), (0, 5), (4, 6), (0, 6)):
            assert not {a, b} <= set(of) or of[a] != of[b], "decided ones are not joined"


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("threshold", [0.0, 0.5, 1.0])
def test_strange_vectors_and_thresholds_are_sane(similarity, method, threshold):
    nothing = NewEntities().decided()
    discovery = Discovery(threshold, method=method)
    assert grouped([], np.zeros((0, 4), np.float32), nothing, discovery, similarity)[0].size == 0
    for kind in (0, 6, 7, 8):
        one, _ = grouped([3], vectors_of([kind]), nothing, discovery, similarity)
        assert one.tolist() == [0]
    for kind in (6, 7, 8):
        alone, _ = grouped(range(4), vectors_of([kind] * 4), nothing, discovery, similarity)
        assert len(set(alone.tolist())) == 4, "what cannot be read is alone"
        mixed, _ = grouped(range(4), vectors_of([0, kind, 0, kind]), nothing, discovery, similarity)
        assert len({mixed[1], mixed[3]} | set(mixed)) >= 3
        assert mixed[1] != mixed[3]
    same, _ = grouped(range(30), vectors_of([1] * 30), nothing, discovery, similarity)
    if threshold == 0.0:
        assert set(same.tolist()) == {0}
    if threshold == 1.0:
        assert len(set(same.tolist())) == 30


def test_without_neighbours_or_a_discovery_each_is_alone():
    for discovery in (Discovery(n_neighbors=0), None):
        found, _ = grouped(range(3), vectors_of([0] * 3), NewEntities().decided(), discovery)
        assert found.tolist() == [0, 1, 2]


def test_medoid_and_name_do_not_depend_on_the_order():
    forward, backward = NewEntities(), NewEntities()
    numbers = list(range(12))
    forward.add_groups(mentions(numbers), np.zeros(12, dtype=np.int64))
    backward.add_groups(mentions(numbers[::-1]), np.zeros(12, dtype=np.int64))
    one, other = forward[0], backward[0]
    assert (one.id, one.name, one.cohesion) == (other.id, other.name, other.cohesion)
    assert one.members[one.medoid] == other.members[other.medoid]
    assert one.nearest == other.nearest


def sentences(count, seed=0, width=6, spread=0.5):
    """A vector for each sentence, around one of three centres."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((3, width))
    around = centres[np.arange(count) % 3] + spread * rng.standard_normal((count, width))
    return around.astype(np.float32)


def partition(groups):
    return {frozenset(np.flatnonzero(groups == one).tolist()) for one in np.unique(groups)}


def names_of(numbers):
    """Names that do not say whether they are of one entity."""
    numbers = np.asarray(numbers)
    words = [(f"name {number}",) for number in numbers.tolist()]
    return MentionNames(numbers, numbers, words, np.zeros(len(numbers), dtype=bool))


def group(vectors, names, discovery, similarity, **settings):
    prepared = similarity.prepare(vectors)
    names = names_of(names)
    return discovery.group(prepared, similarity, Calibration(), names, **settings)


@given(
    st.lists(
        st.tuples(st.integers(0, 7), st.integers(1, 9)), min_size=1, max_size=8, unique_by=str
    ),
    st.sampled_from(METHODS),
    st.sampled_from(SIMILARITIES),
    st.sampled_from([0.2, 0.5, 0.9]),
    st.integers(0, 5),
)
def test_groups_do_not_depend_on_how_often_a_sentence_recurs(
    recurring, method, similarity, threshold, seed
):
    kinds = list(dict.fromkeys(kind for kind, _ in recurring))
    times = dict(recurring)
    vectors, discovery = sentences(8, seed), Discovery(threshold, 2, method=method)
    rows = np.repeat(kinds, [times[kind] for kind in kinds])
    once = group(vectors[kinds], np.array(kinds) % 2, discovery, similarity)
    often = group(vectors[rows], rows % 2, discovery, similarity)
    first = np.searchsorted(
        np.cumsum([times[kind] for kind in kinds]), np.arange(len(rows)), "right"
    )
    of_first = often[np.unique(first, return_index=True)[1]]
    # Where not even the same text is similar enough, each mention stays by itself.
    own = similarity.of_equals(similarity.prepare(vectors[kinds]))
    if (own >= discovery.min_similarity(Calibration())).all():
        assert partition(of_first) == partition(once)
        assert (often == of_first[first]).all()


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_mentions_of_a_name_are_connected_as_by_all_pairs(similarity, monkeypatch):
    vectors, names = similarity.prepare(sentences(60)), np.arange(60) % 4
    source, target, scores = name_edges(vectors, names, similarity)
    assert (names[source] == names[target]).all()
    assert len(source) == 60 - 4
    table = similarity.blocks(vectors, vectors)
    assert scores == pytest.approx(table[source, target], abs=1e-4)
    for least in np.quantile(table, [0.1, 0.5, 0.8, 0.95]):
        # The similarity of a probability of one half.
        calibration = Calibration(same_new_entity=(1.0, -float(least)))
        # All pairs of one name: the mentions of others are left out.
        for name in range(4):
            inside = np.flatnonzero(names == name)
            among = vectors[inside], similarity, calibration
            by_name = Discovery(0.5, n_neighbors=1).group(*among, names_of(inside * 0))
            by_all = Discovery(0.5, n_neighbors=59).group(*among, names_of(inside))
            assert partition(by_name) == partition(by_all)


def test_recurring_sentences_of_one_name_are_one_new_entity():
    four = 6 * sentences(1) + sentences(4, seed=1, spread=1.0)
    rows = np.arange(100) % 4
    almost = four[rows] + 1e-3 * sentences(100, seed=2)
    names = np.zeros(100, dtype=np.int64)
    discovery = Discovery(0.5)
    least = discovery.min_similarity(Calibration())
    prepared = Cosine().prepare(almost)
    near = Cosine().blocks(prepared, prepared)
    assert near.min() > least
    alone = group(almost, range(100), discovery, Cosine())
    assert len(set(alone.tolist())) == 4, "each looks at its own sentence"
    assert set(group(almost, names, discovery, Cosine()).tolist()) == {0}
    of_documents = group(almost, names, discovery, Cosine(), documents=np.arange(100) // 50)
    assert of_documents.tolist() == [0] * 50 + [1] * 50


def test_unreadable_mentions_of_one_name_are_one_new_entity():
    vectors = np.zeros((6, 4), dtype=np.float32)
    vectors[1], vectors[5, 0] = np.nan, 1.0
    found = group(vectors, [0, 0, 1, 0, 1, 0], Discovery(), Cosine())
    assert found.tolist() == [0, 0, 1, 0, 1, 2]
    decided = group(vectors, [0] * 6, Discovery(), Cosine(), decided=np.array([1, 2, -1, 1, 2, -1]))
    assert decided[0] == decided[3]
    assert decided[3] != decided[1]
    assert decided[1] == decided[4]


def test_of_a_name_with_many_mentions_few_pairs_are_compared(monkeypatch):
    """The others are compared with the landmarks, and only these with each other."""
    trees, searches = [], []
    spanning_tree, search = same_names.spanning_tree, same_names.FlatIndex.search

    def counted_tree(pairs, no_root, wanted):
        trees.append(len(pairs))
        return spanning_tree(pairs, no_root, wanted)

    def counted_search(index, queries, k):
        searches.append((len(queries), len(index.vectors)))
        return search(index, queries, k)

    monkeypatch.setattr(same_names, "MAX_PAIRED", 64)
    monkeypatch.setattr(same_names, "spanning_tree", counted_tree)
    monkeypatch.setattr(same_names.FlatIndex, "search", counted_search)
    vectors = Cosine().prepare(sentences(2000))
    source, target, _ = name_edges(vectors, np.zeros(2000, dtype=np.int64), Cosine())
    assert len(source) == 2000 - 1
    assert len(np.unique([source, target])) == 2000
    assert trees == [64]
    assert searches == [(2000 - 64, 64)]


def test_distinct_mentions_keep_their_order():
    features = np.array([[1, 0], [0, 1], [1, 0], [-0.0, 1], [0, 0], [0, 0]], dtype=np.float32)
    named = Distinct.of(digests_of(features), np.array([0, 0, 1, 0, 0, 0]), None)
    assert named.rows.tolist() == [0, 1, 2, 4]
    assert named.node.tolist() == [0, 1, 2, 1, 3, 3]


def test_names_that_tell_entities_apart_have_no_edge():
    vectors = np.eye(4, dtype=np.float32)[[0, 0, 0, 0]]
    words = [("zorblin", "1"), ("zorblin", "2"), ("zorblin", "2")]
    names = MentionNames(np.arange(3), np.arange(3), words, np.zeros(3, dtype=bool))
    discovery = Discovery(n_neighbors=4)
    assert group(vectors, range(4), discovery, Cosine()).tolist() == [0, 0, 0, 0]
    apart = discovery.group(vectors[:3], Cosine(), Calibration(), names)
    assert apart.tolist() == [0, 1, 1]
