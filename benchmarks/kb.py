"""A knowledge base of millions: opening, searching, editing, importing.

    python benchmarks/kb.py [--entities 2300000] [--folder FOLDER] [--only open,search,…]

Vectors are synthetic, 384 wide: topics of 2,000 entities, in each ten clusters of 200, every
vector its cluster's centre and noise. Each measurement runs in a process of its own, with FAISS and
torch on two threads, and compares with raw FAISS or with a small knowledge base in the same run.
The large one is built once into FOLDER and used again.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable, Dict, List, Tuple

import faiss
import numpy as np
import torch

from spacy_arbo_el.io import replacing_folder
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.folder import LOCK
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.kb.loaders import build as build_kb
from spacy_arbo_el.retrieval.entities import EntitySearch
from spacy_arbo_el.retrieval.index import FlatIndex
from spacy_arbo_el.retrieval.kinds import ivf
from spacy_arbo_el.retrieval.similarity import cosine

WIDTH, TOPIC, CLUSTER = 384, 2000, 200
K = 64
WORDS = [f"{a}{b}{c}" for a in ("ka", "re", "mon", "ti") for b in "aeiou" for c in ("n", "st", "l")]


class Synthetic:
    """Vectors by entity's number, always the same."""

    def __init__(self, entities: int):
        self.clusters = max(entities // CLUSTER, 1)
        rng = np.random.default_rng(0)
        topics = rng.standard_normal((max(entities // TOPIC, 1), WIDTH), dtype=np.float32)
        self.centres = np.repeat(topics, -(-self.clusters // len(topics)), 0)[: self.clusters]
        self.centres += 0.7 * rng.standard_normal(self.centres.shape, dtype=np.float32)

    def vectors(self, numbers: np.ndarray, seed: int) -> np.ndarray:
        noise = np.random.default_rng(seed).standard_normal((len(numbers), WIDTH), dtype=np.float32)
        return self.centres[numbers % self.clusters] + 0.7 * noise

    def encode(self, texts: List[Tuple[str, str]]) -> np.ndarray:
        numbers = np.array([int(title.rsplit(" ", 1)[1]) for title, _ in texts])
        return self.vectors(numbers, int(numbers[0]))

    def queries(self, count: int) -> np.ndarray:
        numbers = np.random.default_rng(1).integers(0, self.clusters, count)
        return cosine().prepare(self.vectors(numbers, 2))


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


def title_only(known: Entity) -> List[Tuple[str, str]]:
    return [(known.title, "")]


def megabytes() -> float:
    with open("/proc/self/status", encoding="utf8") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1e3


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def timed(function: Callable, *args) -> Tuple[float, object]:
    start = time.perf_counter()
    result = function(*args)
    return time.perf_counter() - start, result


def create(path: Path, count: int) -> Dict:
    """Build a knowledge base with float16 vectors and a quantised index."""
    synthetic = Synthetic(count)
    start = time.perf_counter()
    with replacing_folder(path) as folder:
        with ArboKB.create(folder, dtype="float16") as kb:
            with kb.database.hurrying():
                kb.add(map(entity, range(count)))
            added = time.perf_counter()
            kb.sync(title_only, synthetic.encode, "synthetic")
            encoded = time.perf_counter()
            index = ivf()(kb.rows, cosine())
            indexed = time.perf_counter()
            if index.attached:
                kb.keep_index(index.attached)
        (folder / LOCK).unlink(missing_ok=True)
    size = sum(file.stat().st_size for file in path.iterdir())
    return {
        "add": added - start,
        "sync": encoded - added,
        "index": indexed - encoded,
        "bytes an entity": size / count,
    }


def opening(path: Path, count: int) -> Dict:
    before = megabytes()
    seconds, kb = timed(ArboKB.for_reading, path)
    first, _ = timed(kb.get, f"Q{count // 2}")
    return {"seconds": seconds, "first entity": first, "MB": megabytes() - before}


def searching(path: Path, count: int, queries: int, probes: int, refine: float) -> Dict:
    """Approximate search through the entity search, as the linker does."""
    kb = ArboKB.for_reading(path)
    index = ivf(probes=probes, refine=refine)(kb.rows, cosine(), kb.index)
    search = EntitySearch(kb.rows, kb.owners(), index, cosine())
    vectors = Synthetic(count).queries(queries)
    rounds = [timed(search.nearest, vectors, K) for _ in range(3)]
    seconds, (found, _) = min(rounds, key=lambda result: result[0])
    single = [timed(search.nearest, vectors[i : i + 1], K)[0] for i in range(min(queries, 200))]
    np.save(path.with_suffix(".found.npy"), found)
    return {
        "batch ms a query": 1000 * seconds / queries,
        "single median ms": 1000 * statistics.median(single),
        "resident MB": megabytes(),
        "peak MB": peak(),
    }


def exact(path: Path, count: int, queries: int) -> Dict:
    """Raw FAISS over the same vectors in float32, and ours over them."""
    kb = ArboKB.for_reading(path)
    prepared = kb.rows.array()
    prepared /= np.linalg.norm(prepared, axis=1, keepdims=True)
    vectors = Synthetic(count).queries(queries)
    flat = FlatIndex(prepared, cosine())
    rounds = []
    for _ in range(3):
        seconds, (_, found) = timed(faiss.knn, vectors, prepared, K, faiss.METRIC_INNER_PRODUCT)
        rounds.append((seconds, timed(flat.search, vectors, K)[0]))
    np.save(path.with_suffix(".exact.npy"), kb.rows.owners[found])
    best = [min(column) for column in zip(*rounds)]
    return {"raw ms a query": 1000 * best[0] / queries, "ratio of ours": best[1] / best[0]}


def adding(path: Path, count: int) -> Dict:
    """1,000 entities more, five times, each one transaction on disk; then out again."""
    with ArboKB.open(path) as kb:
        seconds = []
        for batch in range(5):
            numbers = range(batch * 1000, batch * 1000 + 1000)
            entities = [entity(i, "new") for i in numbers]
            seconds.append(timed(kb.add, entities)[0])
        kb.remove([f"new{i}" for i in range(5000)])
    return {"median seconds": statistics.median(seconds), "all": seconds}


def importing(path: Path, count: int) -> Dict:
    source = path.with_suffix(".jsonl")
    with source.open("w", encoding="utf8") as file:
        for i in range(count):
            file.write(json.dumps(entity(i).to_dict()) + "\n")
    before = peak()
    seconds, _ = timed(build_kb, path, source)
    source.unlink()
    return {"entities a second": count / seconds, "MB more at the peak": peak() - before}


STEPS: Dict[str, Callable[..., Dict]] = {
    "create": create,
    "open": opening,
    "search": searching,
    "exact": exact,
    "add": adding,
    "import": importing,
}


def run(step: str, *values) -> Dict:
    """A step in a process of its own."""
    command = [sys.executable, __file__, "--step", step, "--values", json.dumps(values)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(output.splitlines()[-1])


def shown(name: str, values: Dict) -> None:
    numbers = {key: value for key, value in values.items() if isinstance(value, (int, float))}
    cells = (f"{key} {value:.4g}" for key, value in numbers.items())
    print(f"{name:30s} {', '.join(cells)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entities", type=int, default=2_300_000)
    parser.add_argument("--imported", type=int, default=500_000)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "arbo-kb")
    parser.add_argument("--only", default="open,search,exact,add,import")
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
    large, small = options.folder / f"kb-{count}", options.folder / f"kb-{count // 100}"
    for path, size in ((large, count), (small, count // 100)):
        if not path.exists():
            shown(f"build of {size:,}", run("create", str(path), size))
    if "open" in wanted:
        shown("open", run("open", str(large), count))
    if "exact" in wanted:
        exactly = run("exact", str(large), count, options.queries)
        shown("exact search", exactly)
    if "search" in wanted:
        right = np.load(large.with_suffix(".exact.npy"))
        for probes, refine in ((16, 2), (16, 3), (32, 3), (32, 4), (128, 4)):
            result = run("search", str(large), count, options.queries, probes, refine)
            found = np.load(large.with_suffix(".found.npy"))
            pairs = zip(found.tolist(), right.tolist())
            result["recall@64"] = statistics.mean(len({*a} & {*b}) / K for a, b in pairs)
            if "exact" in wanted:
                result["times exact"] = exactly["raw ms a query"] / result["batch ms a query"]
            shown(f"IVF pq4, {probes} probes, {refine} refined", result)
    if "add" in wanted:
        few, many = (run("add", str(path), 0) for path in (small, large))
        shown(f"1,000 more to {count // 100:,}", few)
        shown(f"1,000 more to {count:,}", {**many, "ratio": _ratio(many, few)})
    if "import" in wanted:
        for size in (options.imported // 10, options.imported):
            shown(f"import of {size:,}", run("import", str(options.folder / "imported"), size))


def _ratio(many: Dict, few: Dict) -> float:
    return many["median seconds"] / few["median seconds"]


if __name__ == "__main__":
    main()
