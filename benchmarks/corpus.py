"""Where the time goes in the discovery of new entities in a corpus, without encoding.

    python benchmarks/corpus.py MODEL CORPUS.spacy [--mentions 100000]

The linker's knowledge base and exemplars are emptied, so that no mention can be linked. Its encoder
is replaced by stored vectors. They are stored next to the corpus for the next
run. Everything else is timed, from documents to JSONL and the HTML page. The nearest neighbours are
compared with the exact ones for a thousand mentions.
"""

import argparse
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate, count, islice
from pathlib import Path

import numpy as np
import spacy

from spacy_arbo_el import graph
from spacy_arbo_el.corpora.reader import MentionCorpus
from spacy_arbo_el.discovery import grouping
from spacy_arbo_el.discovery.entities import to_html
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.linker import find_linker
from spacy_arbo_el.retrieval.exemplars import ExemplarStore
from spacy_arbo_el.retrieval.mention_search import nearest_in_corpus

SAMPLE = 1000


@contextmanager
def timed(seconds: dict[str, float], module, name: str) -> Iterator[None]:
    """Sum the time that a function of a module takes."""
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
    """The vectors of the documents' mentions, not prepared. They are stored in a file."""
    if path.exists():
        return np.load(path, allow_pickle=False)
    vectors = linker.encoder.encode_mentions(linker.reader.read_docs(docs).inputs)
    np.save(path, vectors)
    return vectors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--mentions", type=int, default=100_000)
    parser.add_argument("--output", type=Path, default=Path("new_entities.jsonl"))
    options = parser.parse_args()
    nlp = spacy.load(options.model)
    linker = find_linker(nlp)
    docs = [example.predicted for example in MentionCorpus(options.corpus)(nlp)]
    sizes = list(accumulate(len(linker.reader.all_mentions(doc)) for doc in docs))
    docs = docs[: sum(size <= options.mentions for size in sizes)]
    n_mentions = sizes[len(docs) - 1]
    vectors = encoded(linker, docs, options.corpus.with_suffix(".vectors.npy"))[
        :n_mentions
    ]
    linker.datastore.exemplars = ExemplarStore()
    linker.set_kb(lambda vocab: ArboKB(vocab))
    # The encoder gives the stored vectors of mentions one after the other.
    rows = count()
    linker.encoder.encode_mentions = lambda inputs: vectors[
        list(islice(rows, len(inputs)))
    ]
    linker.refresh()
    # Load the compiled code.
    graph.link(0, 2, np.array([0]), np.array([1]), np.array([0.0], np.float32))
    graph.cluster(2, np.array([0]), np.array([1]), np.array([0.0], np.float32), 0.0)
    seconds: dict[str, float] = {}
    start = time.perf_counter()
    with (
        timed(seconds, grouping, "nearest_in_corpus"),
        timed(seconds, grouping.graph, "cluster"),
    ):
        new_entities = linker.corpus.discover(docs)
    discovered = time.perf_counter() - start
    entities = list(new_entities)
    lines = (json.dumps(one.to_dict(), ensure_ascii=False) + "\n" for one in entities)
    options.output.write_text("".join(lines), encoding="utf8")
    options.output.with_suffix(".html").write_text(to_html(entities), encoding="utf8")
    total = time.perf_counter() - start
    prepared = linker.similarity.prepare(vectors)
    nearest = nearest_in_corpus(prepared, 4, linker.similarity)
    size = min(SAMPLE, n_mentions)
    drawn = np.random.default_rng(0).choice(n_mentions, size=size, replace=False)
    exact = linker.similarity.blocks(prepared[drawn], prepared)
    exact[np.arange(len(drawn)), drawn] = -np.inf
    fourth = -np.partition(-exact, 3, axis=1)[:, 3:4]
    recall = float((nearest.scores[drawn] >= fourth - 1e-5).mean())
    print(
        f"{n_mentions} mentions in {len(docs)} documents: {len(entities)} new entities"
    )
    print(f"end to end {total:.1f} s, of which")
    print(f"  neighbours {seconds['nearest_in_corpus']:.1f} s (recall@4 {recall:.3f})")
    print(f"  graph {seconds['cluster']:.2f} s")
    rest = discovered - seconds["nearest_in_corpus"] - seconds["cluster"]
    print(f"  documents, windows, links and annotations {rest:.1f} s")
    print(f"  describing and writing {total - discovered:.1f} s")


if __name__ == "__main__":
    main()
