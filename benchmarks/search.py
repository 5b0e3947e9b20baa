"""Exact search on a CPU: matrix products in torch and in NumPy, beside FAISS.

    python benchmarks/search.py [--vectors 40000] [--threads 1]

All three return the k nearest by inner product, of random unit vectors. Times are the best of some
rounds, in which the three alternate.
"""

import argparse
import time
from typing import Callable, Dict, List

import faiss
import numpy as np
import torch
from threadpoolctl import threadpool_limits

from spacy_arbo_el.arrays import unit
from spacy_arbo_el.retrieval.index import exact


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vectors", type=int, default=40_000)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--queries", type=int, nargs="*", default=[1, 8, 64, 300, 1000])
    parser.add_argument("--k", type=int, default=80)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    faiss.omp_set_num_threads(options.threads)
    # Matrix products for any number of queries, which is faster than FAISS's default.
    faiss.cvar.distance_compute_blas_threshold = 1
    random = np.random.default_rng(0)
    vectors = unit(random.standard_normal((options.vectors, options.width), dtype=np.float32))
    print(f"{options.vectors} vectors of width {options.width}, {options.threads} threads, ms\n")
    print("| queries | torch | NumPy | FAISS | FAISS / torch | FAISS / NumPy |")
    print("|---:|---:|---:|---:|---:|---:|")
    with threadpool_limits(options.threads):
        for count in options.queries:
            queries = unit(random.standard_normal((count, options.width), dtype=np.float32))
            best = times(queries, vectors, options.k, options.rounds)
            ratios = [best["FAISS"] / best[name] for name in ("torch", "NumPy")]
            cells = [f"{1000 * seconds:.1f}" for seconds in best.values()]
            cells += [f"{ratio:.1f}" for ratio in ratios]
            print(f"| {count} | " + " | ".join(cells) + " |", flush=True)


def times(queries: np.ndarray, vectors: np.ndarray, k: int, rounds: int) -> Dict[str, float]:
    """The best time of each way, in seconds."""
    on_device = torch.from_numpy(vectors)
    ways: Dict[str, Callable] = {
        "torch": lambda: exact.nearest(queries, on_device, k, "ip"),
        "NumPy": lambda: exact.nearest_in_numpy(queries, vectors, k, "ip"),
        "FAISS": lambda: faiss.knn(queries, vectors, k, metric=faiss.METRIC_INNER_PRODUCT),
    }
    seconds: Dict[str, List[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            began = time.perf_counter()
            way()
            seconds[name].append(time.perf_counter() - began)
    return {name: min(values) for name, values in seconds.items()}


if __name__ == "__main__":
    main()
