"""Memory and throughput of ``arbo serve --workers``, and what a megabyte is spent on.

    python benchmarks/workers.py [--kb KB] [--workers 1 2] [--seconds 30] [--documents 16]
    python benchmarks/workers.py --memory [--kb KB]

Each server is a separate process over the demo's entities, or another knowledge base; ``--texts``
are then the lines of a file. Memory is the proportional set size: a page that several processes
share counts once (``/proc``, Linux only). Eight clients ask at a time, on the same cores.
``--memory`` loads one step after the other in a new process, and prints what each adds.
"""

import argparse
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

CLIENTS, TOKEN = 8, "0123456789abcdef"


def processes_of(first: int) -> list[int]:
    """The numbers of a process and of those that it has started."""
    found = [first]
    for process in found:
        children = Path(f"/proc/{process}/task/{process}/children").read_text()
        found += map(int, children.split())
    return found


def megabytes(processes: Sequence[int], kind: str = "Pss") -> float:
    """The memory of processes; pages that they share count once."""
    total = 0
    for process in processes:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        total += next(int(line.split()[1]) for line in lines if line.startswith(f"{kind}:"))
    return total / 1024


def cpu_seconds(processes: Sequence[int]) -> float:
    """What processes have used of the processor."""
    ticks = 0
    for process in processes:
        fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def served(model: Path, workers: int) -> Iterator[tuple[int, int]]:
    """The number of the first process of a server, and its port."""
    options = ["--read-only", "--port", "0", "--workers", str(workers)]
    command = [sys.executable, "-W", "ignore", "-m", "spacy", "arbo", "serve", str(model)]
    environment = {**os.environ, "ARBO_TOKEN": TOKEN}
    process = subprocess.Popen(
        [*command, *options], stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert process.stdout is not None
        address = next(line for line in process.stdout if line.startswith("http"))
        yield process.pid, int(address.split("/")[2].split(":")[1])
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def ask(port: int, batches: Sequence[list[str]], number: int, end: float) -> int:
    """Ask until a time. RETURNS: How many texts were linked."""
    texts = 0
    while time.monotonic() < end:
        batch = batches[number % len(batches)]
        body = json.dumps({"documents": [{"text": text} for text in batch]})
        client = http.client.HTTPConnection("127.0.0.1", port)
        client.request("POST", "/link", body, {"Authorization": f"Bearer {TOKEN}"})
        answer = client.getresponse()
        assert answer.status == 200, answer.read()
        answer.read()
        client.close()
        texts += len(batch)
        number += 1
    return texts


def measure(model: Path, texts: Sequence[str], workers: int, seconds: float, size: int) -> None:
    """Print memory and throughput of a server."""
    batches = [list(texts[i : i + size]) for i in range(0, len(texts) - size + 1, size)]
    with served(model, workers) as (first, port), ThreadPoolExecutor(CLIENTS) as pool:
        numbers = range(CLIENTS)

        def run(span: float) -> int:
            end = time.monotonic() + span
            return sum(pool.map(lambda n: ask(port, batches, n * 7, end), numbers))

        run(seconds / 3)
        start = time.monotonic()
        used = cpu_seconds(processes_of(first))
        linked = run(seconds)
        spent = time.monotonic() - start
        used = cpu_seconds(processes_of(first)) - used
        memory = megabytes(processes_of(first))
    print(
        f"{workers} workers: {memory:.0f} MB in all; {linked / size / spent:.1f} requests of "
        f"{size} texts a second, {linked / spent:.0f} texts; {1000 * used / linked:.0f} ms of the "
        f"processor for a text, {used / spent:.1f} cores in use",
        flush=True,
    )


def print_memory(kb: str | None) -> None:
    """Print what each step of a server adds to the memory of a process."""
    import gc

    last = 0.0

    def note(what: str) -> None:
        nonlocal last
        gc.collect()
        now = megabytes([os.getpid()], "Rss")
        print(f"{what:<55} {now - last:5.0f} MB  (so far {now:.0f})", flush=True)
        last = now

    note("Python")
    import spacy

    note("spaCy, thinc, NumPy, and torch, which thinc imports")
    import spacy_arbo_el.linker

    note("this package, with scikit-learn, SciPy and Numba")
    import uvicorn  # noqa: F401

    import spacy_arbo_el.contrib.review.serve.app  # noqa: F401

    note("FastAPI and Uvicorn")
    nlp = spacy.blank("en")
    nlp.add_pipe("arbo_names")
    linker = nlp.add_pipe("arbo_linker")
    note("transformers and tokenizers")
    linker.set_kb(kb or ROOT / "assets" / "entities.jsonl")
    note(f"{linker.kb}")
    linker.encoder.require_ready("arbo_linker")
    note("the weights of the encoder")
    linker.refresh()
    note("vectors of the names")
    nlp("It is a disease of the heart.")
    note("names by words and by character n-grams, compiled code")
    list(nlp.pipe(["Diabetes and asthma are diseases. " * 20] * 32))
    note("the largest batch so far")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kb", help="Folder or file of entities; by default the demo's")
    parser.add_argument("--texts", type=Path, help="One on each line")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=30.0, help="How long each is asked")
    parser.add_argument("--documents", type=int, default=16, help="Of a request")
    parser.add_argument("--memory", action="store_true", help="Print what each step adds instead")
    args = parser.parse_args()
    if args.memory:
        print_memory(args.kb)
        return
    from benchmarks.service import demo
    from spacy_arbo_el import save_pipeline
    from spacy_arbo_el.linker import find_linker

    nlp, texts = demo()
    if args.kb:
        find_linker(nlp).set_kb(args.kb)
    texts = args.texts.read_text().splitlines() if args.texts else texts
    list(nlp.pipe(texts[:8]))
    with TemporaryDirectory() as folder:
        save_pipeline(nlp, Path(folder, "model"))
        for workers in args.workers:
            measure(Path(folder, "model"), texts, workers, args.seconds, args.documents)


if __name__ == "__main__":
    main()
