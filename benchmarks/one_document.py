"""CPU time of linking a document with many mentions of one name, as a table.

    python benchmarks/one_document.py [--counts 2000 4000 8000 20000]

The exponent is that of the growth since the first row of a name.
"""

import argparse
import math
import time

import spacy
from spacy.tokens import Doc, Span

KB = [
    "Kestrel Motors",
    "Kestrel Airways",
    "blue fever",
    "marsh cough",
    "Tarnow",
    "Velm",
    "gout",
]
LINKED, NIL = "Kestrel Motors", "Zorblax Foods"


def document(vocab, name: str, count: int) -> Doc:
    """A document that mentions a name so often."""
    words = f"{name} said so today .".split()
    doc = Doc(vocab, words * count)
    starts = range(0, len(doc), len(words))
    doc.ents = [Span(doc, start, start + len(name.split()), "ORG") for start in starts]
    return doc


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--counts", type=int, nargs="+", default=[2000, 4000, 8000, 20000]
    )
    counts = parser.parse_args().counts
    nlp = spacy.blank("en")
    linker = nlp.add_pipe("arbo_linker")
    entities = [
        {
            "id": f"E{number}",
            "title": title,
            "description": f"The {title} of number {number}.",
        }
        for number, title in enumerate(KB)
    ]
    linker.set_kb(entities)
    print("| name | mentions | seconds | exponent |\n|---|---:|---:|---:|")
    for name in (LINKED, NIL):
        # Functions are compiled before, those for many mentions too.
        linker(document(nlp.vocab, name, 1500))
        first = None
        for count in counts:
            doc = document(nlp.vocab, name, count)
            start = time.process_time()
            linker(doc)
            seconds = time.process_time() - start
            growth = ""
            if first:
                growth = (
                    f"{math.log(seconds / first[1]) / math.log(count / first[0]):.2f}"
                )
            first = first or (count, seconds)
            print(f"| {name} | {count} | {seconds:.2f} | {growth} |", flush=True)


if __name__ == "__main__":
    main()
