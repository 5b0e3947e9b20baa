"""Split a corpus into halves by document: to train on one, and to score on the other.

    python halves.py corpus/zelda_wned-wiki.spacy corpus/wned_a.spacy corpus/wned_b.spacy

Documents are assigned by chance, always the same.
"""

import sys
from pathlib import Path

import numpy as np
import spacy

from spacy_arbo_el.corpora.docbin import read_docs, write_docbin


def main(corpus: Path, *halves: Path) -> None:
    docs = list(read_docs(corpus, spacy.blank("en").vocab))
    part = np.random.default_rng(0).permutation(len(docs)) % len(halves)
    for number, path in enumerate(halves):
        write_docbin([docs[i] for i in np.flatnonzero(part == number)], path)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
