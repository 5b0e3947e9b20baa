"""One request beside ``nlp.pipe`` in the same process: of one short text, and of 64.

    python benchmarks/one_request.py [--pairs 40]

The application of ``arbo serve`` answers by Uvicorn, one client keeps its connection, and the two
take turns on the same texts: sentences with one mention of the demo's entities. Medians of pairs.
Those of the processor have the client's too. They are judged: on a busy machine, each thread waits
for its turn.
"""

import argparse
import http.client
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.service import demo  # noqa: E402
from spacy_arbo_el import save_pipeline  # noqa: E402
from spacy_arbo_el.contrib.review.review import Review  # noqa: E402
from spacy_arbo_el.contrib.review.serve.app import create_app  # noqa: E402
from tests.contrib.review.serve.world import serving  # noqa: E402

# Texts of a large request, the most that it may take beside nlp.pipe, milliseconds beyond it of one
# text.
LARGE, RATIO, BEYOND = 64, 1.2, 5.0


def sentences(nlp, texts: Sequence[str]) -> list[str]:
    """The sentences of texts with one mention."""
    names = nlp.get_pipe("arbo_names")
    parts = [part for text in texts for part in text.split(". ") if part]
    return [part for part in parts if len(names(nlp.make_doc(part)).ents) == 1]


def pairs(
    first: Callable[[list[str]], object],
    second: Callable[[list[str]], object],
    batches: Sequence[list[str]],
    count: int,
) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """Milliseconds, and those of the processor, of two functions in turn on the same texts."""
    found = []
    for number in range(count):
        batch = batches[number % len(batches)]
        # None of them has always what the other has left in the processor's caches.
        order = (first, second) if number % 2 else (second, first)
        spent = {function: spent_by(function, batch) for function in order}
        found.append((spent[first], spent[second]))
    return found


def spent_by(
    function: Callable[[list[str]], object], batch: list[str]
) -> tuple[float, float]:
    start = time.perf_counter()
    used = time.process_time()
    function(batch)
    return 1000 * (time.perf_counter() - start), 1000 * (time.process_time() - used)


def compare(count: int) -> bool:
    """Print both sizes. RETURNS: Whether they are within the limits."""
    nlp, texts = demo()
    texts = sentences(nlp, texts)
    list(nlp.pipe(texts[:LARGE]))
    with TemporaryDirectory() as folder:
        model = Path(folder, "model")
        save_pipeline(nlp, model)
        review = Review(nlp, model, read_only=True)
        with serving(lambda rules: create_app(review, rules)) as rules:
            headers = {"Authorization": f"Bearer {rules.token}"}

            def ask(batch: list[str]) -> bytes:
                body = json.dumps({"documents": [{"text": text} for text in batch]})
                connection.request("POST", "/link", body, headers)
                answer = connection.getresponse().read()
                if len(batch) > 1:
                    # A server closes connections that were not used for five seconds.
                    connection.close()
                return answer

            def pipe(batch: list[str]) -> list:
                return list(nlp.pipe(batch))

            is_within = True
            for size in (1, LARGE):
                batches = [
                    texts[i : i + size] for i in range(0, len(texts) - size + 1, size)
                ]
                connection = http.client.HTTPConnection("127.0.0.1", rules.port)
                ask(batches[0])
                spent = pairs(
                    ask, pipe, batches, count if size == 1 else max(1, count // 4)
                )
                is_within &= report(size, spent)
    return is_within


def report(
    size: int, spent: list[tuple[tuple[float, float], tuple[float, float]]]
) -> bool:
    ratios = [median(ours[i] / theirs[i] for ours, theirs in spent) for i in (0, 1)]
    beyond = [median(ours[i] - theirs[i] for ours, theirs in spent) for i in (0, 1)]
    print(
        f"{size:>3} texts: {median(ours[0] for ours, _ in spent):.1f} ms by HTTP, "
        f"{median(theirs[0] for _, theirs in spent):.1f} ms by nlp.pipe; ratio {ratios[0]:.2f}, "
        f"{beyond[0]:+.1f} ms; of the processor {ratios[1]:.2f}, {beyond[1]:+.1f} ms",
        flush=True,
    )
    return ratios[1] <= RATIO if size > 1 else beyond[1] <= BEYOND


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=40, help="Requests of one text")
    return int(not compare(parser.parse_args().pairs))


if __name__ == "__main__":
    sys.exit(main())
