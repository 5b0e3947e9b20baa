"""Recall by rounds of hard negatives: the shape of Figure 2 of DEER (Gillick et al. 2019).

    python benchmarks/rounds.py deer.cfg corpus/bc5cdr_train.spacy kb/medic_half \
        --dev corpus/bc5cdr_dev.spacy
    python benchmarks/rounds.py deer.cfg corpus/zelda_wned-wiki.spacy kb/wikipedia --folds 5

The config's ``objective.refresh.every`` and batch size say how many steps a round has. After each
round it prints recall@1 over all entities, and recall@1 among the gold entities of 100 mentions. A
mention whose entity is not in the knowledge base counts as wrong.
"""

import argparse
import time
from pathlib import Path
from typing import List, Optional, Sequence, Tuple

import numpy as np
import spacy
from folds import initialized, others_of, split
from spacy.tokens import Doc
from spacy.util import load_config, registry
from thinc.api import Config, set_dropout_rate

from spacy_arbo_el.corpora.reader import read_docs
from spacy_arbo_el.linker import ArboLinker, find_linker
from spacy_arbo_el.training.table import GoldTable

BATCH = 100


def recalls(linker: ArboLinker, docs: Sequence[Doc]) -> Tuple[float, float, int]:
    """Recall@1 over all entities, recall@1 in batches, and the number of mentions."""
    linker.refresh()
    kb, similarity = linker.kb, linker.similarity
    batch = linker.stages.encode(linker.reader.read_docs(docs))
    texts = kb.distinct_texts(linker.datastore.settings.verbalization)
    vectors = similarity.prepare(texts.vectors(kb.rows))
    table = GoldTable(batch.records, kb, texts, np.zeros(len(texts), dtype=np.int64))
    labelled = np.flatnonzero(table.cluster >= 0)
    labelled = np.random.default_rng(0).permutation(labelled)
    is_gold = table.mention_texts
    hits = in_batch = 0
    for start in range(0, len(labelled), BATCH):
        mentions = labelled[start : start + BATCH]
        scores = similarity.blocks(batch.encoded[mentions], vectors)
        gold = is_gold[mentions].toarray() > 0
        hits += int(np.take_along_axis(gold, scores.argmax(axis=1)[:, None], axis=1).sum())
        among = np.where(gold.any(axis=0), scores, -np.inf)
        in_batch += int(np.take_along_axis(gold, among.argmax(axis=1)[:, None], axis=1).sum())
    return hits / len(labelled), in_batch / len(labelled), len(labelled)


def train(
    config: Config, train_docs: List[Doc], dev_docs: List[Doc], kb: Path, rounds: int
) -> list:
    """The recalls of dev after each round."""
    linker = find_linker(initialized(config, train_docs, kb))
    training = registry.resolve({"training": config["training"]})["training"]
    size, optimizer = config["training"]["batcher"]["size"], training["optimizer"]
    set_dropout_rate(linker.model, training["dropout"])
    rows: List[Tuple] = []
    steps, trainer, began = 0, linker.trainer, time.perf_counter()
    while len(rows) <= rounds:
        # As batch_by_mention.v1 does, without the documents.
        order = np.random.permutation(len(linker.exemplars))
        for start in range(0, len(order), size):
            trainer.step(np.sort(order[start : start + size]))
            linker.finish_update(optimizer)
            optimizer.step_schedules()
            steps += 1
            if trainer.seen >= trainer.refresh.every and len(rows) <= rounds:
                pairs = len(trainer.rounds.mentions)
                rows.append((trainer.rounds.number, steps, pairs, *recalls(linker, dev_docs)))
                number, _, _, recall, in_batch, _ = rows[-1]
                seconds = time.perf_counter() - began
                print(
                    f"round {number}: {steps} steps, {pairs} pairs, recall@1 {recall:.4f}, "
                    f"in batch {in_batch:.4f}, {seconds:.0f} s",
                    flush=True,
                )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config", type=Path)
    parser.add_argument("train", type=Path)
    parser.add_argument("kb", type=Path)
    parser.add_argument("--dev", type=Path)
    parser.add_argument("--folds", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--set", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"))
    arguments = parser.parse_args()
    overrides = {name: _value(value) for name, value in arguments.set}
    for name in ("train", "dev", "kb"):
        overrides[f"paths.{name}"] = str(getattr(arguments, name) or arguments.train)
    config = load_config(arguments.config, overrides=overrides, interpolate=True)
    # There is nothing to save, and so nothing to calibrate.
    config["training"]["before_to_disk"] = None
    vocab = spacy.blank(config["nlp"]["lang"]).vocab
    docs = list(read_docs(arguments.train, vocab))
    parts = _parts(docs, arguments.dev, arguments.folds, vocab)
    results = [train(config, *part, arguments.kb, arguments.rounds) for part in parts]
    print("\n| round | recall@1 | in-batch recall@1 | mentions | hard negatives |")
    print("|---:|---:|---:|---:|---:|")
    for rows in zip(*results):
        counts = np.array([row[5] for row in rows])
        means = [float(np.dot([row[i] for row in rows], counts) / counts.sum()) for i in (3, 4)]
        pairs = np.mean([row[2] for row in rows])
        print(f"| {rows[0][0]} | {means[0]:.4f} | {means[1]:.4f} | {counts.sum()} | {pairs:.0f} |")


def _parts(
    docs: List[Doc], dev: Optional[Path], folds: int, vocab: spacy.vocab.Vocab
) -> List[Tuple[List[Doc], List[Doc]]]:
    """Documents to train on and to score, once or for each fold."""
    if dev is not None:
        return [(docs, list(read_docs(dev, vocab)))]
    parts = split(docs, folds)
    return [(others_of(part, parts), part) for part in parts]


def _value(text: str) -> object:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"null": None, "true": True, "false": False}.get(text, text)


if __name__ == "__main__":
    main()
