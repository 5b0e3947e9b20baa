"""Time and memory of the review in the browser with many new entities, and of linking tables.

    python benchmarks/serve.py                # 1,221 and 50,000 clusters
    python benchmarks/serve.py --rows 1000    # the Reconciliation API, in batches of 10

The review's pipeline has vectors of words over NumPy, so that the review is measured and not the
encoder. Tables are linked with the bundled encoder, over HTTP, with 5,000 entities.
"""

import argparse
import gc
import resource
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
from spacy.util import import_file

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from spacy_arbo_el import save_pipeline  # noqa: E402
from spacy_arbo_el.contrib.review.queue import Filters  # noqa: E402
from spacy_arbo_el.contrib.review.review import Review  # noqa: E402
from spacy_arbo_el.contrib.review.serve.app import create_app  # noqa: E402
from spacy_arbo_el.contrib.review.serve.reconciliation import address  # noqa: E402
from spacy_arbo_el.contrib.review.serve.security import Rules  # noqa: E402
from spacy_arbo_el.discovery.entities import NearestEntity  # noqa: E402
from spacy_arbo_el.discovery.new_entities import NewEntities  # noqa: E402
from spacy_arbo_el.discovery.store import Unlinked  # noqa: E402
from spacy_arbo_el.kb.entity import Entity  # noqa: E402
from spacy_arbo_el.linker import find_linker  # noqa: E402
from tests.contrib.review.serve.world import serving  # noqa: E402
from tests.linker.conftest import build  # noqa: E402

# Clusters, and mentions; milliseconds for the first page and for a decision; MB.
SIZES = ((1221, 2830, 300, 100), (50_000, 116_000, 1000, 150))
MEMORY = 100
DECISIONS = 40
# Rows of a table a second.
ROWS = 100


def pipeline(clusters: int, mentions: int):
    """A pipeline that keeps so many new entities."""
    rng = np.random.default_rng(0)
    entities = [
        Entity(f"E{i}", f"entity number {i}", f"about {i}") for i in range(2000)
    ]
    nlp = build(entities, ["The [entity number 1|E1] is here."], threshold=0.5)
    linker = find_linker(nlp)
    groups = np.concatenate(
        [np.arange(clusters), rng.integers(0, clusters, mentions - clusters)]
    )
    groups.sort()
    spans = []
    for number, group in enumerate(groups.tolist()):
        doc = nlp.make_doc(
            f"In document {number} they saw thing{group} and more of it."
        )
        doc.user_data["doc_id"] = f"d{number}"
        spans.append(
            [doc.char_span(*_place(doc.text, f"thing{group}"), label="THING")]
        )
    batch = linker.stages.encode(linker.stages.read(spans))
    near = [
        [
            NearestEntity(f"E{n}", f"entity number {n}", round(float(p), 3))
            for n, p in zip(*row)
        ]
        for row in zip(
            rng.integers(0, 2000, (mentions, 3)), -np.sort(-rng.random((mentions, 3)))
        )
    ]
    new = NewEntities(0.5, linker.encoder.fingerprint)
    mentions = Unlinked(
        batch.records, batch.documents, near, batch.inputs, batch.encoded
    )
    new.add_groups(mentions, groups)
    linker.new_entities = new
    return nlp


def _place(text: str, word: str):
    start = text.index(word)
    return start, start + len(word)


def megabytes() -> float:
    """The memory of this process now; Linux only."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def measure(
    clusters: int, mentions: int, most_page: float, most_decision: float
) -> bool:
    """Print a row of the table. RETURNS: Whether all is within the limits."""
    from starlette.testclient import TestClient

    nlp = pipeline(clusters, mentions)
    find_linker(nlp).refresh()
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder, "model")
        save_pipeline(nlp, model)
        before = megabytes()
        review, rules = Review(nlp, model), Rules(port=80)
        headers = {"Authorization": f"Bearer {rules.token}"}
        client = TestClient(create_app(review, rules, None, "x"), headers=headers)
        start = time.perf_counter()
        assert client.get("/").status_code == 200
        page = 1000 * (time.perf_counter() - start)
        times = [decide(client, review, number) for number in range(DECISIONS)]
        memory = megabytes() - before
    decision, slowest = median(times), sorted(times)[-3]
    print(
        f"| {clusters:,} | {mentions:,} | {page:.0f} ms | {decision:.0f} ms | {slowest:.0f} ms "
        f"| {memory:.0f} MB |",
        flush=True,
    )
    return page <= most_page and decision <= most_decision and memory <= MEMORY


def decide(client, review, number: int) -> float:
    """The milliseconds from a decision to the next page, by turns of each kind."""
    row = next(iter(review.select(Filters())))
    action = ("accept", "reject", "link", "skip")[number % 4]
    fields = {"id": row.id, "title": row.name, "kb_id": ""}
    if action == "link":
        fields["kb_id"] = "E7"
    start = time.perf_counter()
    answer = client.post(f"/decide/{action}", data=fields)
    assert answer.status_code == 200, answer.text
    return 1000 * (time.perf_counter() - start)


def link_table(count: int) -> bool:
    """Print how many rows a second are linked over HTTP. RETURNS: Whether they are enough."""
    import spacy

    example = import_file("reconcile", ROOT / "examples" / "reconcile.py")
    rng, syllables = (
        np.random.default_rng(0),
        [
            "ba",
            "den",
            "for",
            "gal",
            "hal",
            "kor",
            "lin",
            "mar",
            "nor",
            "rus",
            "sel",
            "tor",
        ],
    )
    names = [
        " ".join("".join(rng.choice(syllables, 2)) for _ in range(2))
        for _ in range(5000)
    ]
    nlp = spacy.blank("en")
    about = [{"id": f"E{i}", "title": name.title()} for i, name in enumerate(names)]
    nlp.add_pipe("arbo_linker").set_kb(about)
    rows = [{"name": name} for name in rng.choice(names, count).tolist()]
    with tempfile.TemporaryDirectory() as folder:
        save_pipeline(nlp, Path(folder, "model"))
        review = Review(nlp, Path(folder, "model"))
        review.linker.refresh()
        with serving(lambda rules: create_app(review, rules)) as rules:
            list(example.linked(address(rules), rows[:50], "name"))
            start, cpu = time.perf_counter(), time.process_time()
            found = list(example.linked(address(rules), rows, "name"))
            speed = count / (time.perf_counter() - start)
            by_cpu = count / (time.process_time() - cpu)
    linked = sum(bool(row["kb_id"]) for row in found)
    print(
        f"{count} rows in batches of {example.BATCH}, of which {linked} match: {speed:.0f} rows a "
        f"second, {by_cpu:.0f} a second of the processor"
    )
    return speed >= ROWS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clusters", type=int, help="Only so many")
    parser.add_argument(
        "--rows", type=int, help="Link a table of so many rows instead"
    )
    args = parser.parse_args()
    if args.rows:
        return int(not link_table(args.rows))
    print(
        "| clusters | mentions | first page | decision | 95 % | memory |\n|---|---|---|---|---|---|"
    )
    sizes = [size for size in SIZES if args.clusters in (None, size[0])]
    sizes = sizes or [(args.clusters, 2 * args.clusters, 1000, 150)]
    results = [measure(*size) for size in sizes]
    return int(not all(results))


if __name__ == "__main__":
    sys.exit(main())
