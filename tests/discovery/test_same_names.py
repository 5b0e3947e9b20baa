"""Mentions of one name: connected whatever their neighbours are, each way of reading once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.base.calibration import Calibration
from spacy_arbo_el.discovery import same_names
from spacy_arbo_el.discovery.grouping import METHODS, Discovery
from spacy_arbo_el.discovery.same_names import Distinct, name_edges, number_names
from spacy_arbo_el.retrieval.similarity import Cosine, Dot, NegativeSquaredEuclidean

from .test_new_entities import record_of

SIMILARITIES = [Cosine(), Dot(), NegativeSquaredEuclidean()]


def sentences(count, seed=0, width=6, spread=0.5):
    """A vector for each sentence, around one of three centres."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((3, width))
    around = centres[np.arange(count) % 3] + spread * rng.standard_normal((count, width))
    return around.astype(np.float32)


def partition(groups):
    return {frozenset(np.flatnonzero(groups == one).tolist()) for one in np.unique(groups)}


def group(vectors, names, discovery, similarity, **settings):
    prepared = similarity.prepare(vectors)
    names = np.asarray(names)
    return discovery.group(prepared, similarity, Calibration(), names=names, **settings)


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
    assert (names[source] == names[target]).all() and len(source) == 60 - 4
    table = similarity.blocks(vectors, vectors)
    assert scores == pytest.approx(table[source, target], abs=1e-4)
    everything = Discovery(0.5, n_neighbors=59)
    for least in np.quantile(table, [0.1, 0.5, 0.8, 0.95]):
        apart = everything.sweep(vectors, similarity, np.array([least]))[0]
        # All pairs of one name: the mentions of others are left out.
        for name in range(4):
            inside = np.flatnonzero(names == name)
            few = Discovery(n_neighbors=1)
            one = few.sweep(vectors[inside], similarity, np.array([least]), names[inside] * 0)[0]
            all_pairs = everything.sweep(vectors[inside], similarity, np.array([least]))[0]
            assert partition(one) == partition(all_pairs)
        assert len(partition(apart)) >= 1


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
    alone = discovery.group(prepared, Cosine(), Calibration())
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
    assert decided[0] == decided[3] != decided[1] == decided[4]


def test_names_differ_by_label_but_not_by_case():
    one, other = record_of(1), record_of(2)
    same = [one.__class__(**{**one.__dict__, "normalized": form}) for form in ("A  b", "a B")]
    assert number_names([*same, other]).tolist() == [0, 0, 1]
    labelled = one.__class__(**{**one.__dict__, "normalized": "a b", "label": "OTHER"})
    assert number_names([*same, labelled]).tolist() == [0, 0, 1]


def test_of_a_name_with_many_mentions_few_pairs_are_compared(monkeypatch):
    """The others are compared with the landmarks, and only these with each other."""
    trees, searches = [], []
    spanning_trees, search = same_names._spanning_trees, same_names.FlatIndex.search

    def counted_trees(features, squares, scale, order, starts, sizes):
        trees.extend(sizes.tolist())
        return spanning_trees(features, squares, scale, order, starts, sizes)

    def counted_search(index, queries, k):
        searches.append((len(queries), len(index.vectors)))
        return search(index, queries, k)

    monkeypatch.setattr(same_names, "MAX_PAIRED", 64)
    monkeypatch.setattr(same_names, "_spanning_trees", counted_trees)
    monkeypatch.setattr(same_names.FlatIndex, "search", counted_search)
    vectors = Cosine().prepare(sentences(2000))
    source, target, _ = name_edges(vectors, np.zeros(2000, dtype=np.int64), Cosine())
    assert len(source) == 2000 - 1 and len(np.unique([source, target])) == 2000
    assert trees == [64] and searches == [(2000 - 64, 64)]


def test_distinct_mentions_keep_their_order():
    features = np.array([[1, 0], [0, 1], [1, 0], [-0.0, 1], [0, 0], [0, 0]], dtype=np.float32)
    distinct = Distinct.of(features, None)
    assert distinct.rows.tolist() == [0, 1, 4, 5] and distinct.node.tolist() == [0, 1, 0, 1, 2, 3]
    named = Distinct.of(features, np.array([0, 0, 1, 0, 0, 0]))
    assert named.rows.tolist() == [0, 1, 2, 4] and named.node.tolist() == [0, 1, 2, 1, 3, 3]
