"""What a cross-encoder changes, with an interval: paired by mention, over several corpora.

    python benchmarks/paired.py MODEL CORPUS.spacy [MODEL CORPUS.spacy ...] [--consensus]

Each MODEL is a pipeline of ``arbo rerank``. It links its corpus with and without the cross-encoder,
calibrated on the other parts of ``--folds``. The difference is that of the numbers of correct
links, by the number of annotated mentions. The interval of 95 % is a bootstrap over documents,
since the mentions of a document are not independent of each other.
"""

import argparse
from pathlib import Path
from typing import List, NamedTuple, Tuple

import numpy as np
import spacy
from scipy.stats import bootstrap

from spacy_arbo_el.corpora.reader import MentionCorpus
from spacy_arbo_el.evaluation.cross_encoder import rows_of_cross_encoder
from spacy_arbo_el.evaluation.report import outcomes_of_stages
from spacy_arbo_el.linker import find_linker

RESAMPLES = 5000
WITHOUT = "without the cross-encoder"


class Counts(NamedTuple):
    """Numbers of each of d documents, (d,) each.

    mentions: The annotated mentions.
    before: Those that are linked correctly without the cross-encoder.
    after: Those that are with it.
    """

    mentions: np.ndarray
    before: np.ndarray
    after: np.ndarray


def difference(after: np.ndarray, before: np.ndarray, mentions: np.ndarray, axis: int = -1):
    """The difference of accuracies. The arrays have documents along ``axis``."""
    return (after.sum(axis) - before.sum(axis)) / mentions.sum(axis)


def interval(counts: Counts, seed: int = 0) -> Tuple[float, float]:
    """The interval of 95 % of the difference of accuracies, by a bootstrap over documents.

    Without two documents that have mentions there is nothing to draw from: nan.
    """
    counts = Counts(*(part[counts.mentions > 0] for part in counts))
    if len(counts.mentions) < 2:
        return np.nan, np.nan
    if (counts.after == counts.before).all():
        return 0.0, 0.0
    found = bootstrap(
        (counts.after, counts.before, counts.mentions),
        difference,
        paired=True,
        n_resamples=RESAMPLES,
        method="percentile",
        random_state=seed,
    ).confidence_interval
    return float(found.low), float(found.high)


def counts_of(model: Path, corpus: Path, folds: int, consensus: bool) -> Counts:
    """Link a corpus with and without the cross-encoder of a pipeline."""
    nlp = spacy.load(model)
    linker = find_linker(nlp)
    if not rows_of_cross_encoder(linker.stages):
        raise SystemExit(f"{model} has no trained cross-encoder: give a pipeline of arbo rerank")
    examples = list(MentionCorpus(corpus)(nlp))

    def variants(stages):
        rows = {"": stages, **rows_of_cross_encoder(stages)}
        after = "consensus" if consensus else ""
        before = f"{after}, {WITHOUT}" if consensus else WITHOUT
        return {"before": rows[before], "after": rows[after]}

    found = outcomes_of_stages(nlp, examples, variants, folds=folds)
    # Outcomes come part by part. Those without a gold mention are none here: mentions are given.
    order = [eg.reference for part in range(folds) for eg in examples[part::folds]]
    spans = ((s for s in linker.reader.all_mentions(doc) if s.kb_id_) for doc in order)
    mentions = np.array([len({(s.start_char, s.end_char) for s in group}) for group in spans])
    document = np.repeat(np.arange(len(order)), mentions)
    before, after = (
        np.bincount(document, [outcome.is_correct for outcome in found[name]], len(order))
        for name in ("before", "after")
    )
    return Counts(mentions, before, after)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", type=Path, nargs="+", help="Pipelines and corpora, in turn")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--consensus", action="store_true", help="Link in consensus")
    args = parser.parse_args()
    if len(args.paths) % 2:
        parser.error("a corpus must follow each pipeline")
    pairs = list(zip(args.paths[::2], args.paths[1::2]))
    rows: List[Tuple[str, Counts]] = [
        (corpus.stem, counts_of(model, corpus, args.folds, args.consensus))
        for model, corpus in pairs
    ]
    if len(rows) > 1:
        together = Counts(*(np.concatenate(parts) for parts in zip(*(row[1] for row in rows))))
        rows.append(("together", together))
    print("| | mentions | without | with | difference | 95 % interval |\n|---|---|---|---|---|---|")
    for name, counts in rows:
        total = int(counts.mentions.sum())
        before, after = counts.before.sum() / total, counts.after.sum() / total
        low, high = interval(counts)
        print(
            f"| {name} | {total} | {before:.4f} | {after:.4f} | {after - before:+.4f} "
            f"| {low:+.4f} to {high:+.4f} |"
        )


if __name__ == "__main__":
    main()
