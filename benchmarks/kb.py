"""Opening, searching, editing and importing a knowledge base of millions of entities.

    python benchmarks/kb.py [--entities 2300000] [--folder FOLDER] [--only open,search,…]

Vectors are synthetic and 384 wide. There is a topic for 2,000 entities and a cluster for 200, and
each vector is the centre of its cluster plus noise. Each measurement runs in a separate process,
with two threads for FAISS and torch. It is compared with raw FAISS, or with a small knowledge base
in the same run. The large knowledge base is built once into FOLDER and then reused.
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import torch
from memory import peak_megabytes, resident_megabytes
from spacy.vocab import Vocab

from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.folder import KB_FOLDER, LOCK
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.kb.loaders import build as build_kb
from spacy_arbo_el.kb.loaders import load_kb
from spacy_arbo_el.retrieval.entity_strings import EntityStrings
from spacy_arbo_el.retrieval.exemplars import ExemplarStore
from spacy_arbo_el.retrieval.index.exact import FlatIndex
from spacy_arbo_el.retrieval.index.faiss_index import FaissIndex
from spacy_arbo_el.retrieval.retriever import EntitySearch
from spacy_arbo_el.retrieval.similarity import Cosine
from spacy_arbo_el.storage.folders import replacing_folder

WIDTH, TOPIC, CLUSTER = 384, 2000, 200
K = 64
WORDS = [
    f"{a}{b}{c}"
    for a in ("ka", "re", "mon", "ti")
    for b in "aeiou"
    for c in ("n", "st", "l")
]


class Synthetic:
    """Vectors of entities by their numbers. The same arguments give the same vectors."""

    def __init__(self, entities: int):
        self.clusters = max(entities // CLUSTER, 1)
        rng = np.random.default_rng(0)
        topics = rng.standard_normal(
            (max(entities // TOPIC, 1), WIDTH), dtype=np.float32
        )
        self.centres = np.repeat(topics, -(-self.clusters // len(topics)), 0)[
            : self.clusters
        ]
        self.centres += 0.7 * rng.standard_normal(self.centres.shape, dtype=np.float32)

    def vectors(self, numbers: np.ndarray, seed: int) -> np.ndarray:
        noise = np.random.default_rng(seed).standard_normal(
            (len(numbers), WIDTH), dtype=np.float32
        )
        return self.centres[numbers % self.clusters] + 0.7 * noise

    def encode(self, texts: list[tuple[str, str]]) -> np.ndarray:
        numbers = np.array([int(title.rsplit(" ", 1)[1]) for title, _ in texts])
        return self.vectors(numbers, int(numbers[0]))

    def queries(self, count: int) -> np.ndarray:
        numbers = np.random.default_rng(1).integers(0, self.clusters, count)
        return Cosine().prepare(self.vectors(numbers, 2))


def entity(i: int, prefix: str = "Q") -> Entity:
    words = [WORDS[i // 60**n % 60] for n in range(4)]
    title = f"{words[0]}{words[1]} {words[2]} {i}"
    return Entity(
        f"{prefix}{i}",
        title,
        f"A thing of the kind {words[3]}, known for {words[1]} and {words[2]}.",
        (f"{words[2]} {words[3]} {i}",),
        (("Disease", "Chemical", "Gene")[i % 3],),
        float(i % 7),
    )


@dataclass(frozen=True)
class TitleOnly:
    """A verbalization with an identity, so that texts lie beside their vectors, as the linker's."""

    def __call__(self, entity: Entity) -> list[tuple[str, str]]:
        return [(entity.title, "")]


def timed(function: Callable, *args: Any) -> tuple[float, Any]:
    """Seconds and result of a call."""
    start = time.perf_counter()
    result = function(*args)
    return time.perf_counter() - start, result


def lists(count: int, n_probes: int = 32, rescore: float = 4.0) -> FaissIndex:
    """Inverted lists, about twice the square root of the number of entities, and 4-bit codes."""
    n_lists = 1 << round(math.log2(2 * math.sqrt(count)))
    return FaissIndex(
        f"IVF{n_lists},PQ{WIDTH // 4}x4fs", f"nprobe={n_probes}", rescore
    )


def create(path: Path, count: int) -> dict:
    """Build a knowledge base with float16 vectors and a quantised index."""
    synthetic = Synthetic(count)
    start = time.perf_counter()
    with replacing_folder(path, KB_FOLDER) as folder:
        with ArboKB.create(folder, dtype="float16") as kb:
            with kb.database.bulk_loading():
                kb.add(map(entity, range(count)))
            added = time.perf_counter()
            kb.encode_missing(TitleOnly(), synthetic.encode, "synthetic")
            encoded = time.perf_counter()
            index = lists(count)(kb.rows, Cosine())
            indexed = time.perf_counter()
            if index.attached:
                kb.vectors.keep_index(index.attached)
        (folder / LOCK).unlink(missing_ok=True)
    size = sum(file.stat().st_size for file in path.iterdir())
    return {
        "add": added - start,
        "sync": encoded - added,
        "index": indexed - encoded,
        "bytes per entity": size / count,
    }


def opened(path: Path, count: int) -> ArboKB:
    """The knowledge base with its stored vectors, none of which is encoded again."""
    kb = ArboKB.for_reading(path)
    kb.encode_missing(TitleOnly(), Synthetic(count).encode, "synthetic")
    return kb


def opening(path: Path, count: int) -> dict:
    before = resident_megabytes()
    seconds, kb = timed(ArboKB.for_reading, path)
    first, _ = timed(kb.get, f"Q{count // 2}")
    size = resident_megabytes() - before
    located, kb = timed(opened, path, count)
    return {
        "seconds": seconds,
        "first entity": first,
        "MB": size,
        "with vectors s": located,
        "with vectors MB": resident_megabytes() - before,
    }


def searching(
    path: Path, count: int, queries: int, n_probes: int, rescore: float
) -> dict:
    """Approximate search for entities, as the linker does it."""
    kb = opened(path, count)
    index = lists(count, n_probes, rescore)(kb.rows, Cosine(), kb.vectors.index)
    search = EntitySearch(kb.rows, index, Cosine())
    vectors = Synthetic(count).queries(queries)
    rounds = [timed(search.nearest, vectors, K) for _ in range(3)]
    seconds, nearest = min(rounds, key=lambda result: result[0])
    single = [
        timed(search.nearest, vectors[i : i + 1], K)[0]
        for i in range(min(queries, 200))
    ]
    np.save(path.with_suffix(".approximate.npy"), nearest.ids)
    return {
        "batch ms per query": 1000 * seconds / queries,
        "single median ms": 1000 * statistics.median(single),
        "resident MB": resident_megabytes(),
        "peak MB": peak_megabytes(),
    }


def exact(path: Path, count: int, queries: int) -> dict:
    """Exact search over the same vectors in float32, by raw FAISS and by ``FlatIndex``."""
    kb = opened(path, count)
    prepared = kb.rows.array()
    prepared /= np.linalg.norm(prepared, axis=1, keepdims=True)
    vectors = Synthetic(count).queries(queries)
    flat = FlatIndex(prepared, Cosine())
    rounds = []
    for _ in range(3):
        seconds, (_, rows) = timed(
            faiss.knn, vectors, prepared, K, faiss.METRIC_INNER_PRODUCT
        )
        rounds.append((seconds, timed(flat.search, vectors, K)[0]))
    np.save(path.with_suffix(".exact.npy"), kb.rows.owners[rows])
    best = [min(column) for column in zip(*rounds)]
    return {
        "raw ms per query": 1000 * best[0] / queries,
        "ratio of FlatIndex": best[1] / best[0],
    }


def comparing(
    path: Path, count: int, mentions: int = 300, candidates: int = 24
) -> dict:
    """Compare the strings of mentions with those of their candidates, as ``FeatureRanker`` does."""
    vocab = Vocab()
    kb = load_kb(path, vocab)
    before = peak_megabytes()
    read_seconds, strings = timed(EntityStrings, kb, ExemplarStore(), None)
    rng, seconds = np.random.default_rng(0), []
    for _ in range(5):
        entities = rng.integers(count, size=(mentions, candidates))
        titles = [entity(i).title for i in entities[:, 0].tolist()]
        seconds.append(timed(strings.similarity, titles, entities)[0])
    known = timed(strings.similarity, titles, entities)[0]
    return {
        "at first s": read_seconds,
        "batch of new candidates s": min(seconds),
        "batch of known ones s": known,
        "additional peak MB": peak_megabytes() - before,
    }


def adding(path: Path, count: int) -> dict:
    """Add 1,000 entities five times, each time in one transaction on disk; then remove them."""
    with ArboKB.open(path) as kb:
        seconds = []
        for batch in range(5):
            numbers = range(batch * 1000, batch * 1000 + 1000)
            entities = [entity(i, "new") for i in numbers]
            seconds.append(timed(kb.add, entities)[0])
        kb.remove([f"new{i}" for i in range(5000)])
    return {"median seconds": statistics.median(seconds), "all": seconds}


def importing(path: Path, count: int) -> dict:
    source = path.with_suffix(".jsonl")
    with source.open("w", encoding="utf8") as file:
        for i in range(count):
            file.write(json.dumps(entity(i).to_dict()) + "\n")
    before = peak_megabytes()
    seconds, _ = timed(partial(build_kb, overwrite=True), path, source)
    source.unlink()
    return {
        "entities per second": count / seconds,
        "additional peak MB": peak_megabytes() - before,
    }


STEPS: dict[str, Callable[..., dict]] = {
    "create": create,
    "open": opening,
    "search": searching,
    "exact": exact,
    "strings": comparing,
    "add": adding,
    "import": importing,
}


def run(step: str, *values: Any) -> dict:
    """Run a step in a separate process."""
    command = [
        sys.executable,
        __file__,
        "--step",
        step,
        "--values",
        json.dumps(values),
    ]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(output.splitlines()[-1])


def show(name: str, values: dict) -> None:
    numbers = {
        key: value for key, value in values.items() if isinstance(value, (int, float))
    }
    cells = (f"{key} {value:.4g}" for key, value in numbers.items())
    print(f"{name:30s} {', '.join(cells)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entities", type=int, default=2_300_000)
    parser.add_argument("--imported", type=int, default=500_000)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()) / "arbo-kb"
    )
    parser.add_argument("--only", default="open,search,exact,strings,add,import")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    parser.add_argument("--values", help=argparse.SUPPRESS)
    options = parser.parse_args()
    faiss.omp_set_num_threads(2)
    torch.set_num_threads(2)
    if options.step:
        values = json.loads(options.values)
        print(json.dumps(STEPS[options.step](Path(values[0]), *values[1:])))
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    count, wanted = options.entities, options.only.split(",")
    large, small = (
        options.folder / f"kb-{count}",
        options.folder / f"kb-{count // 100}",
    )
    for path, size in ((large, count), (small, count // 100)):
        if not path.exists():
            show(f"build of {size:,}", run("create", str(path), size))
    if "open" in wanted:
        show("open", run("open", str(large), count))
    if "exact" in wanted:
        exact_result = run("exact", str(large), count, options.queries)
        show("exact search", exact_result)
    if "search" in wanted:
        expected = np.load(large.with_suffix(".exact.npy"))
        for n_probes, factor in ((16, 2), (16, 3), (32, 3), (32, 4), (128, 4)):
            result = run(
                "search", str(large), count, options.queries, n_probes, factor
            )
            nearest = np.load(large.with_suffix(".approximate.npy"))
            pairs = zip(nearest.tolist(), expected.tolist())
            result["recall@64"] = statistics.mean(
                len({*a} & {*b}) / K for a, b in pairs
            )
            if "exact" in wanted:
                result["times exact"] = (
                    exact_result["raw ms per query"] / result["batch ms per query"]
                )
            show(
                f"{lists(count, n_probes).factory}, {n_probes} probes, rescore {factor}",
                result,
            )
    if "strings" in wanted:
        for path, size in ((small, count // 100), (large, count)):
            show(f"strings of {size:,}", run("strings", str(path), size))
    if "add" in wanted:
        few, many = (run("add", str(path), 0) for path in (small, large))
        show(f"add 1,000 to {count // 100:,}", few)
        show(f"add 1,000 to {count:,}", {**many, "ratio": _ratio(many, few)})
    if "import" in wanted:
        for size in (options.imported // 10, options.imported):
            show(
                f"import of {size:,}",
                run("import", str(options.folder / "imported"), size),
            )


def _ratio(many: dict, few: dict) -> float:
    return many["median seconds"] / few["median seconds"]


if __name__ == "__main__":
    main()
