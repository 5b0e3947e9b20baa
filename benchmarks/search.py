"""Exact search on a CPU, and FAISS's indexes on the vectors that they are to search.

    python benchmarks/search.py exact [--vectors 40000] [--threads 1]
    python benchmarks/search.py index kb -i "IVF1024,SQ8 nprobe=16" --model MODEL --corpus DEV
    python benchmarks/search.py index --exemplars --model MODEL -i "HNSW32 efSearch=96"

``exact``: matrix products in torch, in NumPy, and FAISS return the k nearest by inner product, of
random unit vectors. Times are the best of some rounds, in which the three alternate.

``index``: indexes over a knowledge base, or over a pipeline's exemplars. Queries are some of these
vectors, or with --model and --corpus those of mentions. Times are per query, in a batch of all.
Give indexes with the same factory string one after the other: it is built once.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import faiss
import numpy as np
import torch
from threadpoolctl import threadpool_limits

from spacy_arbo_el.base.arrays import TopK, unit
from spacy_arbo_el.cli.arguments import load_linker
from spacy_arbo_el.corpora.docbin import read_docs
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.kb.vectors import VectorRows
from spacy_arbo_el.linker import ArboLinker
from spacy_arbo_el.retrieval.index import exact
from spacy_arbo_el.retrieval.index.approximate import ApproximateIndex
from spacy_arbo_el.retrieval.index.exact import FlatIndex
from spacy_arbo_el.retrieval.index.faiss_index import FaissIndex
from spacy_arbo_el.retrieval.index.protocol import Index
from spacy_arbo_el.retrieval.similarity import Cosine, Similarity


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    modes = parser.add_subparsers(required=True)
    mode = modes.add_parser("exact")
    mode.add_argument("--vectors", type=int, default=40_000)
    mode.add_argument("--width", type=int, default=384)
    mode.add_argument("--queries", type=int, nargs="*", default=[1, 8, 64, 300, 1000])
    mode.add_argument("--k", type=int, default=80)
    mode.add_argument("--threads", type=int, default=1)
    mode.add_argument("--rounds", type=int, default=5)
    mode.set_defaults(run=compare_exact)
    mode = modes.add_parser("index")
    mode.add_argument(
        "kb", type=Path, nargs="?", help="folder of a knowledge base with vectors"
    )
    mode.add_argument(
        "--index", "-i", action="append", required=True, help="factory and search"
    )
    mode.add_argument("--rescore", type=float, default=4.0)
    mode.add_argument("--model", type=Path, help="pipeline whose similarity is used")
    mode.add_argument(
        "--corpus", type=Path, help=".spacy file whose mentions are the queries"
    )
    mode.add_argument(
        "--exemplars", action="store_true", help="those of --model are searched"
    )
    mode.add_argument("--queries", type=int, default=500)
    mode.set_defaults(run=compare_indexes)
    options = parser.parse_args()
    options.run(options)


def compare_exact(options: argparse.Namespace) -> None:
    torch.set_num_threads(options.threads)
    faiss.omp_set_num_threads(options.threads)
    # Matrix products for any number of queries, which is faster than FAISS's default.
    faiss.cvar.distance_compute_blas_threshold = 1
    random = np.random.default_rng(0)
    vectors = unit(
        random.standard_normal((options.vectors, options.width), dtype=np.float32)
    )
    print(
        f"{options.vectors} vectors of width {options.width}, {options.threads} threads, ms\n"
    )
    print("| queries | torch | FAISS | FAISS / torch |")
    print("|---:|---:|---:|---:|")
    with threadpool_limits(options.threads):
        for count in options.queries:
            queries = unit(
                random.standard_normal((count, options.width), dtype=np.float32)
            )
            best = times(queries, vectors, options.k, options.rounds)
            cells = [f"{1000 * seconds:.1f}" for seconds in best.values()]
            cells.append(f"{best['FAISS'] / best['torch']:.1f}")
            print(f"| {count} | " + " | ".join(cells) + " |", flush=True)


def times(
    queries: np.ndarray, vectors: np.ndarray, k: int, rounds: int
) -> dict[str, float]:
    """The best time of each way, in seconds."""
    on_device = torch.from_numpy(vectors)
    ways: dict[str, Callable] = {
        "torch": lambda: exact.nearest(queries, on_device, k, "ip"),
        "FAISS": lambda: faiss.knn(
            queries, vectors, k, metric=faiss.METRIC_INNER_PRODUCT
        ),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            began = time.perf_counter()
            way()
            seconds[name].append(time.perf_counter() - began)
    return {name: min(values) for name, values in seconds.items()}


def compare_indexes(options: argparse.Namespace) -> None:
    linker = load_linker(options.model) if options.model else None
    similarity = linker.similarity if linker else Cosine()
    if options.exemplars:
        assert linker is not None, "--exemplars needs --model"
        with linker.datastore.snapshot() as snapshot:
            numbers = snapshot.retriever.exemplar_rows
            rows = VectorRows(linker.datastore.exemplars.vectors[numbers], numbers)
        usable = np.ones(len(rows), dtype=bool)
    else:
        kb = ArboKB.for_reading(options.kb)
        rows, usable = kb.rows, kb.rows.owners >= 0
    searched = np.flatnonzero(usable)
    some = np.linspace(
        0, len(searched) - 1, min(options.queries, len(searched))
    ).astype(int)
    queries = similarity.prepare(rows.take(searched[some]))
    if linker is not None and options.corpus:
        queries = mention_vectors(linker, options.corpus, options.queries)
    builders = []
    for strings in options.index:
        factory, _, search = strings.partition(" ")
        builders.append(FaissIndex(factory, search.strip(), options.rescore))
    print("| index | recall@1 | recall@64 | ms | × exact | build s | MB |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for one in measure(rows, similarity, queries, builders, usable=usable):
        size = len(faiss.serialize_index(one.index.index))
        print(
            f"| {one.builder.factory} {one.builder.search} | {one.recall[1]:.4f} "
            f"| {one.recall[64]:.4f} | {one.milliseconds:.3f} | {one.speedup:.1f} "
            f"| {one.build_seconds:.1f} | {size / 1e6:.1f} |",
            flush=True,
        )


def mention_vectors(linker: ArboLinker, corpus: Path, count: int) -> np.ndarray:
    """Vectors of the first mentions of a corpus, prepared."""
    batch = linker.reader.read_docs(islice(read_docs(corpus, linker.vocab), count))
    return linker.stages.encode(batch.take(np.arange(min(count, len(batch))))).encoded


@dataclass(frozen=True)
class Measurement:
    """Costs and recall of an index.

    builder: What built it.
    recall: The share of the true k nearest rows that it returns, for several k.
    milliseconds: The time of a query, in a batch of all.
    speedup: How many times faster than exact search it is.
    build_seconds: How long it took to build; 0 where it is the same index as the one before it.
    index: The index itself.
    """

    builder: FaissIndex
    recall: dict[int, float]
    milliseconds: float
    speedup: float
    build_seconds: float
    index: ApproximateIndex


def measure(
    rows: VectorRows,
    similarity: Similarity,
    queries: np.ndarray,
    builders: Sequence[FaissIndex],
    counts: Sequence[int] = (1, 64),
    usable: np.ndarray | None = None,
) -> Iterator[Measurement]:
    """Build and search indexes one after the other. Those that would be exact are left out.

    queries: (m, width) float32, prepared.
    builders: Those that search the same index come one after the other.
    counts: The numbers of nearest rows that recall is measured for.
    usable: (rows,) bool, those that may be returned; None for all.
    """
    flat = FlatIndex(similarity.prepare(rows.array()), similarity)
    k = min(max(counts), len(rows))
    exact_seconds, exact = _timed(flat, queries, k, usable)
    attached = None
    for builder in builders:
        start = time.perf_counter()
        index = builder(rows, similarity, attached)
        build_seconds = time.perf_counter() - start
        if not isinstance(index, ApproximateIndex):
            continue
        is_same = attached is not None and attached.about == getattr(
            index.attached, "about", None
        )
        attached = index.attached
        seconds, nearest = _timed(index, queries, k, usable)
        yield Measurement(
            builder,
            {
                count: _recall(nearest.first(count), exact.first(count))
                for count in counts
            },
            1000 * seconds / len(queries),
            exact_seconds / seconds,
            0.0 if is_same else build_seconds,
            index,
        )


def _timed(
    index: Index, queries: np.ndarray, k: int, usable: np.ndarray | None
) -> tuple[float, TopK]:
    index.search(queries[:8], k, usable)
    start = time.perf_counter()
    nearest = index.search(queries, k, usable)
    return time.perf_counter() - start, nearest


def _recall(nearest: TopK, exact: TopK) -> float:
    return float(
        (nearest.columns_of(exact.ids) >= 0).sum() / max(exact.valid.sum(), 1)
    )


if __name__ == "__main__":
    main()
