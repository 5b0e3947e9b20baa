"""Measuring index kinds: recall is what counting by hand gives."""

import numpy as np

from spacy_arbo_el.retrieval.index import FlatIndex
from spacy_arbo_el.retrieval.similarity import cosine
from spacy_arbo_el.retrieval.tuning import Setting, measure, settings_for

from .test_kinds import rows_of


def test_recall_against_exact_search():
    rows, similarity = rows_of(2000), cosine()
    queries = similarity.prepare(rows_of(40, seed=3).array())
    usable = np.arange(2000) % 3 > 0
    settings = [
        Setting("IVF.v1", {"lists": 16, "probes": probes, "codes": "float32"}) for probes in (1, 16)
    ]
    one, all_ = measure(rows, similarity, queries, settings, (1, 5), usable)
    assert all_.recall == {1: 1.0, 5: 1.0} and 0.2 < one.recall[5] < 1.0
    right = FlatIndex(similarity.prepare(rows.array()), similarity).search(queries, 5, usable)[1]
    found = one.index.search(queries, 5, usable)[1]
    by_hand = [len({*a} & {*b}) / 5 for a, b in zip(right.tolist(), found.tolist())]
    assert abs(one.recall[5] - np.mean(by_hand)) < 1e-9
    assert one.build > 0.0 == all_.build, "one index, searched in two ways"
    assert one.size > 2000 * 16 * 4


def test_settings_and_their_configs():
    settings = settings_for(1_000_000)
    assert {s.settings["lists"] for s in settings if s.kind == "IVF.v1"} == {2048}
    assert Setting("IVF.v1", {"lists": 8, "codes": "pq4"}).config() == (
        '[components.arbo_linker.index]\n@misc = "spacy-arbo-el.IVF.v1"\nlists = 8\ncodes = "pq4"'
    )
