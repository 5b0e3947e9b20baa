"""A corpus's new entities end to end, vectors given: where the time goes.

    python benchmarks/corpus.py MODEL CORPUS.spacy [--mentions 100000]

The pipeline's linker has its knowledge base and exemplars taken away, so that every mention of the
corpus is one that nothing fits, and its encoder is replaced by vectors that were encoded before
(kept beside the corpus for the next time): what is timed is everything else, from Docs to JSONL and
the page. The neighbours found are compared with the exact ones for a thousand mentions.
"""

import argparse
import json
import time
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Dict, Iterator

import numpy as np
import spacy

from spacy_arbo_el import graph
from spacy_arbo_el.component import together
from spacy_arbo_el.corpora.reader import MentionCorpus
from spacy_arbo_el.discovery import grouping
from spacy_arbo_el.discovery.page import to_html
from spacy_arbo_el.evaluation.report import find_linker
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.mentions import find_mentions
from spacy_arbo_el.retrieval.exemplars import ExemplarStore
from spacy_arbo_el.retrieval.neighbours import nearest_in_corpus

SAMPLE = 1000


class Given:
    """An encoder that gives vectors it was given, in the order that windows come in each pass."""

    def __init__(self, vectors: np.ndarray):
        self.vectors, self.at = vectors, 0

    def __call__(self, windows) -> np.ndarray:
        start, self.at = self.at, self.at + len(windows)
        return self.vectors[start : self.at]


@contextmanager
def timed(seconds: Dict[str, float], module, name: str) -> Iterator[None]:
    """Add up what a function of a module takes."""
    function = getattr(module, name)

    def call(*args, **settings):
        start = time.perf_counter()
        try:
            return function(*args, **settings)
        finally:
            seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - start

    setattr(module, name, call)
    try:
        yield
    finally:
        setattr(module, name, function)


def encoded(linker, docs, path: Path) -> np.ndarray:
    """The vectors of the docs' mentions, raw, from a file if they are there."""
    if path.exists():
        return np.load(path, allow_pickle=False)
    windows = linker.reader.windows([find_mentions(doc, linker.span_getter) for doc in docs])
    vectors = linker.encoding.encode_windows(windows)
    np.save(path, vectors)
    return vectors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--mentions", type=int, default=100_000)
    parser.add_argument("--out", type=Path, default=Path("new_entities.jsonl"))
    options = parser.parse_args()
    nlp = spacy.load(options.model)
    linker = find_linker(nlp)
    docs = [example.predicted for example in MentionCorpus(options.corpus)(nlp)]
    sizes = accumulate(len(find_mentions(doc, linker.span_getter)) for doc in docs)
    docs = docs[: sum(size <= options.mentions for size in sizes)]
    vectors = encoded(linker, docs, options.corpus.with_suffix(".vectors.npy"))
    count = sum(len(find_mentions(doc, linker.span_getter)) for doc in docs)
    vectors = vectors[:count]
    linker.memory.exemplars = ExemplarStore()
    linker.set_kb(lambda vocab: ArboKB(vocab))
    linker.encoding.encode_windows = Given(vectors)  # type: ignore[method-assign]
    linker.refresh()
    # Compiled code is loaded once a process.
    graph.link(0, 2, np.array([0]), np.array([1]), np.array([0.0], np.float32))
    graph.sweep(0, 2, np.array([0]), np.array([1]), np.array([0.0], np.float32), np.zeros(1))
    seconds: Dict[str, float] = {}
    start = time.perf_counter()
    with (
        timed(seconds, grouping, "nearest_in_corpus"),
        timed(seconds, together, "nearest_in_corpus"),
        timed(seconds, grouping.graph, "sweep"),
    ):
        found = linker.discover(docs)
    discovered = time.perf_counter() - start
    entities = list(found)
    lines = (json.dumps(one.to_dict(), ensure_ascii=False) + "\n" for one in entities)
    options.out.write_text("".join(lines), encoding="utf8")
    options.out.with_suffix(".html").write_text(to_html(entities), encoding="utf8")
    whole = time.perf_counter() - start
    prepared = linker.similarity.prepare(vectors)
    near, similarity = nearest_in_corpus(prepared, 4, linker.similarity)
    rows = np.random.default_rng(0).choice(count, size=min(SAMPLE, count), replace=False)
    exact = linker.similarity.blocks(prepared[rows], prepared)
    exact[np.arange(len(rows)), rows] = -np.inf
    fourth = -np.partition(-exact, 3, axis=1)[:, 3:4]
    recall = float((similarity[rows] >= fourth - 1e-5).mean())
    print(f"{count} mentions in {len(docs)} documents: {len(entities)} new entities")
    print(f"end to end {whole:.1f} s, of which")
    print(f"  neighbours {seconds['nearest_in_corpus']:.1f} s (recall@4 {recall:.3f})")
    print(f"  graph {seconds['sweep']:.2f} s")
    rest = discovered - seconds["nearest_in_corpus"] - seconds["sweep"]
    print(f"  documents, windows, links and annotations {rest:.1f} s")
    print(f"  describing and writing {whole - discovered:.1f} s")


if __name__ == "__main__":
    main()
