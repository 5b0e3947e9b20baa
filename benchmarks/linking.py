"""The share of encoding in linking: ``nlp.pipe`` against the bare encoder.

    python benchmarks/linking.py MODEL CORPUS.spacy

Both encode the same windows of the same mentions. The bare encoder is the Hugging Face model alone,
in the precision of the linker. Its windows are read, sorted by length and padded before the clock
starts. It uses the batch size that was fastest in a first round. The two alternate, and the best
time of each counts. The share of padding is that of all passes of ``nlp.pipe``, of names, contexts
and descriptions.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import spacy
import torch

from spacy_arbo_el.corpora.reader import MentionCorpus
from spacy_arbo_el.encoders import transformer
from spacy_arbo_el.encoders.shim import shim_of
from spacy_arbo_el.linker import find_linker

BATCH_SIZES = (16, 32, 64)


def bare_forward(shim, windows, batch_size: int) -> float:
    """Seconds of the encoder's forward pass over all windows."""
    order = np.argsort(-windows.lengths, kind="stable")
    batches = [order[i : i + batch_size] for i in range(0, len(order), batch_size)]
    inputs = [prepare(windows.take(batch)) for batch in batches]
    shim._model.eval()
    start = time.perf_counter()
    with torch.no_grad(), shim.autocast():
        for ids, mask in inputs:
            shim._model(
                input_ids=ids.to(shim.device), attention_mask=mask.to(shim.device)
            )
    if shim.device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def prepare(windows):
    """Token ids and attention mask, padded."""
    ids = torch.from_numpy(windows.padded(0))
    mask = torch.arange(ids.shape[1]) < torch.from_numpy(windows.lengths)[:, None]
    return ids, mask.long()


def linking(nlp, docs) -> float:
    """Seconds of ``nlp.pipe`` over all documents."""
    copies = [doc.copy() for doc in docs]
    start = time.perf_counter()
    for _ in nlp.pipe(copies):
        pass
    return time.perf_counter() - start


def padding(nlp, docs) -> tuple[int, int, int]:
    """Forward passes of ``nlp.pipe``, their word pieces, and how many of these are padding."""
    passes = []
    span_batches = transformer._span_batches

    def count(inputs, *settings):
        batches, tokens = span_batches(inputs, *settings)
        pieces = inputs.lengths[np.unique(inputs.passage)].sum()
        passes.append((len(batches), sum(tokens), sum(tokens) - pieces))
        return batches, tokens

    transformer._span_batches = count
    try:
        linking(nlp, docs)
    finally:
        transformer._span_batches = span_batches
    return tuple(map(int, np.sum(passes, axis=0)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--gpu-id", type=int, default=-1)
    args = parser.parse_args()
    if args.gpu_id >= 0:
        spacy.require_gpu(args.gpu_id)
    nlp = spacy.load(args.model)
    linker = find_linker(nlp)
    docs = [example.predicted for example in MentionCorpus(args.corpus)(nlp)]
    windows = linker.reader.read_docs(docs).inputs
    shim = shim_of(linker.model.get_ref("mention"))
    linking(nlp, docs)
    size = min(BATCH_SIZES, key=lambda size: bare_forward(shim, windows, size))
    bare, full = [], []
    for _ in range(args.rounds):
        bare.append(bare_forward(shim, windows, size))
        full.append(linking(nlp, docs))
    n_passes, pieces, padded = padding(nlp, docs)
    count = len(windows)
    print(
        f"{count} mentions in {len(docs)} documents, KB of {len(linker.kb.rows)} names,"
    )
    print(f"{len(linker.exemplars)} exemplars, {torch.get_num_threads()} threads")
    print(
        f"{n_passes} passes of {pieces} word pieces, {padded / max(pieces, 1):.1%} of them padding"
    )
    print(f"bare encoder  {count / min(bare):8.1f} mentions/s")
    print(f"nlp.pipe      {count / min(full):8.1f} mentions/s")
    print(
        f"ratio         {min(bare) / min(full):8.3f}   (median round: "
        f"{np.median(bare) / np.median(full):.3f})"
    )


if __name__ == "__main__":
    main()
