"""Many documents and calls: memory, speed, and answers while other threads edit.

    python benchmarks/soak.py MODEL CORPUS.spacy [--documents 20000] [--calls 2000]

Two parts, each in a separate process:

1. ``nlp.pipe`` over short documents, made of the corpus's sentences with mentions.
2. Eight threads that link while another thread adds, changes and removes entities, learns, forgets
   and saves. Each answer must be that of a state before or after an edit.

For 1 it prints the resident memory and the documents a second of each tenth; after the first tenth
memory should be flat. The last column is the time of the bare encoder on fixed mentions, measured
in turn with linking, over the time of linking: it does not depend on how fast the machine happens
to be, and should be constant.
"""

import argparse
import itertools
import multiprocessing
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

import spacy
from memory import resident_megabytes
from spacy.tokens import Doc, Span

from spacy_arbo_el.corpora.reader import MentionCorpus
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.linker import find_linker
from spacy_arbo_el.pipelines import save_pipeline

N_THREADS = 8
# Documents between two passes of the bare encoder.
BLOCK = 200
# Tokens on each side of a mention, in a short document.
CONTEXT = 12


def short_documents(nlp, corpus: Path):
    """One short document for each mention, again and again, each time with another number."""
    spans = [span for eg in MentionCorpus(corpus)(nlp) for span in eg.reference.ents]
    for number in itertools.count():
        for span in spans:
            first, last = max(span.start - CONTEXT, 0), span.end + CONTEXT
            part = span.doc[first:last].as_doc()
            # The number makes it another document.
            words = [*(token.text for token in part), str(number)]
            doc = Doc(nlp.vocab, words=words)
            doc.ents = [
                Span(doc, span.start - first, span.end - first, label=span.label_)
            ]
            yield doc


def soak(model: Path, corpus: Path, n_documents: int) -> None:
    """Link documents in a pipe, and print memory and speed."""
    nlp = spacy.load(model)
    linker = find_linker(nlp)
    print(f"nlp.pipe, {n_documents} documents")
    print(f"{'documents':>10}{'RSS (MB)':>10}{'docs/s':>8}{'encoder':>9}")
    docs = short_documents(nlp, corpus)
    reference = encoder_pass(
        linker, itertools.islice(short_documents(nlp, corpus), BLOCK)
    )
    blocks = n_documents // 10 // BLOCK
    memory, ratios = [], []
    for tenth in range(1, 11):
        linking = encoding = 0.0
        for _ in range(blocks):
            start = time.perf_counter()
            for _ in nlp.pipe(itertools.islice(docs, BLOCK), batch_size=64):
                pass
            linked = time.perf_counter()
            reference()
            linking += linked - start
            encoding += time.perf_counter() - linked
        memory.append(resident_megabytes())
        ratios.append(encoding / linking)
        count = blocks * BLOCK
        print(
            f"{tenth * count:>10}{memory[-1]:>10.0f}{count / linking:>8.0f}{ratios[-1]:>9.3f}"
        )
    later = ratios[1:]
    spread = max(abs(ratio / (sum(later) / len(later)) - 1) for ratio in later)
    print(
        f"largest difference from the mean ratio after the first tenth: {spread:.1%}"
    )
    grown = memory[-1] - memory[0]
    print(f"growth after the first tenth: {grown:.0f} MB, {grown / memory[0]:.1%}\n")


def encoder_pass(linker, docs):
    """A function that encodes the mentions of some documents, and nothing else."""
    spans = [list(doc.ents) for doc in docs]
    inputs = linker.stages.read(spans).inputs
    return lambda: linker.encoder.encode_mentions(inputs)


def edits(linker, nlp, corpus: Path, folder: Path):
    """Edits as functions, for ever. After each round of them the linker is as before."""
    documents = short_documents(nlp, corpus)
    for number in itertools.count():
        (span,), (other,) = next(documents).ents, next(documents).ents
        yield from one_round(linker, f"soak{number}", span, other)
        if number % 50 == 0:
            yield partial(save_pipeline, nlp, folder / "model")


def one_round(linker, name: str, span: Span, other: Span):
    """Edits of one entity and of two mentions."""
    yield lambda: linker.kb.add(Entity(name, span.text))
    yield lambda: linker.feedback.learn(span, name)
    yield lambda: linker.kb.update(Entity(name, other.text))
    yield lambda: linker.feedback.reject_link(other, name)
    yield linker.refresh
    yield lambda: linker.feedback.forget(other)
    yield lambda: linker.feedback.forget(span)
    yield lambda: linker.kb.remove(name)


def answer(linker, docs):
    """The links of documents as plain values."""
    return tuple(
        (link.kb_id, link.score, tuple(link.ids), tuple(link.scores))
        for of_doc in linker.predict(docs)
        for link in of_doc.values()
    )


def threads(model: Path, corpus: Path, n_calls: int) -> None:
    """Link in threads while another one edits; count the answers of no state."""
    nlp = spacy.load(model)
    linker = find_linker(nlp)
    texts = list(itertools.islice(short_documents(nlp, corpus), 4))
    states, seen, n_edits = {answer(linker, texts)}, [], 0
    stop, lock = threading.Event(), threading.Lock()
    errors = []

    def link() -> None:
        try:
            for _ in range(n_calls):
                result = answer(linker, texts)
                with lock:
                    seen.append(result)
        except Exception as error:
            errors.append(error)

    def edit() -> None:
        nonlocal n_edits
        try:
            with tempfile.TemporaryDirectory() as folder:
                for make_edit in edits(linker, nlp, corpus, Path(folder)):
                    if stop.is_set():
                        return
                    make_edit()
                    n_edits += 1
                    states.add(answer(linker, texts))
        except Exception as error:
            errors.append(error)

    start = time.perf_counter()
    workers = [threading.Thread(target=link) for _ in range(N_THREADS)]
    editor = threading.Thread(target=edit)
    for thread in (editor, *workers):
        thread.start()
    for thread in workers:
        thread.join()
    stop.set()
    editor.join()
    seconds = time.perf_counter() - start
    strange = sum(result not in states for result in seen)
    print(
        f"{N_THREADS} threads, {len(seen)} calls of {len(texts)} documents in {seconds:.0f} s,"
    )
    print(f"{n_edits} edits between, {len(states)} different states")
    print(f"errors: {len(errors)}; answers of no state: {strange}")
    for error in errors[:3]:
        print(repr(error))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--documents", type=int, default=20000)
    parser.add_argument("--calls", type=int, default=2000)
    args = parser.parse_args()
    parts = [
        (soak, (args.model, args.corpus, args.documents)),
        (threads, (args.model, args.corpus, args.calls)),
    ]
    for part, arguments in parts:
        process = multiprocessing.get_context("spawn").Process(
            target=part, args=arguments
        )
        process.start()
        process.join()


if __name__ == "__main__":
    main()
