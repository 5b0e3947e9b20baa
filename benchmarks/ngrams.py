"""An encoder of n-grams beside a transformer: speed, start-up, and approximate search.

    python benchmarks/ngrams.py speed NGRAMS TRANSFORMER CORPUS.spacy
    python benchmarks/ngrams.py start NGRAMS TRANSFORMER CORPUS.spacy
    python benchmarks/ngrams.py search NGRAMS CORPUS.spacy [--synthetic 2300000]

All times are processor seconds of one thread, so that other programs on the machine don't count.
*speed*: mentions per second from Docs to vectors, and of ``nlp.pipe``. The pipelines alternate, and
the best time of each counts. *start*: from the start of Python, imports included, to the first
link, each in a separate process. *search*: Table 3 of DEER (Gillick et al. 2019) in our form,
recall@100 of gold entities by the kind of index, and the median time of one query at a time; with
``--synthetic``, recall@100 of exact search over vectors in clusters.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

K = 100


# Speed


def speed(options: argparse.Namespace) -> None:
    import faiss
    import spacy
    import torch
    from threadpoolctl import threadpool_limits

    from spacy_arbo_el.corpora.reader import MentionCorpus
    from spacy_arbo_el.linker import find_linker

    torch.set_num_threads(1)
    faiss.omp_set_num_threads(1)
    pipelines = {
        "n-grams": spacy.load(options.ngrams),
        "transformer": spacy.load(options.transformer),
    }
    docs = [
        example.predicted
        for example in MentionCorpus(options.corpus, limit=options.limit)(
            pipelines["n-grams"]
        )
    ]
    times: dict[str, list[list[float]]] = {name: [[], []] for name in pipelines}
    with threadpool_limits(1):
        for _ in range(options.rounds + 1):
            for name, nlp in pipelines.items():
                n = _encode(nlp, docs, times[name][0])
                _link(nlp, docs, times[name][1])
    print(
        f"{n} mentions in {len(docs)} documents, one thread, best of {options.rounds}\n"
    )
    print(
        "| | names | exemplars | reranker | Docs to vectors, mentions/s | nlp.pipe, mentions/s |"
    )
    print("|---|---:|---:|---|---:|---:|")
    rates = {}
    for name, nlp in pipelines.items():
        linker = find_linker(nlp)
        # The first round compiles and fills caches.
        rates[name] = [n / min(seconds[1:]) for seconds in times[name]]
        reranker = type(linker.reranker).__name__
        print(
            f"| {name} | {len(linker.kb.rows)} | {len(linker.exemplars)} | {reranker} | "
            f"{rates[name][0]:.0f} | {rates[name][1]:.0f} |"
        )
    ratios = [a / b for a, b in zip(rates["n-grams"], rates["transformer"])]
    print(f"| times as fast | | | | {ratios[0]:.1f} | {ratios[1]:.1f} |")


def _encode(nlp: Any, docs: list[Any], seconds: list[float]) -> int:
    """Docs to vectors. RETURNS: The number of mentions."""
    from spacy_arbo_el.linker import find_linker

    linker, began = find_linker(nlp), time.process_time()
    batch = linker.stages.encode(linker.reader.read_docs(docs))
    seconds.append(time.process_time() - began)
    return len(batch)


def _link(nlp: Any, docs: list[Any], seconds: list[float]) -> None:
    copies, began = [doc.copy() for doc in docs], time.process_time()
    for _ in nlp.pipe(copies):
        pass
    seconds.append(time.process_time() - began)


# Start-up


def start(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        small = with_small_kb(options.ngrams, Path(folder) / "model")
        _start(
            [
                ("n-grams, 100 entities", small),
                ("n-grams", options.ngrams),
                ("transformer", options.transformer),
            ],
            options,
        )


def with_small_kb(model: Path, folder: Path) -> Path:
    """The pipeline with 100 of its entities and no exemplars: what remains is not the KB's."""
    import spacy

    from spacy_arbo_el.linker import find_linker

    nlp = spacy.load(model)
    linker = find_linker(nlp)
    linker.set_kb(list(islice(linker.kb, 100)))
    linker.exemplars.remove([record.key for record in linker.exemplars.records])
    linker.refresh()
    nlp.to_disk(folder)
    return folder


def _start(cases: list[tuple[str, Path]], options: argparse.Namespace) -> None:
    # Installed packages have compiled modules.
    environment = {
        k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"
    }
    print("| | seconds to the first link | resident, MB |")
    print("|---|---:|---:|")
    for name, model in cases:
        command = [sys.executable, __file__, "first", str(model), str(options.corpus)]
        # The first process fills the caches of the disk, of Python and of Numba.
        runs = []
        for _ in range(options.rounds + 1):
            done = subprocess.run(
                command, check=True, capture_output=True, env=environment
            )
            runs.append(json.loads(done.stdout))
        best = min(runs[1:], key=lambda run: run["seconds"])
        print(f"| {name} | {best['seconds']:.2f} | {best['megabytes']} |", flush=True)


def first(options: argparse.Namespace) -> None:
    """Load a pipeline and link one document; in a separate process."""
    import spacy
    from memory import resident_megabytes

    nlp = spacy.load(options.model)
    doc = nlp.make_doc("He was treated for colon cancer in May.")
    doc.ents = [doc.char_span(19, 31, label="Disease")]
    for _, component in nlp.pipeline:
        doc = component(doc)
    answer = {"seconds": time.process_time(), "megabytes": resident_megabytes()}
    json.dump({**answer, "link": doc.ents[0].kb_id_}, sys.stdout)


# Approximate search


def search(options: argparse.Namespace) -> None:
    import faiss
    import spacy

    from spacy_arbo_el.corpora.reader import MentionCorpus
    from spacy_arbo_el.kb.vectors import VectorRows
    from spacy_arbo_el.linker import find_linker
    from spacy_arbo_el.training.table import GoldTable

    faiss.omp_set_num_threads(1)
    nlp = spacy.load(options.model)
    linker = find_linker(nlp)
    linker.refresh()
    docs = [example.reference for example in MentionCorpus(options.corpus)(nlp)]
    batch = linker.stages.encode(linker.reader.read_docs(docs))
    texts = linker.kb.vectors.distinct_texts(linker.datastore.settings.verbalization)
    table = GoldTable(
        batch.records, linker.kb, texts, np.zeros(len(texts), dtype=np.int64)
    )
    labelled = np.flatnonzero(np.diff(table.mention_texts.indptr) > 0)[
        : options.queries
    ]
    gold = table.mention_texts[labelled].toarray() > 0
    vectors = linker.kb.rows.take(texts.rows)
    rows = VectorRows(vectors, np.arange(len(vectors)))
    print(
        f"{len(vectors)} texts of entities, {len(labelled)} mentions whose entity is there\n"
    )
    _compare(rows, batch.encoded[labelled], linker.similarity, gold)
    if options.synthetic:
        rows, queries = clustered(options.synthetic, options.width, 500)
        print(
            f"\n{len(rows)} vectors of width {options.width} in clusters, {len(queries)} queries\n"
        )
        _compare(rows, queries, linker.similarity, None)


def clustered(count: int, width: int, queries: int) -> Any:
    """Random vectors round random centres, of which there is one in 200, and queries near some."""
    from spacy_arbo_el.base.arrays import unit
    from spacy_arbo_el.kb.vectors import VectorRows

    rng = np.random.default_rng(0)
    centres = rng.standard_normal((max(count // 200, 1), width), dtype=np.float32)
    vectors = np.empty((count, width), dtype=np.float32)
    for first_row in range(0, count, 65536):
        part = vectors[first_row : first_row + 65536]
        part[:] = centres[rng.integers(len(centres), size=len(part))]
        part += 0.6 * rng.standard_normal(part.shape, dtype=np.float32)
    near = vectors[rng.integers(count, size=queries)]
    near = near + 0.3 * rng.standard_normal(near.shape, dtype=np.float32)
    return VectorRows(vectors, np.arange(count)), unit(near).astype(np.float32)


def _compare(
    rows: Any, queries: np.ndarray, similarity: Any, gold: np.ndarray | None
) -> None:
    print("| index | median ms a mention | times as fast | recall@100 |")
    print("|---|---:|---:|---:|")
    exact = None
    for name, index in _indexes(rows, similarity):
        index.search(queries[:4], K)
        seconds, found = [], []
        for query in queries:
            began = time.process_time()
            hits = index.search(query[None], K)
            seconds.append(time.process_time() - began)
            found.append(hits.ids[0])
        ids = np.stack(found)
        if exact is None:
            exact = ids, float(np.median(seconds))
        if gold is None:
            recall = np.mean(
                [len(np.intersect1d(a, b)) / K for a, b in zip(ids, exact[0])]
            )
        else:
            hits_gold = np.take_along_axis(gold, np.maximum(ids, 0), axis=1) & (
                ids >= 0
            )
            recall = hits_gold.any(axis=1).mean()
        median = float(np.median(seconds))
        print(
            f"| {name} | {1000 * median:.2f} | {exact[1] / median:.1f} | {recall:.4f} |",
            flush=True,
        )


def _indexes(rows: Any, similarity: Any) -> Iterator[tuple[str, Any]]:
    """The indexes that are compared, the exact one first. Each kind is built once."""
    from spacy_arbo_el.retrieval.index.exact import Flat
    from spacy_arbo_el.retrieval.index.faiss_index import FaissIndex

    yield "exact", Flat()(rows, similarity)
    lists = 1 << round(math.log2(2 * math.sqrt(len(rows))))
    hnsw = [
        FaissIndex("HNSW32", f"efSearch={count}", 2.0) for count in (96, 400, 1600)
    ]
    factory = f"IVF{lists},PQ{rows.width // 4}x4fs"
    ivf = [
        FaissIndex(factory, f"nprobe={max(lists // part, 1)}", rescore)
        for part, rescore in ((64, 4.0), (16, 4.0), (4, 4.0), (4, 16.0))
    ]
    for kind in (hnsw, ivf):
        attached = None
        for build in kind:
            index = build(rows, similarity, attached)
            attached = index.attached
            yield (
                f"{build.factory} {build.search}, {build.rescore:g} times rescored",
                index,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    for run, names in (
        (speed, ("ngrams", "transformer", "corpus")),
        (start, ("ngrams", "transformer", "corpus")),
        (search, ("model", "corpus")),
        (first, ("model", "corpus")),
    ):
        command = commands.add_parser(run.__name__)
        command.set_defaults(run=run)
        for name in names:
            command.add_argument(name, type=Path)
        command.add_argument("--rounds", type=int, default=3)
        command.add_argument(
            "--limit", type=int, default=0, help="documents; 0 for all"
        )
        command.add_argument("--queries", type=int, default=1000)
        command.add_argument(
            "--synthetic", type=int, default=0, help="vectors in clusters"
        )
        command.add_argument("--width", type=int, default=200, help="of these")
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
