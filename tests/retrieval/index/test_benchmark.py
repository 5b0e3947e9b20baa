"""Measuring indexes: recall is what counting by hand gives."""

import numpy as np

from spacy_arbo_el.retrieval.index.benchmark import measure
from spacy_arbo_el.retrieval.index.exact import FlatIndex
from spacy_arbo_el.retrieval.index.faiss_index import FaissIndex
from spacy_arbo_el.retrieval.similarity import Cosine

from .test_faiss_index import rows_of


def test_recall_against_exact_search():
    rows, similarity = rows_of(2000), Cosine()
    queries = similarity.prepare(rows_of(40, seed=3).array())
    usable = np.arange(2000) % 3 > 0
    exact = FlatIndex(similarity.prepare(rows.array()), similarity).search(queries, 5, usable).ids
    builders = [FaissIndex("IVF16,Flat", f"nprobe={n}") for n in (1, 16)]
    results = measure(rows, similarity, queries, builders, (1, 5), usable)
    one = next(results)
    actual = one.index.search(queries, 5, usable).ids
    by_hand = [len({*a} & {*b}) / 5 for a, b in zip(exact.tolist(), actual.tolist())]
    assert abs(one.recall[5] - np.mean(by_hand)) < 1e-9
    assert 0.2 < one.recall[5] < 1.0 and one.index.size() > 2000 * 16 * 4
    (all_,) = results
    assert all_.recall == {1: 1.0, 5: 1.0}
    assert one.build_seconds > 0.0 == all_.build_seconds, "one index, searched in two ways"
