"""The first day of four users again: commands, seconds, and what they print.

    python benchmarks/first_day.py fit PIPELINE DOCS [--train] [--folds 5]
    python benchmarks/first_day.py processes PIPELINE [--texts 20000]
    python benchmarks/first_day.py night PIPELINE KB [--texts 20000]
    python benchmarks/first_day.py figures PIPELINE KB

``fit`` is that of a group with few annotated documents: 35 of DOCS. ``processes`` is a data
engineer's: short texts with names of the pipeline's knowledge base, linked by ``nlp.pipe`` with one
process and with two, each in a separate program. ``night`` is a news analyst's: a server follows a
copy of KB, which another process edits; the ids of the next day are compared with those of a fresh
program, and ``arbo diff`` says what has changed. ``figures`` is a researcher's: the time of the
first link with and without the encoding of names, and what the log says meanwhile.

Seconds are of the CPU, of all processes, where nothing else is said. Set OMP_NUM_THREADS=1.
"""

import argparse
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import spacy
import srsly
from spacy.language import Language

from spacy_arbo_el import find_linker, load_pipeline, save_pipeline
from spacy_arbo_el.corpora.docbin import read_docs, write_docbin

TEMPLATES = (
    "Patients with {} were seen.",
    "The {} and the {} of mice.",
    "We studied {} in vitro.",
    "No {} was found near {} today.",
)
TOKEN = "0123456789abcdef"
DOCUMENTS, AT_ONCE = 35, 64
NIGHT = """
import sys
from spacy_arbo_el.kb.knowledge_base import ArboKB
with ArboKB.open(sys.argv[1]) as kb:
    kb.remove(sys.argv[2])
    kb.merge(sys.argv[3], sys.argv[4])
    kb.add({"id": "NEW:1", "title": "zorblat fever"})
"""


def cpu() -> float:
    """CPU seconds of this process and of those that it has ended."""
    own, others = (
        resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


@contextmanager
def measured(what: str) -> Iterator[None]:
    """Print the seconds of a block."""
    start, before = time.perf_counter(), cpu()
    yield
    wall = time.perf_counter() - start
    print(f"{what}: {cpu() - before:.1f} CPU s, {wall:.1f} s", flush=True)


def arbo(*arguments: Any) -> None:
    """Run a command of ours, and print it with its seconds."""
    command = ["-m", "spacy", "arbo", *map(str, arguments)]
    with measured(f"$ arbo {' '.join(map(str, arguments))}"):
        subprocess.run([sys.executable, *command], check=True)


def short_texts(nlp: Language, count: int) -> list[str]:
    """Short texts with names of entities."""
    draw = random.Random(0)
    names = [name for entity in find_linker(nlp).kb for name in entity.names]

    def text(number: int) -> str:
        template = draw.choice(TEMPLATES)
        filled = template.format(
            *(draw.choice(names) for _ in range(template.count("{}")))
        )
        return f"{filled} Case {number}."

    return [text(number) for number in range(count)]


def with_names(pipeline: Path) -> Language:
    """The pipeline, which finds names of its entities."""
    nlp = load_pipeline(pipeline)
    if "arbo_names" not in nlp.pipe_names:
        nlp.add_pipe("arbo_names", before="arbo_linker")
    return nlp


def fit(pipeline: Path, docs: Path, folds: int, train: bool) -> None:
    vocab = spacy.blank("en").vocab
    with tempfile.TemporaryDirectory() as folder:
        some = list(read_docs(docs, vocab))
        random.Random(0).shuffle(some)
        write_docbin(some[:DOCUMENTS], Path(folder) / "docs.spacy")
        options = [
            "--folds",
            folds,
            *["--train"] * train,
            "--output",
            Path(folder) / "fitted",
        ]
        arbo("fit", pipeline, Path(folder) / "docs.spacy", *options)


def processes(pipeline: Path, count: int) -> None:
    script = "from benchmarks.first_day import piped; piped({!r}, {}, {})"
    used = {}
    for n_process in (1, 2):
        code = script.format(str(pipeline), count, n_process)
        run = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True
        )
        print(run.stdout, end="", flush=True)
        used[n_process] = run.stdout.split()[-2:]
    (one, ids), (two, others) = used[1], used[2]
    assert ids == others, "the links are the same"
    ratio = 2 * float(one) / float(two)
    print(
        f"on two free cores, two processes have at most {ratio:.2f} times the throughput of one"
    )


def piped(pipeline: str, count: int, n_process: int) -> None:
    """Link short texts. Prints the CPU seconds and a checksum of the links."""
    nlp = with_names(Path(pipeline))
    texts = short_texts(nlp, count)
    list(nlp.pipe(texts[:AT_ONCE]))
    before, start = cpu(), time.perf_counter()
    found = [
        [ent.kb_id_ for ent in doc.ents]
        for doc in nlp.pipe(texts, n_process=n_process)
    ]
    seconds, wall = cpu() - before, time.perf_counter() - start
    mentions, checksum = sum(map(len, found)), spacy.strings.hash_string(repr(found))
    print(
        f"n_process={n_process}: {count} texts, {mentions} mentions, {wall:.1f} s, CPU s and sum"
    )
    print(f"{seconds:.1f} {checksum}")


class Server:
    """``arbo serve`` over a folder that it follows."""

    def __init__(self, pipeline: Path, kb: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [
            "-m",
            "spacy",
            "arbo",
            "serve",
            str(pipeline),
            "--read-only",
            "--kb",
            str(kb),
        ]
        self.process = subprocess.Popen(
            [sys.executable, *command, "--port", str(port)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "ARBO_TOKEN": TOKEN},
        )
        assert self.process.stdout is not None
        next(line for line in self.process.stdout if line.startswith("http"))
        headers = {"Authorization": f"Bearer {TOKEN}"}
        self.client = httpx.Client(
            base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=120
        )

    def link(self, texts: list[str]) -> list[list[str]]:
        found: list[list[str]] = []
        for start in range(0, len(texts), AT_ONCE):
            body = {
                "documents": [
                    {"text": text} for text in texts[start : start + AT_ONCE]
                ]
            }
            documents = (
                self.client.post("/link", json=body)
                .raise_for_status()
                .json()["documents"]
            )
            found += [[one["kb_id"] for one in each["mentions"]] for each in documents]
        return found

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


def night(pipeline: Path, kb: Path, count: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        shutil.copytree(kb, folder / "kb")
        shutil.copytree(kb, folder / "yesterday")
        nlp = with_names(pipeline)
        find_linker(nlp).set_kb(folder / "kb")
        save_pipeline(nlp, folder / "model")
        texts = short_texts(nlp, count)
        docs = folder / "texts.jsonl"
        srsly.write_jsonl(
            docs, [{"id": str(i), "text": text} for i, text in enumerate(texts)]
        )
        with measured("the server starts"):
            server = Server(folder / "model", folder / "kb")
        try:
            with measured(f"evening: {count} texts by HTTP"):
                evening = server.link(texts)
            linked = sorted({one for ids in evening for one in ids} - {"NIL"})
            edits = [linked[0], linked[1], linked[2]]
            with measured(
                f"night: another process removes {edits[0]}, merges {edits[1:]}, adds one"
            ):
                subprocess.run(
                    [sys.executable, "-c", NIGHT, str(folder / "kb"), *edits],
                    check=True,
                )
            with measured(f"morning: {count} texts by HTTP, no restart"):
                morning = server.link(texts)
        finally:
            server.stop()
        fresh = with_names(pipeline)
        find_linker(fresh).set_kb(folder / "kb")
        save_pipeline(fresh, folder / "fresh")
        same = [
            [ent.kb_id_ for ent in doc.ents] for doc in fresh.pipe(texts)
        ] == morning
        changed = sum(a != b for a, b in zip(evening, morning))
        print(
            f"ids equal those of a fresh program: {same}; {changed} texts have other ids"
        )
        assert same
        outputs: dict[str, tuple[Path, Path]] = {
            "monday": (folder / "model", folder / "yesterday"),
            "tuesday": (folder / "fresh", folder / "kb"),
        }
        for name, (model, _) in outputs.items():
            find = ("--find", "names", "--format", "jsonl")
            arbo("scale", "link", model, docs, "--output", folder / name, *find)
        arbo("diff", *(folder / name for name in outputs), "--old-kb", folder / "yesterday",
             "--new-kb", folder / "kb", "--output", folder / "diff.csv")  # fmt: skip


def figures(pipeline: Path, kb: Path) -> None:
    with tempfile.TemporaryDirectory() as place:
        bare = Path(place) / "kb"
        shutil.copytree(
            kb, bare, ignore=shutil.ignore_patterns("vectors-*", "texts-*", "index-*")
        )
        code = "import sys; from benchmarks.first_day import first_link; first_link(*sys.argv[1:])"
        environment = {**os.environ, "ARBO_CACHE": str(Path(place) / "cache")}
        for what in ("with the encoding of names", "once they are encoded"):
            with measured(f"first link of a script, {what}"):
                command = [sys.executable, "-c", code, str(pipeline), str(bare)]
                subprocess.run(command, check=True, env=environment)


def first_link(pipeline: str, kb: str) -> None:
    """Link one text of one mention."""
    nlp = with_names(Path(pipeline))
    find_linker(nlp).set_kb(kb)
    (name, *_) = next(iter(find_linker(nlp).kb)).names
    assert nlp(f"We saw {name} today.").ents


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("day", choices=("fit", "processes", "night", "figures"))
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--texts", type=int, default=20_000)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--train", action="store_true")
    given = parser.parse_args()
    if given.day == "fit":
        fit(*given.paths, given.folds, given.train)
    elif given.day == "processes":
        processes(*given.paths, given.texts)
    elif given.day == "night":
        night(*given.paths, given.texts)
    else:
        figures(*given.paths)


if __name__ == "__main__":
    main()
