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
import platform
import tempfile
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


def speed(model: Path, corpus: Path) -> None:
    """Documents a second of the ways to link a corpus, from start to end, loading included."""
    nlp = load_pipeline(model)
    count = sum(1 for _ in read_documents(corpus, nlp))
    del nlp
    print(f"{count} documents, {os.cpu_count()} CPUs, {platform.processor() or platform.machine()}")
    with tempfile.TemporaryDirectory() as folder:

        def by_ray(workers: int) -> None:
            job = make_job(model, corpus, Path(folder, f"ray{workers}"))
            reports = list(link_in_shards(job, ray=RaySettings(workers=workers)))
            busy = sum(report.seconds for report in reports)
            print(f"  the {workers} workers were busy for {busy:.1f} s together")

        ways: Dict[str, Callable[[], Any]] = {
            "nlp.pipe": lambda: by_pipe(model, corpus, 1),
            "Ray, 1 worker": lambda: by_ray(1),
            "nlp.pipe(n_process=2)": lambda: by_pipe(model, corpus, 2),
            "Ray, 2 workers": lambda: by_ray(2),
        }
        seconds = {}
        for name, way in ways.items():
            start, load = time.perf_counter(), os.getloadavg()[0]
            way()
            seconds[name] = time.perf_counter() - start
            print(
                f"{name}: {seconds[name]:.1f} s, {count / seconds[name]:.2f} documents a second "
                f"(load of the machine before: {load:.1f})",
                flush=True,
            )
    one, two = seconds["Ray, 1 worker"], seconds["Ray, 2 workers"]
    print(f"Ray with 1 worker / nlp.pipe: {one / seconds['nlp.pipe']:.3f} of the time")
    print(f"2 workers / 1 worker: {one / two:.2f} times as fast")
    pipes = seconds["nlp.pipe(n_process=2)"]
    print(f"2 workers / nlp.pipe(n_process=2): {pipes / two:.2f} times as fast")


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
