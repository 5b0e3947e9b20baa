"""Iterative prediction against linking all mentions at once (VERBALIZED, §4 and Table 11).

    python benchmarks/iteration.py MODEL CORPUS.spacy [--share 0.34] [--limit 0]

The pipeline links the given mentions of a corpus twice: by its inference procedure, and by
``IterativePrediction.v1`` round it. Printed are the accuracy on mentions whose entity is in the
knowledge base, the mentions that became wrong and that became right, and seconds.
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import List, Tuple

import numpy as np
import spacy

from spacy_arbo_el.corpora.reader import read_docs
from spacy_arbo_el.linker import find_linker
from spacy_arbo_el.linking.iteration import IterativePrediction
from spacy_arbo_el.linking.stages import LinkingStages
from spacy_arbo_el.mentions.records import gold_ids


def link(stages: LinkingStages, docs, batch_size: int = 32) -> Tuple[List[str], float]:
    """The entity of each mention, whatever its probability, and seconds."""
    start, links = time.perf_counter(), []
    for first in range(0, len(docs), batch_size):
        spans = [list(doc.ents) for doc in docs[first : first + batch_size]]
        links.extend(link.kb_id for link in stages.link(spans, 0.0).links)
    return links, time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--share", type=float, default=0.34)
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--gpu-id", type=int, default=-1)
    args = parser.parse_args()
    if args.gpu_id >= 0:
        spacy.require_gpu(args.gpu_id)
    nlp = spacy.load(args.model)
    linker = find_linker(nlp)
    docs = [doc for doc in read_docs(args.corpus, nlp.vocab) if doc.ents][: args.limit or None]
    gold = [gold_ids(span) for doc in docs for span in doc.ents]
    scored = np.array([any(one in linker.kb for one in ids) for ids in gold])
    plain = linker.stages
    if isinstance(plain.inference, IterativePrediction):
        plain = replace(plain, inference=plain.inference.inference)
    iterative = replace(plain, inference=IterativePrediction(plain.inference, args.share))
    link(plain, docs[:2])
    right, seconds = [], []
    for stages in (plain, iterative):
        links, taken = link(stages, docs)
        right.append(np.array([one in ids for one, ids in zip(links, gold)])[scored])
        seconds.append(taken)
    before, after = right
    print(
        f"{len(before)} mentions in {len(docs)} documents, {iterative.inference.rounds} rounds more"
    )
    print("| | accuracy | right to wrong | wrong to right | seconds |\n|---|---|---|---|---|")
    print(f"| at once | {before.mean():.4f} | | | {seconds[0]:.1f} |")
    changed = f"{(before & ~after).sum()} | {(~before & after).sum()}"
    print(f"| iterative | {after.mean():.4f} | {changed} | {seconds[1]:.1f} |")


if __name__ == "__main__":
    main()
