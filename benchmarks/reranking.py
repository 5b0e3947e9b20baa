"""What a cross-encoder costs and gives: its speed, and its accuracy by the number of candidates.

    python benchmarks/reranking.py MODEL CORPUS.spacy [--k 2 4 8 16] [--sure 0.8 0.9 0.95]

MODEL is a pipeline of ``arbo rerank``. The first table has pairs of mention and candidate a second:
of the bare transformer over pairs that are read, sorted and padded before, and of ``nlp.pipe``,
which also retrieves and decides; then of a bare forward and backward pass, and of a training step
without the optimizer. The second has mentions a second and the accuracy on the corpus: without the
cross-encoder, with all mentions scored, with sure mentions skipped, and with other numbers of
candidates. Accuracies are calibrated on the other parts of ``--folds``.
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Dict, List

import numpy as np
import spacy
import torch

from spacy_arbo_el.corpora.reader import MentionCorpus
from spacy_arbo_el.encoders.inputs import length_batches
from spacy_arbo_el.encoders.shim import shim_of
from spacy_arbo_el.encoders.transformer import in_second_part
from spacy_arbo_el.evaluation.report import outcomes_of_stages
from spacy_arbo_el.linker import find_linker

FORWARD_TOKENS, BACKWARD_TOKENS = 1536, 2560


def padded_batches(scorer, pairs, tokens: int) -> List[Dict[str, torch.Tensor]]:
    """The inputs of a transformer for pairs, sorted by length."""
    batches = []
    for passages in length_batches(pairs.lengths, tokens, mixed=True):
        part = pairs.take(pairs.spans_in(passages))
        ids = torch.from_numpy(part.padded(0))
        mask = torch.arange(ids.shape[1]) < torch.from_numpy(part.lengths)[:, None]
        types = in_second_part(ids, scorer.tokenizer.specials) & mask
        keys = ("input_ids", "attention_mask", "token_type_ids")
        batches.append(dict(zip(keys, (ids, mask.long(), types.long()))))
    return batches


def bare_forward(scorer, pairs) -> float:
    """Seconds of the transformer alone."""
    shim, batches = shim_of(scorer.tower), padded_batches(scorer, pairs, FORWARD_TOKENS)
    shim._model.eval()
    start = time.perf_counter()
    with torch.no_grad(), shim.autocast():
        for batch in batches:
            shim._model(**batch)
    return time.perf_counter() - start


def bare_backward(scorer, pairs) -> float:
    """Seconds of the transformer's forward and backward pass."""
    shim, batches = shim_of(scorer.tower), padded_batches(scorer, pairs, BACKWARD_TOKENS)
    shim._model.train()
    start = time.perf_counter()
    for batch in batches:
        with shim.autocast(training=True):
            output = shim._model(**batch).last_hidden_state[:, 0]
        output.float().sum().backward()
    seconds = time.perf_counter() - start
    shim._model.zero_grad()
    return seconds


def training_step(scorer, pairs) -> float:
    """Seconds of a training step over the pairs, without the optimizer."""
    start = time.perf_counter()
    scores, backprop = scorer.begin_update(pairs)
    backprop(np.ones_like(scores))
    seconds = time.perf_counter() - start
    shim_of(scorer.tower)._model.zero_grad()
    return seconds


def linking(linker, docs, reranker) -> float:
    """Seconds of ``nlp.pipe``'s work over documents."""
    stages = replace(linker.stages, reranker=reranker)
    copies = [doc.copy() for doc in docs]
    start = time.perf_counter()
    linker.link_docs(copies, stages)
    return time.perf_counter() - start


def all_pairs(linker, docs):
    stages = linker.stages
    batch = stages.encode(stages.reader.read_docs(docs))
    neighbours = stages.retrieve(batch)
    with stages.datastore.reading():
        scored = stages.reranker.score(batch, neighbours, stages.context)
        valid = np.isfinite(scored.scores)
        return stages.reranker.pairs(batch, np.where(valid, scored.first, -1), stages.context)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--k", type=int, nargs="*", default=[2, 4, 8, 16])
    parser.add_argument("--sure", type=float, nargs="*", default=[0.8, 0.9, 0.95])
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=int, default=0, help="The most documents; 0 for all")
    parser.add_argument("--pairs", type=int, default=256, help="Pairs of a training step")
    args = parser.parse_args()
    nlp = spacy.load(args.model)
    linker = find_linker(nlp)
    reranker = replace(linker.reranker, sure=1.0)
    linker.reranker = reranker
    scorer = reranker.scorer.scorer
    examples = list(MentionCorpus(args.corpus, limit=args.limit)(nlp))
    docs = [example.predicted for example in examples]
    pairs = all_pairs(linker, docs)
    # Whole passages.
    few = pairs.take(np.flatnonzero(pairs.passage <= pairs.passage[: args.pairs].max()))
    mentions = len(linker.reader.read_docs(docs))
    linking(linker, docs, reranker)
    seconds: Dict[str, List[float]] = {}
    variants = {"without": reranker.ranker, "all": reranker}
    variants.update({f"sure {p:g}": replace(reranker, sure=p) for p in args.sure})
    for _ in range(args.rounds):
        seconds.setdefault("bare", []).append(bare_forward(scorer, pairs))
        seconds.setdefault("backward", []).append(bare_backward(scorer, few))
        seconds.setdefault("step", []).append(training_step(scorer, few))
        for name, variant in variants.items():
            seconds.setdefault(name, []).append(linking(linker, docs, variant))
    best = {name: min(times) for name, times in seconds.items()}
    print(f"{len(pairs)} pairs of {mentions} mentions, {len(docs)} documents")
    print(f"{torch.get_num_threads()} threads, the best of {args.rounds} rounds\n")
    print("| | pairs/s | ratio |\n|---|---|---|")
    print(f"| bare forward | {len(pairs) / best['bare']:.1f} | |")
    ratio = best["bare"] / best["all"]
    print(f"| nlp.pipe | {len(pairs) / best['all']:.1f} | {ratio:.3f} |")
    print(f"| bare forward and backward | {len(few) / best['backward']:.1f} | |")
    ratio = best["backward"] / best["step"]
    print(f"| training step | {len(few) / best['step']:.1f} | {ratio:.3f} |\n")

    def stages_of(stages):
        fitted = stages.reranker
        rows = {"without": replace(stages, reranker=fitted.ranker), "all": stages}
        for p in args.sure:
            rows[f"sure {p:g}"] = replace(stages, reranker=replace(fitted, sure=p))
        for k in args.k:
            # The weights of the features are those that were fitted on the configured number.
            rows[f"k = {k}"] = replace(stages, reranker=replace(fitted, n_reranked=k))
            alone = replace(fitted, n_reranked=k, as_feature=False)
            rows[f"k = {k}, by the scores"] = replace(stages, reranker=alone)
        return rows

    print("| | accuracy | mentions/s |\n|---|---|---|")
    for name, found in outcomes_of_stages(nlp, examples, stages_of, folds=args.folds).items():
        accuracy = np.mean([outcome.is_correct for outcome in found])
        speed = f"{mentions / best[name]:.1f}" if name in best else ""
        print(f"| {name} | {accuracy:.4f} | {speed} |")


if __name__ == "__main__":
    main()
