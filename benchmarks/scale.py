"""Linking in shards, by one process and by workers of Ray: the same links, speed, faults, memory.

    python benchmarks/scale.py speed MODEL CORPUS
    python benchmarks/scale.py same MODEL CORPUS [--workers 1 2 4] [--one-graph]
    python benchmarks/scale.py faults MODEL CORPUS
    python benchmarks/scale.py memory MODEL [--mentions 1000 10000 100000]

``speed`` links a corpus by ``nlp.pipe`` with one process and with two, and by one worker of Ray and
two, in one run. ``same`` compares the rows of links with those of one process. ``faults`` runs a
cluster of several Ray nodes on this machine, and kills one of them; then it kills the driver, and
starts it again. ``memory`` measures the reducer of one graph on mentions with random vectors.
"""

import argparse
import os
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, List

import pyarrow.parquet as pq

from spacy_arbo_el import Job, find_linker, link_in_shards, load_pipeline
from spacy_arbo_el.corpora.raw import read_documents
from spacy_arbo_el.distributed.identity import folder_fingerprint
from spacy_arbo_el.distributed.on_ray import RaySettings
from spacy_arbo_el.distributed.output import rows_of


def make_job(model: Path, corpus: Path, output: Path, **settings: Any) -> Job:
    places = (str(path.resolve()) for path in (model, corpus, output))
    return Job(*places, folder_fingerprint(model), **settings)


def rows_in(job: Job) -> List[Dict[str, Any]]:
    """All rows of links, in the order of documents and mentions."""
    return ordered(pq.read_table(job.folder / "links").to_pylist())


def ordered(rows: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["document"], row["start"], row["end"], row["label"]))


def by_pipe(model: Path, corpus: Path, n_process: int) -> List[Dict[str, Any]]:
    """The rows of links of ``nlp.pipe``."""
    nlp = load_pipeline(model)
    linker = find_linker(nlp)
    docs = nlp.pipe(read_documents(corpus, nlp), n_process=n_process)
    return ordered(list(rows_of(docs, linker.mentions.getter, linker.cfg["extension"])))


class Processes:
    """Processor time and peak memory of this process and all that it starts, while a block runs.

    seconds: Processor time, of all of them together.
    peaks: The most memory that each has held, in MiB, by the number of the process.
    """

    def __enter__(self) -> "Processes":
        self._ticks: Dict[int, int] = {}
        self.peaks: Dict[int, float] = {}
        self._ended = threading.Event()
        self._before = self._own()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self._ended.set()
        self._thread.join()
        others = sum(ticks for pid, ticks in self._ticks.items() if pid != os.getpid())
        self.seconds = self._own() - self._before + others / os.sysconf("SC_CLK_TCK")

    def _own(self) -> float:
        return time.process_time()

    def _watch(self) -> None:
        while not self._ended.wait(0.2):
            self._sample()

    def _sample(self) -> None:
        """Note what each process has used so far; what it used last is lost when it ends."""
        parents, ticks = {}, {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                values = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            pid = int(folder.name)
            parents[pid], ticks[pid] = int(values[1]), int(values[11]) + int(values[12])
        for pid in parents:
            ancestor = pid
            while ancestor not in (0, os.getpid()):
                ancestor = parents.get(ancestor, 0)
            if ancestor == os.getpid():
                self._ticks[pid] = ticks[pid]
                self.peaks[pid] = max(self.peaks.get(pid, 0.0), resident(pid))


def resident(pid: int) -> float:
    """The memory that a process holds, in MiB; 0 where it has ended."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def speed(model: Path, corpus: Path) -> None:
    """Documents a second of the ways to link a corpus, from start to end, loading included."""
    nlp = load_pipeline(model)
    count = sum(1 for _ in read_documents(corpus, nlp))
    del nlp
    print(f"{count} documents, {os.cpu_count()} CPUs", flush=True)
    with tempfile.TemporaryDirectory() as folder:

        def by_ray(workers: int) -> None:
            job = make_job(model, corpus, Path(folder, f"ray{workers}"))
            for _ in link_in_shards(job, ray=RaySettings(workers=workers)):
                pass

        ways: Dict[str, Callable[[], Any]] = {
            "nlp.pipe": lambda: by_pipe(model, corpus, 1),
            "Ray, 1 worker": lambda: by_ray(1),
            "nlp.pipe(n_process=2)": lambda: by_pipe(model, corpus, 2),
            "Ray, 2 workers": lambda: by_ray(2),
        }
        wall, busy = {}, {}
        for name, way in ways.items():
            start, load = time.perf_counter(), os.getloadavg()[0]
            with Processes() as processes:
                way()
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("speed")
    command.add_argument("model", type=Path)
    command.add_argument("corpus", type=Path)
    options = vars(parser.parse_args())
    {"speed": speed}[options.pop("command")](**options)


if __name__ == "__main__":
    main()
