"""Measuring index kinds: recall is what counting by hand gives."""

import numpy as np
import pytest
from spacy.util import registry
from thinc.api import Config

from spacy_arbo_el.retrieval.index.benchmark import (
    builders_for,
    config_of,
    label_of,
    measure,
)
from spacy_arbo_el.retrieval.index.flat import FlatIndex
from spacy_arbo_el.retrieval.index.quantizers import HNSW, IVF
from spacy_arbo_el.retrieval.similarity import Cosine

from .test_quantizers import rows_of


def test_recall_against_exact_search():
    rows, similarity = rows_of(2000), Cosine()
    queries = similarity.prepare(rows_of(40, seed=3).array())
    usable = np.arange(2000) % 3 > 0
    builders = [IVF(n_lists=16, n_probes=n_probes, codes="float32") for n_probes in (1, 16)]
    one, all_ = measure(rows, similarity, queries, builders, (1, 5), usable)
    assert all_.recall == {1: 1.0, 5: 1.0} and 0.2 < one.recall[5] < 1.0
    exact = FlatIndex(similarity.prepare(rows.array()), similarity).search(queries, 5, usable).ids
    actual = one.index.search(queries, 5, usable).ids
    by_hand = [len({*a} & {*b}) / 5 for a, b in zip(exact.tolist(), actual.tolist())]
    assert abs(one.recall[5] - np.mean(by_hand)) < 1e-9
    assert one.build_seconds > 0.0 == all_.build_seconds, "one index, searched in two ways"
    assert one.size > 2000 * 16 * 4


def test_builders_to_measure_and_their_configs():
    builders = builders_for(1_000_000)
    assert {build.n_lists for build in builders if isinstance(build, IVF)} == {2048}
    assert any(isinstance(build, HNSW) for build in builders)
    build = IVF(n_lists=8, codes="pq4")
    assert label_of(build) == "IVF.v1: n_lists 8, n_probes 0, codes pq4, rescore_factor 4.0"
    assert config_of(build) == (
        "[components.arbo_linker.retriever.index]\n"
        '@misc = "spacy-arbo-el.IVF.v1"\n'
        "n_lists = 8\n"
        "n_probes = 0\n"
        'codes = "pq4"\n'
        "rescore_factor = 4.0"
    )


@pytest.mark.parametrize("build", [IVF(8, 2, "sq8", 1.5), HNSW(16, codes="sq8")])
def test_the_config_of_a_builder_builds_it_again(build):
    section = config_of(build).replace("components.arbo_linker.retriever.", "")
    assert registry.resolve(Config().from_str(section))["index"] == build
