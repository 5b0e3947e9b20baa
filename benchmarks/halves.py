"""Two halves of a corpus by document: to train on each, and to score on the other.

    python benchmarks/halves.py corpus/zelda_wned-wiki.spacy corpus/wned_a.spacy corpus/wned_b.spacy

Documents are assigned to halves by chance, as benchmarks/folds.py assigns them to folds.
"""

import argparse
from pathlib import Path

import spacy
from folds import split

from spacy_arbo_el.corpora.convert import write_docbin
from spacy_arbo_el.corpora.reader import read_docs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("halves", type=Path, nargs=2, metavar="HALF", help="Files to write")
    options = parser.parse_args()
    docs = list(read_docs(options.corpus, spacy.blank("en").vocab))
    for path, half in zip(options.halves, split(docs, len(options.halves))):
        write_docbin(half, path)
        print(f"{path}: {len(half)} documents, {sum(len(doc.ents) for doc in half)} mentions")


if __name__ == "__main__":
    main()
