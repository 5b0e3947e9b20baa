"""The raw text of the training parts of all biomedical corpora, for silver mentions.

    python raw_texts.py DATA OUTPUT.jsonl

Each line has the id and the text of a document, and nothing else. Left out are the documents of
``medic_half/test_pmids.txt`` and of the dev parts of NCBI and BC5CDR, which the figures are of, in
whatever corpus they occur. A document of several corpora is written once.
"""

import sys
from collections import Counter
from pathlib import Path

import readers  # noqa: F401  registers MedMentions
import srsly

from spacy_arbo_el.corpora.read import read, read_ids
from spacy_arbo_el.storage.files import write_file

TRAIN = [
    ("ncbi_disease/NCBItrainset_corpus.txt", "pubtator"),
    ("bc5cdr/CDR_TrainingSet.PubTator.txt", "pubtator"),
    ("medmentions/st21pv_train.jsonl", "medmentions"),
    ("craft/cl_train.jsonl", "jsonl"),
    ("craft/so_train.jsonl", "jsonl"),
    ("craft/uberon_train.jsonl", "jsonl"),
]
SCORED = [
    "ncbi_disease/NCBIdevelopset_corpus.txt",
    "bc5cdr/CDR_DevelopmentSet.PubTator.txt",
]


def main(data: Path, output: Path) -> None:
    left_out = set(read_ids(data / "medic_half" / "test_pmids.txt"))
    for path in SCORED:
        left_out.update(text.id for text in read(data / path, "pubtator"))
    texts, counts = {}, Counter()
    for path, format in TRAIN:
        for text in read(data / path, format):
            if text.id in left_out:
                counts["left out"] += 1
            elif text.id not in texts:
                texts[text.id] = text.text
                counts[path] += 1
    lines = [
        srsly.json_dumps({"id": id_, "text": text}) for id_, text in texts.items()
    ]
    write_file(output, "\n".join([*lines, ""]).encode("utf8"))
    for name, count in counts.items():
        print(f"{count:>6} {name}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
