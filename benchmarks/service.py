"""The service of ``arbo serve`` beside ``nlp.pipe``: throughput, latency, start, the same links.

    python benchmarks/service.py [--seconds 60] [--documents 16]

The server is a separate process, as a container runs it, over the demo's entities with the
bundled encoder; it finds the mentions itself. Several clients ask at a time. The two take turns of
the same length. Seconds of the processor are of the server, and of this process for ``nlp.pipe``.
"""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import numpy as np
import spacy
import srsly

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from spacy_arbo_el import save_pipeline  # noqa: E402
from tests.contrib.review.serve.processes import Served, can_confine  # noqa: E402

# Clients, turns, the least share of nlp.pipe's speed, seconds to the first link.
CLIENTS, ROUNDS, RATIO, START = 8, 6, 0.9, 10.0


def demo():
    """A pipeline that finds the names of the demo's entities, and the demo's texts."""
    nlp = spacy.blank("en")
    entities = list(srsly.read_jsonl(ROOT / "assets" / "entities.jsonl"))
    nlp.add_pipe("arbo_linker").set_kb(entities)
    nlp.add_pipe("arbo_names", first=True)
    files = (ROOT / "assets" / f"{name}.jsonl" for name in ("train", "dev", "test"))
    return nlp, [one["text"] for file in files for one in srsly.read_jsonl(file)]


def compare(seconds: float, documents: int) -> bool:
    """Print throughput and latency of the service beside ``nlp.pipe``, each for so many seconds.

    documents: Of a request. RETURNS: Whether all is within the limits.
    """
    nlp, texts = demo()
    wanted = dict(zip(texts, map(ids_of, nlp.pipe(texts))))
    batches = [texts[i : i + documents] for i in range(0, len(texts), documents)]
    times: list[float] = []
    counts, spent, cpu = Counter(), Counter(), Counter()

    def ask(client, number: int, end: float) -> int:
        for step in count():
            start = time.perf_counter()
            if start > end:
                return sum(
                    len(batches[(number + i) % len(batches)]) for i in range(step)
                )
            batch = batches[(number + step) % len(batches)]
            assert served.link(batch, client) == [wanted[text] for text in batch]
            times.append(time.perf_counter() - start)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        save_pipeline(nlp, folder / "model")
        (folder / "tmp").mkdir()
        start = time.perf_counter()
        inside = folder / "tmp" if can_confine() else None
        served = Served(folder / "model", "--read-only", temporary=inside)
        served.link(["Hello."])
        began, began_cpu = time.perf_counter() - start, cpu_seconds(served.process.pid)
        clients = [served.new_client() for _ in range(CLIENTS)]
        for _ in range(ROUNDS):
            start, used = time.perf_counter(), time.process_time()
            while time.perf_counter() < start + seconds / ROUNDS:
                assert all(ids_of(doc) == wanted[doc.text] for doc in nlp.pipe(texts))
                counts["pipe"] += len(texts)
            spent["pipe"] += time.perf_counter() - start
            cpu["pipe"] += time.process_time() - used
            start, used = time.perf_counter(), cpu_seconds(served.process.pid)
            with ThreadPoolExecutor(CLIENTS) as pool:
                ends = [start + seconds / ROUNDS] * CLIENTS
                numbers = range(0, len(batches), max(1, len(batches) // CLIENTS))
                counts["service"] += sum(pool.map(ask, clients, numbers, ends))
            spent["service"] += time.perf_counter() - start
            cpu["service"] += cpu_seconds(served.process.pid) - used
        status = served.stop()[1]
    speed = {name: counts[name] / spent[name] for name in counts}
    ratio = speed["service"] / speed["pipe"]
    by_cpu = counts["service"] / cpu["service"] / (counts["pipe"] / cpu["pipe"])
    p50, p95 = np.percentile(times, (50, 95)) * 1000
    print(
        f"{CLIENTS} clients, {documents} documents a request, {len(times)} requests, no error: "
        f"{speed['service']:.0f} documents a second, nlp.pipe {speed['pipe']:.0f}, ratio "
        f"{ratio:.2f}, by seconds of the processor {by_cpu:.2f}; p50 {p50:.0f} ms, "
        f"p95 {p95:.0f} ms; first link after {began:.1f} s, "
        f"{began_cpu:.1f} s of the processor"
        f"{' read-only and as nobody' if inside else ''}"
    )
    return ratio >= RATIO and began <= START and status == 0


def cpu_seconds(process: int) -> float:
    """What a process has used of the processor; Linux only."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def ids_of(doc):
    """The ids of the mentions of a document."""
    return [ent.kb_id_ for ent in doc.ents]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="How long each is measured"
    )
    parser.add_argument("--documents", type=int, default=16, help="Of a request")
    args = parser.parse_args()
    return int(not compare(args.seconds, args.documents))


if __name__ == "__main__":
    sys.exit(main())
