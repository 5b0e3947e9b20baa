"""Measuring indexes: recall is what counting by hand gives."""

from pathlib import Path

import numpy as np
from spacy.util import import_file

from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.kb.verbalizations import Names
from spacy_arbo_el.retrieval.index.exact import FlatIndex
from spacy_arbo_el.retrieval.index.faiss_index import FaissIndex
from spacy_arbo_el.retrieval.similarity import Cosine

from ..commands import run_script
from ..devices import needs_index
from ..retrieval.index.test_faiss_index import rows_of

pytestmark = needs_index
SCRIPT = Path(__file__).parents[2] / "benchmarks" / "search.py"


def test_recall_against_exact_search():
    rows, similarity = rows_of(2000), Cosine()
    queries = similarity.prepare(rows_of(40, seed=3).array())
    usable = np.arange(2000) % 3 > 0
    exact = FlatIndex(similarity.prepare(rows.array()), similarity).search(queries, 5, usable).ids
    builders = [FaissIndex("IVF16,Flat", f"nprobe={n}") for n in (1, 16)]
    results = import_file("search", SCRIPT).measure(
        rows, similarity, queries, builders, (1, 5), usable
    )
    one = next(results)
    actual = one.index.search(queries, 5, usable).ids
    by_hand = [len({*a} & {*b}) / 5 for a, b in zip(exact.tolist(), actual.tolist())]
    assert abs(one.recall[5] - np.mean(by_hand)) < 1e-9
    assert 0.2 < one.recall[5] < 1.0
    (all_,) = results
    assert all_.recall == {1: 1.0, 5: 1.0}
    assert one.build_seconds > 0.0 == all_.build_seconds, "one index, searched in two ways"


def test_the_script_compares_indexes_over_a_knowledge_base(tmp_path):
    rng = np.random.default_rng(0)
    with ArboKB.create(tmp_path / "kb") as kb:
        kb.add(Entity(f"e{i}", f"name {i}") for i in range(12_000))
        kb.sync(Names(), lambda t: rng.standard_normal((len(t), 16)), "x")
        kb.remove(["e5", "e7"])
    indexes = ("-i", "IVF256,PQ4x4fs nprobe=64", "-i", "HNSW32 efSearch=64")
    table = run_script(SCRIPT, "index", str(tmp_path / "kb"), *indexes, "--queries", "50")
    lines = [line.split(" | ") for line in table.splitlines()[2:]]
    assert [line[0].strip("| ") for line in lines] == [indexes[1], indexes[3]]
    assert all(0.1 < float(line[1]) <= 1 for line in lines)
