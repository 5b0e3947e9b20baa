"""Linkers side by side: accuracy, speed, memory, start.

    python benchmarks/peers.py CORPUS.spacy KB [--train TRAIN.spacy] [--trained MODEL ...]
    python benchmarks/peers.py wned-wiki.spacy wikipedia --documents 50 --rows minilm untrained

The second is of articles, with some twenty mentions each.

Each row runs in separate processes, on one thread. Seconds are of the CPU, children included. One
process builds the knowledge base. Another starts, loads it, links the first document (FIRST, with
its imports), then all documents three times: the median counts. The rows take turns, three times
each, so that all are measured in the same minutes; medians of these are printed. ACC is the share
of mentions with a gold entity of the KB whose first candidate is right, at whatever probability.
NEW counts those with a surface form that TRAIN lacks, SAME those that are a name of several
entities. P50 and P95 are milliseconds of a document with three mentions.

- minilm: MiniLM over the names and FAISS, what a user would write instead
- tfidf: character n-grams over the names, by scikit-learn
- scispacy: its candidate generator; entity_linker: spaCy's, with names as aliases
- untrained: ``nlp.add_pipe("arbo_linker")``; trained models are given by ``--trained``
"""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import srsly
from memory import resident_megabytes

COLUMNS = ("KB", "ACC", "NEW", "SAME", "m/s", "MB", "FIRST", "P50", "P95")
ROUNDS = 3
TURNS = 3
CALLS = 40
MINILM = "sentence-transformers/all-MiniLM-L6-v2"

# A linker takes a list of (text, spans) and returns the first candidate of each span.
Link = Callable[[list[Any]], list[list[str | None]]]


def cpu_seconds() -> float:
    own, children = (
        resource.getrusage(who)
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return sum(usage.ru_utime + usage.ru_stime for usage in (own, children))


class MiniLM:
    """MiniLM over names, exact search: twenty lines."""

    def build(self, folder: Path, names: list[Any]) -> None:
        import faiss
        import numpy as np

        vectors = self._encode([name for _, name in names])
        index = faiss.IndexFlatIP(vectors.shape[1])
        index.add(np.ascontiguousarray(vectors))
        faiss.write_index(index, str(folder / "index"))

    def load(self, folder: Path, names: list[Any]) -> Link:
        import faiss

        index = faiss.read_index(str(folder / "index"))
        ids = [id_ for id_, _ in names]

        def link(documents: list[Any]) -> list[list[str | None]]:
            strings = [text[s:e] for text, spans in documents for s, e in spans]
            _, best = index.search(self._encode(strings), 1)
            found = iter(ids[row] for row in best[:, 0])
            return [[next(found) for _ in spans] for _, spans in documents]

        return link

    _model = None

    def _encode(self, strings: list[str]) -> Any:
        from sentence_transformers import SentenceTransformer

        if self._model is None:
            self._model = SentenceTransformer(_minilm(), device="cpu")
        return self._model.encode(
            strings, normalize_embeddings=True, show_progress_bar=False
        )


def _minilm() -> str:
    try:
        from spacy_arbo_el.base.bundled import BUNDLED, resolve_name

        return str(resolve_name(BUNDLED))
    except ImportError:
        return MINILM


class TfIdf:
    def build(self, folder: Path, names: list[Any]) -> None:
        pass  # It is fitted in seconds, when it is loaded.

    def load(self, folder: Path, names: list[Any]) -> Link:
        from sklearn.feature_extraction.text import TfidfVectorizer

        vectorizer = TfidfVectorizer(
            analyzer="char", ngram_range=(1, 2), lowercase=True
        )
        matrix = vectorizer.fit_transform([name for _, name in names]).T.tocsr()
        ids = [id_ for id_, _ in names]

        def link(documents: list[Any]) -> list[list[str | None]]:
            strings = [text[s:e] for text, spans in documents for s, e in spans]
            rows = (
                vectorizer.transform(strings[i : i + 256])
                for i in range(0, len(strings), 256)
            )
            best = [
                row
                for part in rows
                for row in (part @ matrix).toarray().argmax(1).tolist()
            ]
            found = iter(ids[row] for row in best)
            return [[next(found) for _ in spans] for _, spans in documents]

        return link


class ScispaCy:
    def build(self, folder: Path, names: list[Any]) -> None:
        import scispacy.candidate_generation as generation
        from scispacy.linking_utils import KnowledgeBase

        path = folder / "kb.jsonl"
        srsly.write_jsonl(path, _records(names))
        generation.create_tfidf_ann_index(str(folder), KnowledgeBase(str(path)))

    def load(self, folder: Path, names: list[Any]) -> Link:
        import scispacy.candidate_generation as generation
        from scispacy.linking_utils import KnowledgeBase

        paths = generation.LinkerPaths(
            ann_index=str(folder / "nmslib_index.bin"),
            tfidf_vectorizer=str(folder / "tfidf_vectorizer.joblib"),
            tfidf_vectors=str(folder / "tfidf_vectors_sparse.npz"),
            concept_aliases_list=str(folder / "concept_aliases.json"),
        )
        generator = generation.CandidateGenerator(
            generation.load_approximate_nearest_neighbours_index(paths),
            joblib_load(paths.tfidf_vectorizer),
            json.loads(Path(paths.concept_aliases_list).read_text("utf8")),
            KnowledgeBase(str(folder / "kb.jsonl")),
        )

        def link(documents: list[Any]) -> list[list[str | None]]:
            strings = [text[s:e] for text, spans in documents for s, e in spans]
            found = iter(
                max(candidates, key=lambda one: max(one.similarities)).concept_id
                if candidates
                else None
                for candidates in generator(strings, 5)
            )
            return [[next(found) for _ in spans] for _, spans in documents]

        return link


def joblib_load(path: str) -> Any:
    import joblib

    return joblib.load(path)


def _records(names: list[Any]) -> list[dict[str, Any]]:
    aliases: dict[str, list[str]] = {}
    for id_, name in names:
        aliases.setdefault(id_, []).append(name)
    return [
        {"concept_id": id_, "canonical_name": own[0], "aliases": own, "types": []}
        for id_, own in aliases.items()
    ]


class EntityLinker:
    """spaCy's, with names as aliases and equal priors: untrained, so without context."""

    def build(self, folder: Path, names: list[Any]) -> None:
        import spacy
        from spacy.kb import InMemoryLookupKB

        owners: dict[str, dict[str, None]] = {}
        for id_, name in names:
            owners.setdefault(name, {})[id_] = None

        def create(vocab: Any) -> InMemoryLookupKB:
            kb = InMemoryLookupKB(vocab, 1)
            for id_ in dict.fromkeys(id_ for id_, _ in names):
                kb.add_entity(id_, 1, [0.0])
            for name, ids in owners.items():
                kb.add_alias(name, list(ids), [1 / len(ids)] * len(ids))
            return kb

        nlp = spacy.blank("en")
        nlp.add_pipe("sentencizer")
        nlp.add_pipe("entity_linker", config={"incl_context": False}).set_kb(create)
        nlp.to_disk(folder / "model")

    def load(self, folder: Path, names: list[Any]) -> Link:
        import spacy

        nlp = spacy.load(folder / "model")

        def link(documents: list[Any]) -> list[list[str | None]]:
            found = []
            for doc, (_, spans) in zip(nlp.pipe(docs_of(nlp, documents)), documents):
                first = {ent.start_char: ent.kb_id_ for ent in doc.ents}
                found.append([first.get(start) for start, _ in spans])
            return found

        return link


def docs_of(nlp: Any, documents: list[Any]) -> list[Any]:
    """Docs with the given spans as entities."""
    from spacy.util import filter_spans

    docs = []
    for text, spans in documents:
        doc = nlp.make_doc(text)
        ents = (doc.char_span(s, e, "ENT", alignment_mode="expand") for s, e in spans)
        doc.ents = filter_spans([one for one in ents if one is not None])
        docs.append(doc)
    return docs


class Arbo:
    """Ours: untrained, or a saved pipeline."""

    def __init__(self, model: Path | None = None):
        self.model = model

    def build(self, folder: Path, names: list[Any]) -> None:
        import spacy

        if self.model is None:
            nlp = spacy.blank("en")
            nlp.add_pipe("arbo_linker").set_kb(folder.parent / "entities.jsonl")
            list(self._link(nlp, [("warm up", [(0, 4)])]))
            nlp.to_disk(folder / "model")

    def load(self, folder: Path, names: list[Any]) -> Link:
        import spacy

        nlp = spacy.load(self.model or folder / "model")
        return lambda documents: self._link(nlp, documents)

    @staticmethod
    def _link(nlp: Any, documents: list[Any]) -> list[list[str | None]]:
        from spacy_arbo_el.linker import find_linker

        key = find_linker(nlp).cfg["extension"]
        found = []
        for doc, (_, spans) in zip(nlp.pipe(docs_of(nlp, documents)), documents):
            first = {}
            for ent in doc.ents:
                candidates = ent._.get(key).candidates
                first[ent.start_char] = candidates[0].kb_id if candidates else None
            found.append([first.get(start) for start, _ in spans])
        return found


def rows_of(trained: list[Path]) -> dict[str, Any]:
    rows: dict[str, Any] = {
        "minilm": MiniLM(),
        "tfidf": TfIdf(),
        "scispacy": ScispaCy(),
        "entity_linker": EntityLinker(),
        "untrained": Arbo(),
    }
    return {**rows, **{"/".join(p.parts[-2:]): Arbo(p.absolute()) for p in trained}}


def run_child(row: Any, step: str, folder: Path, data: Path) -> dict[str, Any]:
    names = [tuple(one) for one in srsly.read_json(data / "names.json")]
    documents = srsly.read_json(data / "documents.json")
    if step == "build":
        row.build(folder, names)
        return {"KB": cpu_seconds()}
    link = row.load(folder, names)
    texts = [(text, [span[:2] for span in spans]) for text, spans in documents]
    link(texts[:1])
    first, seconds, found = cpu_seconds(), [], []
    for _ in range(ROUNDS):
        start = cpu_seconds()
        found = link(texts)
        seconds.append(cpu_seconds() - start)
    mentions = sum(len(spans) for _, spans in texts)
    gold = [span[2:] for _, spans in documents for span in spans]
    ranked = zip((one for each in found for one in each), gold)
    right = [
        (one in ids, is_new, is_shared)
        for one, (ids, is_new, is_shared) in ranked
        if ids
    ]
    three = next(
        ([(t, spans[:3])] for t, spans in texts if len(spans) >= 3), texts[:1]
    )
    calls = []
    for _ in range(CALLS):
        start = time.perf_counter()
        link(three)
        calls.append(1000 * (time.perf_counter() - start))
    calls.sort()
    return {
        "ACC": percent([is_right for is_right, _, _ in right]),
        "NEW": percent([is_right for is_right, is_new, _ in right if is_new]),
        "SAME": percent([is_right for is_right, _, is_shared in right if is_shared]),
        "m/s": mentions / statistics.median(seconds),
        "MB": resident_megabytes(),
        "FIRST": first,
        "P50": calls[len(calls) // 2],
        "P95": calls[int(0.95 * len(calls))],
    }


def percent(right: list[bool]) -> float:
    """The share of true values, 0 without any."""
    return 100 * sum(right) / max(len(right), 1)


def prepare(
    corpus: Path, kb: Path, train: Path | None, limit: int | None, data: Path
) -> tuple[int, int]:
    """Names, mentions and entities as files that each row reads.

    limit: The first so many documents with mentions are taken; None for all.
    RETURNS: How many documents there are, and how many mentions.
    """
    import spacy

    from spacy_arbo_el.corpora.reader import MentionCorpus
    from spacy_arbo_el.kb.entity import NIL
    from spacy_arbo_el.kb.importers import write_entities_jsonl

    nlp = spacy.blank("en")
    linker = nlp.add_pipe("arbo_linker")
    linker.set_kb(kb)
    entities = list(linker.kb)
    known = {entity.id for entity in entities}
    write_entities_jsonl(entities, data / "entities.jsonl")
    names = [
        (one.id, name) for one in entities if not one.is_unnamed for name in one.names
    ]
    srsly.write_json(data / "names.json", names)
    owners: dict[str, set[str]] = {}
    for kb_id, name in names:
        owners.setdefault(name.casefold(), set()).add(kb_id)
    examples = MentionCorpus(train)(nlp) if train else ()
    seen = {
        ent.text.casefold() for example in examples for ent in example.reference.ents
    }
    documents = []
    for example in MentionCorpus(corpus)(nlp):
        ents = example.reference.ents
        spans = []
        for ent in ents:
            ids = {id_ for id_ in ent.kb_id_.split("|") if id_ != NIL and id_ in known}
            folded = ent.text.casefold()
            is_shared = len(owners.get(folded, ())) > 1
            spans.append(
                (
                    ent.start_char,
                    ent.end_char,
                    sorted(ids),
                    folded not in seen,
                    is_shared,
                )
            )
        if spans:
            documents.append((example.reference.text, spans))
    documents = documents[:limit]
    srsly.write_json(data / "documents.json", documents)
    return len(documents), sum(len(spans) for _, spans in documents)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("kb", type=Path)
    parser.add_argument(
        "--train", type=Path, help="What the trained models were trained on"
    )
    parser.add_argument("--trained", type=Path, nargs="*", default=[])
    parser.add_argument("--rows", nargs="*")
    parser.add_argument("--documents", type=int, help="The first so many")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, help="A JSON file of the table.")
    args = parser.parse_args()
    rows = rows_of(args.trained)
    if args.child:
        name, step, folder, data = args.child
        print(json.dumps(run_child(rows[name], step, Path(folder), Path(data))))
        return
    # Vectors of the user's cache would be found, and their encoding not be measured.
    env = dict(os.environ, OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", ARBO_CACHE="")
    table: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        data = Path(temporary)
        counts = prepare(args.corpus, args.kb, args.train, args.documents, data)
        for name in args.rows or rows:
            table[name] = child(name, "build", data, env)
        turns: dict[str, list[dict[str, Any]]] = {name: [] for name in table}
        for _ in range(TURNS):
            for name, row in table.items():
                if "skipped" not in row:
                    turn = child(name, "link", data, env)
                    turns[name].append(turn)
                    if "skipped" in turn:
                        table[name] = turn
    print(
        f"{machine()}. Medians of {TURNS} turns. {counts[0]} documents, {counts[1]} mentions."
    )
    print(f"{'':24}" + "".join(f"{key:>9}" for key in COLUMNS))
    for name, row in table.items():
        if "skipped" not in row:
            row.update(medians(turns[name]))
        print_row(name, row)
    if args.output:
        srsly.write_json(args.output, table)


def child(name: str, step: str, data: Path, env: dict[str, str]) -> dict[str, Any]:
    """What a process of its own prints, or why it is skipped."""
    folder = data / name.replace("/", "_")
    folder.mkdir(exist_ok=True)
    command = [
        sys.executable,
        *sys.argv,
        "--child",
        name,
        step,
        str(folder),
        str(data),
    ]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode:
        return {"skipped": done.stderr.strip().splitlines()[-1]}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def medians(turns: list[dict[str, Any]]) -> dict[str, float]:
    """The median of each number over the turns of a row."""
    return {key: statistics.median(turn[key] for turn in turns) for key in turns[0]}


def machine() -> str:
    """The kind of CPU, and what of it decides the speed of a transformer."""
    import torch

    flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    vnni = "VNNI" if "vnni" in flags else "no VNNI"
    return f"{platform.machine()}, {torch.backends.cpu.get_cpu_capability()}, {vnni}"


def print_row(name: str, row: dict[str, Any]) -> None:
    if "skipped" in row:
        print(f"{name:24} skipped: {row['skipped']}")
    else:
        print(
            f"{name:24}" + "".join(f"{row[key]:9.1f}" for key in COLUMNS), flush=True
        )


if __name__ == "__main__":
    main()
