"""Copy a corpus with the mentions alone whose string no mention of the training documents has.

    python new_strings.py TRAIN.spacy DEV.spacy OUTPUT.spacy

Case does not count.
"""

import sys
from pathlib import Path

import spacy
from spacy.tokens import DocBin

from spacy_arbo_el.corpora.docbin import read_docs
from spacy_arbo_el.names.spellings import folded


def main(train: str, dev: str, output: str) -> None:
    vocab = spacy.blank("en").vocab
    strings = {
        folded(span.text) for doc in read_docs(Path(train), vocab) for span in doc.ents
    }
    docs = list(read_docs(Path(dev), vocab))
    for doc in docs:
        doc.ents = [span for span in doc.ents if folded(span.text) not in strings]
    DocBin(docs=[doc for doc in docs if doc.ents], store_user_data=True).to_disk(
        output
    )
    print(f"{output}: {sum(len(doc.ents) for doc in docs)} mentions")


if __name__ == "__main__":
    main(*sys.argv[1:])
