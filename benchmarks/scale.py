"""Linking in shards, by one process and by workers of Ray: the same links, speed, faults, memory.

    python benchmarks/scale.py speed MODEL CORPUS
    python benchmarks/scale.py same MODEL CORPUS [--workers 1 2 4] [--one-graph] [--threshold 0.5]
    python benchmarks/scale.py faults MODEL CORPUS
    python benchmarks/scale.py memory MODEL CORPUS [--mentions 1000 10000 100000] [--threshold 0.5]

``speed`` links a corpus by ``nlp.pipe`` with one process and with two, and by one worker of Ray and
two, in one run. ``same`` compares the rows of links with those of one process. ``faults`` runs a
cluster of several Ray nodes on this machine, and kills one of them; then it kills the driver, and
starts it again. ``memory`` measures the steps of one graph on copies of a corpus's mentions.
"""

import argparse
import operator
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import spacy

from spacy_arbo_el import find_linker, load_pipeline
from spacy_arbo_el.contrib.scale.corpus_files import part_to_bytes
from spacy_arbo_el.contrib.scale.job import Job
from spacy_arbo_el.contrib.scale.map_files import SHARDS
from spacy_arbo_el.contrib.scale.on_ray import RaySettings
from spacy_arbo_el.contrib.scale.one_graph import (
    DECIDED,
    NEIGHBOURS,
    NEW_ENTITIES,
    REDUCED,
    SearchWorker,
    arrange_mentions,
    mentions_file,
    reduce_mentions,
    reduce_shards,
)
from spacy_arbo_el.contrib.scale.runs import link_in_shards
from spacy_arbo_el.contrib.scale.shards import Shard, read_shards, write_shards
from spacy_arbo_el.corpora.read import read_documents
from spacy_arbo_el.discovery.new_entities import NewEntities
from spacy_arbo_el.records.lines import Lines
from spacy_arbo_el.show.frames import rows_of
from spacy_arbo_el.storage.files import write_file


def rows_in(job: Job) -> list[dict[str, Any]]:
    """All rows of links, in the order of documents and mentions."""
    return ordered(pq.read_table(job.folder / "links").to_pylist())


def ordered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(
        rows, key=lambda row: (row["document"], row["start"], row["end"], row["label"])
    )


def by_pipe(model: Path, corpus: Path, n_process: int) -> list[dict[str, Any]]:
    """The rows of links of ``nlp.pipe``."""
    nlp = load_pipeline(model)
    linker = find_linker(nlp)
    docs = nlp.pipe(read_documents(corpus, nlp), n_process=n_process)
    return ordered(
        list(rows_of(docs, linker.mentions.getter, linker.cfg["extension"]))
    )


class Processes:
    """Processor time and peak memory of all processes that this one starts, while a block runs.

    seconds: Processor time, of all of them together. What a process uses in the last fifth of a
        second before it ends is missing.
    peaks: The most memory that each has held, in MiB, by the number of the process. Pages of files
        that are mapped are left out: the system takes them back where it needs memory.
    """

    def __enter__(self) -> "Processes":
        self._ticks: dict[int, int] = {}
        self.peaks: dict[int, float] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self._ended.set()
        self._thread.join()
        self.seconds = sum(self._ticks.values()) / os.sysconf("SC_CLK_TCK")

    def _watch(self) -> None:
        while not self._ended.wait(0.2):
            self._sample()

    def _sample(self) -> None:
        """Note what each process has used so far."""
        parents, ticks = {}, {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                values = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            pid = int(folder.name)
            parents[pid], ticks[pid] = (
                int(values[1]),
                int(values[11]) + int(values[12]),
            )
        for pid in parents:
            ancestor = pid
            while ancestor not in (0, os.getpid()):
                ancestor = parents.get(ancestor, 0)
            if ancestor == os.getpid() != pid:
                self._ticks[pid] = ticks[pid]
                self.peaks[pid] = max(self.peaks.get(pid, 0.0), own_memory(pid))


def own_memory(pid: int) -> float:
    """The memory of a process without pages of files, in MiB; 0 where it has ended."""
    try:
        _, resident, shared, *_ = Path(f"/proc/{pid}/statm").read_text().split()
    except (OSError, ValueError):
        return 0.0
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE") / 2**20


def speed(model: Path, corpus: Path) -> None:
    """Documents a second of the ways to link a corpus, from start to end, loading included.

    Each way has a separate process, since workers of Ray are new processes too.
    """
    count = sum(1 for _ in read_documents(corpus, spacy.blank("en")))
    print(f"{count} documents, {os.cpu_count()} CPUs", flush=True)
    wall, busy = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for name in WAYS:
            command = [
                sys.executable,
                __file__,
                "way",
                model,
                corpus,
                Path(folder, name),
                name,
            ]
            start, load = time.perf_counter(), os.getloadavg()[0]
            with Processes() as processes:
                subprocess.run(
                    list(map(str, command)),
                    check=True,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            wall[name], busy[name] = time.perf_counter() - start, processes.seconds
            print(
                f"{name}: {wall[name]:.1f} s, {count / wall[name]:.2f} documents a second; "
                f"{busy[name]:.1f} s of processor time; load of the machine before: {load:.1f}",
                flush=True,
            )
    for this, other in (
        ("Ray, 1 worker", "nlp.pipe"),
        ("Ray, 2 workers", "Ray, 1 worker"),
        ("Ray, 2 workers", "nlp.pipe(n_process=2)"),
    ):
        print(
            f"{this} / {other}: {wall[other] / wall[this]:.2f} times as fast, "
            f"{busy[this] / busy[other]:.3f} of the processor time"
        )


def by_ray(model: Path, corpus: Path, output: Path, workers: int) -> None:
    """Link a corpus in shards by workers of Ray."""
    for _ in link_in_shards(
        Job.of(model, corpus, output), ray=RaySettings(workers=workers)
    ):
        pass


# The ways to link a corpus that ``speed`` compares.
WAYS: dict[str, Callable[[Path, Path, Path], Any]] = {
    "nlp.pipe": lambda model, corpus, output: by_pipe(model, corpus, 1),
    "Ray, 1 worker": lambda *paths: by_ray(*paths, workers=1),
    "nlp.pipe(n_process=2)": lambda model, corpus, output: by_pipe(model, corpus, 2),
    "Ray, 2 workers": lambda *paths: by_ray(*paths, workers=2),
}


def way(model: Path, corpus: Path, output: Path, name: str) -> None:
    """One of the ways that ``speed`` compares."""
    WAYS[name](model, corpus, output)


def compare(
    name: str, found: list[dict[str, Any]], expected: list[dict[str, Any]]
) -> None:
    """Print whether rows of links are the same."""
    same = sum(map(operator.eq, found, expected))
    verdict = "the same" if found == expected else "NOT the same"
    print(
        f"{name}: {len(found)} rows, {same} of {len(expected)} equal: {verdict}",
        flush=True,
    )


def above(threshold: float | None) -> dict[str, Any]:
    """Overrides of the config for a threshold; none for the linker's own."""
    return {} if threshold is None else {"components.arbo_linker.threshold": threshold}


def in_one_graph(
    model: Path, corpus: Path, threshold: float | None
) -> list[dict[str, Any]]:
    """The rows of links of ``link_stream``, which is what ``arbo link`` does without shards."""
    nlp = load_pipeline(model)
    linker = find_linker(nlp)
    docs = linker.corpus.link_stream(
        lambda: read_documents(corpus, nlp), threshold=threshold
    )
    return ordered(
        list(rows_of(docs, linker.mentions.getter, linker.cfg["extension"]))
    )


def same(
    model: Path,
    corpus: Path,
    workers: list[int],
    one_graph: bool,
    size: int,
    threshold: float | None = None,
) -> None:
    """Compare the links of one process with those of shards by some numbers of workers."""
    if threshold is not None and not one_graph:
        raise SystemExit("--threshold needs --one-graph")
    start = time.perf_counter()
    expected = (
        in_one_graph(model, corpus, threshold)
        if one_graph
        else by_pipe(model, corpus, 1)
    )
    new = len({row["new_entity"] for row in expected} - {""})
    nil = sum(bool(row["new_entity"]) for row in expected)
    seconds = time.perf_counter() - start
    print(
        f"one process: {len(expected)} rows, {nil} of them in {new} new entities, {seconds:.0f} s",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        for count in [0, *workers]:
            start = time.perf_counter()
            ray = RaySettings(workers=count) if count else None
            settings = {
                "one_graph": one_graph,
                "size": size,
                "overrides": above(threshold),
            }
            job = Job.of(model, corpus, Path(folder, str(count)), **settings)
            for _ in link_in_shards(job, ray=ray):
                pass
            seconds = time.perf_counter() - start
            compare(
                f"shards, {count} workers of Ray, {seconds:.0f} s",
                rows_in(job),
                expected,
            )


def faults(model: Path, corpus: Path, size: int) -> None:
    """Kill a node of a cluster, and then a driver; compare the links with those of ``nlp.pipe``."""
    expected = by_pipe(model, corpus, 1)
    with tempfile.TemporaryDirectory() as folder:
        job = Job.of(model, corpus, Path(folder, "cluster"), size=size)
        kill_a_node(job)
        compare("two nodes, one of them killed", rows_in(job), expected)
        job = Job.of(model, corpus, Path(folder, "driver"), size=size)
        kill_the_driver(job)
        compare("driver killed and started again", rows_in(job), expected)


def kill_a_node(job: Job) -> None:
    """Link on two nodes of a simulated cluster, of which one is killed after three shards."""
    import ray
    from ray.cluster_utils import Cluster

    store = {"object_store_memory": 150 << 20}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **store})
    nodes = [cluster.add_node(num_cpus=2, **store) for _ in range(2)]
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        settings = RaySettings(address=cluster.address, workers=2, cpus=1)
        for number, report in enumerate(link_in_shards(job, ray=settings), 1):
            print(f"  shard {report.shard} by {report.worker}")
            if number == 3:
                cluster.remove_node(nodes.pop(), allow_graceful=False)
                print("  a node was killed", flush=True)
    finally:
        ray.shutdown()
        cluster.shutdown()


def kill_the_driver(job: Job) -> None:
    """Run ``arbo scale link --ray``, kill it after three shards, and run it again."""
    command = [
        sys.executable,
        "-m",
        "spacy",
        "arbo",
        "scale",
        "link",
        job.model,
        job.corpus,
    ]
    command += ["--output", job.output, "--shard", str(job.size)]
    command += ["--ray", "local", "--workers", "2"]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while len(job.done()) < 3 and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    print(
        f"  killed with {len(job.done())} of {len(job.begin())} shards done",
        flush=True,
    )
    subprocess.run(
        command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def memory(
    model: Path, corpus: Path, mentions: list[int], threshold: float | None = None
) -> None:
    """Peak memory of the steps of one graph by the number of mentions, and a line through each."""
    peaks: dict[str, list[float]] = {name: [] for name in STEPS}
    counts = []
    with tempfile.TemporaryDirectory() as folder:
        for count in mentions:
            settings = {"one_graph": True, "overrides": above(threshold)}
            job = Job.of(model, corpus, Path(folder, str(count)), **settings)
            counts.append(write_mentions(job, count))
            print(f"{counts[-1]} mentions", flush=True)
            for name in STEPS:
                peak, seconds = peak_of(name, job)
                peaks[name].append(peak)
                print(f"  {name}: {peak:.0f} MiB, {seconds:.0f} s", flush=True)
            unlinked = len(NewEntities.from_disk(job.folder / NEW_ENTITIES).rows)
            size = sum(
                file.stat().st_size for file in job.folder.rglob("*") if file.is_file()
            )
            per_mention = size / counts[-1] / 1024
            print(
                f"  {unlinked} mentions NIL; files: {per_mention:.2f} KiB per mention",
                flush=True,
            )
            shutil.rmtree(job.folder)
    for name, values in peaks.items():
        slope, start = np.polyfit(counts, values, 1)
        print(f"{name}: {start:.0f} MiB + {slope * 1024:.2f} KiB per mention")


def peak_of(name: str, job: Job) -> tuple[float, float]:
    """The most private memory that a step's process holds, in MiB; and the seconds it takes."""
    command = [
        sys.executable,
        __file__,
        "step",
        job.model,
        job.corpus,
        job.output,
        name,
    ]
    command += [
        part
        for value in job.overrides.values()
        for part in ("--threshold", str(value))
    ]
    start = time.perf_counter()
    with Processes() as processes:
        step = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        if step.wait():
            raise RuntimeError(f"{' '.join(command)} failed")
    return processes.peaks[step.pid], time.perf_counter() - start


def search_shards(job: Job) -> None:
    """What a search worker does, here for all shards."""
    work = SearchWorker(job)
    for shard in read_shards(job.folder / SHARDS):
        work(shard)


def drive(job: Job) -> None:
    """What the driver does while workers on Ray search, and one decides."""
    for path in (job.folder / NEIGHBOURS, job.folder / DECIDED):
        shutil.rmtree(path)
    (job.folder / REDUCED).unlink()
    reduce_shards(job, read_shards(job.folder / SHARDS), RaySettings())


# What ``memory`` measures, each in a separate process.
STEPS: dict[str, Callable[[Job], None]] = {
    "arranging": arrange_mentions,
    "search worker": search_shards,
    "reducer": reduce_mentions,
    "driver": drive,
}


def step(
    model: Path, corpus: Path, output: Path, name: str, threshold: float | None = None
) -> None:
    """One of the steps that ``memory`` measures."""
    STEPS[name](
        Job.of(model, corpus, output, one_graph=True, overrides=above(threshold))
    )


def write_mentions(job: Job, count: int) -> int:
    """Write a first pass of at least so many mentions: those of the corpus, again and again.

    Each copy has other texts, and vectors that differ a little. RETURNS: How many there are.
    """
    nlp = load_pipeline(job.model)
    linker = find_linker(nlp)
    docs = list(read_documents(Path(job.corpus), nlp))
    part = linker.corpus.gather_part(docs)
    random, batch = np.random.default_rng(0), part.ranked.batch
    shards = []
    for number in range(-(-count // len(batch))):
        records = [
            replace(
                r,
                key=(f"{number:08x}{r.key[0][8:]}", *r.key[1:]),
                doc_id=f"{number}-{r.doc_id}",
            )
            for r in batch.records
        ]
        noise = random.normal(0, 0.02, batch.encoded.shape).astype(np.float32)
        vectors = linker.similarity.prepare(batch.encoded + noise)
        ranked = replace(
            part.ranked, batch=replace(batch, records=records, vectors=vectors)
        )
        copy = replace(part, ranked=ranked)
        shards.append(Shard(number, ("copy",), Lines(0, len(docs))))
        write_file(mentions_file(job, shards[-1]), part_to_bytes(copy))
    write_shards(job.folder / SHARDS, shards)
    return len(shards) * len(batch)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    functions = {
        "speed": speed,
        "same": same,
        "faults": faults,
        "memory": memory,
        "step": step,
        "way": way,
    }
    for name, function in functions.items():
        command = commands.add_parser(name, help=function.__doc__.split("\n")[0])
        command.add_argument("model", type=Path)
        command.add_argument("corpus", type=Path)
        if name == "same":
            command.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4])
            command.add_argument("--one-graph", action="store_true")
        if name in ("same", "faults"):
            command.add_argument(
                "--size", type=int, default=16, help="documents of a shard"
            )
        if name == "memory":
            counts = [1000, 10_000, 100_000]
            command.add_argument("--mentions", type=int, nargs="*", default=counts)
        if name in ("memory", "step", "same"):
            command.add_argument(
                "--threshold", type=float, help="for links; 1 leaves all NIL"
            )
        if name in ("step", "way"):
            command.add_argument("output", type=Path)
            command.add_argument("name", choices=[*STEPS, *WAYS])
    options = vars(parser.parse_args())
    functions[options.pop("command")](**options)


if __name__ == "__main__":
    main()
