"""What saved pipelines answer, one line per mention, to see whether a change moved anything.

    python benchmarks/digest.py write OUT.jsonl CORPUS.spacy MODEL [MODEL ...] [--limit 100]
    python benchmarks/digest.py compare BEFORE.jsonl AFTER.jsonl

``write`` links the gold mentions of the first documents, without their ids: each document for
itself, then all in one graph. A line has the entity, its probability to four places, the first
eight candidates, the cluster within the document, and the id of the new entity within the corpus.
A MODEL is the folder of a pipeline. ``compare`` names the mentions that differ, and ends with
status 1 where there are any.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span

from spacy_arbo_el.linker import find_linker
from spacy_arbo_el.storage.files import write_file

N_CANDIDATES = 8
SHOWN = 10

Key = tuple[str, int, int, int]


def read_unlinked(nlp: Language, path: Path, limit: int) -> list[Doc]:
    """The first documents of a corpus, their mentions without ids."""
    docs = list(islice(DocBin().from_disk(path).get_docs(nlp.vocab), limit))
    for doc in docs:
        doc.ents = [
            Span(doc, ent.start, ent.end, label=ent.label_) for ent in doc.ents
        ]
    return docs


def digest(nlp: Language, path: Path, limit: int) -> Iterator[dict[str, Any]]:
    """A dict for each mention of a corpus."""
    linker = find_linker(nlp)
    alone = list(nlp.pipe(read_unlinked(nlp, path, limit)))
    together = read_unlinked(nlp, path, limit)
    linker.corpus.discover(together)
    for number, (doc, other) in enumerate(zip(alone, together)):
        for span, same in zip(doc.ents, other.ents):
            link, found = span._.arbo, same._.arbo
            yield {
                "doc": number,
                "start": span.start_char,
                "end": span.end_char,
                "kb_id": link.kb_id,
                "score": round(float(link.score), 4),
                "candidates": list(link.ids[:N_CANDIDATES]),
                "cluster": link.cluster,
                "kb_id_in_corpus": found.kb_id,
                "new_entity": found.cluster,
            }


def write(out: Path, corpus: Path, models: list[Path], limit: int) -> None:
    """Write the digests of pipelines on a corpus to one file."""
    lines = []
    for model in models:
        for row in digest(spacy.load(model), corpus, limit):
            lines.append(
                json.dumps({"model": model.name, **row}, ensure_ascii=False) + "\n"
            )
    write_file(out, "".join(lines).encode("utf8"))
    print(f"{out}: {len(lines)} mentions")


def read(path: Path) -> dict[Key, dict[str, Any]]:
    """The lines of a digest by pipeline and mention."""
    rows = map(json.loads, path.read_text(encoding="utf8").splitlines())
    return {(row["model"], row["doc"], row["start"], row["end"]): row for row in rows}


def compare(before: Path, after: Path) -> int:
    """Print how many mentions differ, by pipeline and column. RETURNS: 1 where any does."""
    old, new = read(before), read(after)
    if set(old) != set(new):
        print(f"{len(set(old) ^ set(new))} mentions are in one of the files only.")
    differences = [
        (key, column, old[key][column], new[key][column])
        for key in sorted(set(old) & set(new))
        for column in old[key]
        if old[key][column] != new[key][column]
    ]
    for model in sorted({key[0] for key in old}):
        total = sum(key[0] == model for key in old)
        counts: dict[str, int] = {}
        for key, column, *_ in differences:
            if key[0] == model:
                counts[column] = counts.get(column, 0) + 1
        text = (
            ", ".join(f"{column} {count}" for column, count in counts.items())
            or "equal"
        )
        print(f"{model}: {total} mentions, {text}")
    for key, column, was, now in differences[:SHOWN]:
        print(f"  {key}: {column} {was!r} -> {now!r}")
    return int(bool(differences) or set(old) != set(new))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    writer = commands.add_parser("write", help="Link a corpus with saved pipelines")
    writer.add_argument("out", type=Path)
    writer.add_argument("corpus", type=Path)
    writer.add_argument("models", type=Path, nargs="+")
    writer.add_argument(
        "--limit", type=int, default=100, help="Documents of the corpus"
    )
    comparer = commands.add_parser("compare", help="Compare two digests")
    comparer.add_argument("before", type=Path)
    comparer.add_argument("after", type=Path)
    args = parser.parse_args()
    if args.command == "compare":
        return compare(args.before, args.after)
    write(args.out, args.corpus, args.models, args.limit)
    return 0


if __name__ == "__main__":
    sys.exit(main())
