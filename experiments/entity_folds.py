"""Accuracy on entities as if none of them had an exemplar, a quarter of them at a time.

    python entity_folds.py MODEL DEV.spacy

Each mention is scored without the exemplars of its entity, and with those of three quarters of the
others, by a ranker that was fitted on the other four parts of the documents. So all mentions are of
unseen entities. Beside it: the entity with the nearest name, and the difference with its 95 %
interval over documents.
"""

import argparse
from pathlib import Path

import numpy as np
import spacy

from spacy_arbo_el.corpora.docbin import read_docs
from spacy_arbo_el.fitting.calibrate import annotated_mentions
from spacy_arbo_el.linker import find_linker
from spacy_arbo_el.mentions.labels import is_gold
from spacy_arbo_el.ranking.feature_ranker import FeatureRanker
from spacy_arbo_el.ranking.features import CandidateFeatures
from spacy_arbo_el.ranking.ranker_fit import folds_of

FOLDS, SAMPLES = 5, 1000


def interval(
    values: np.ndarray, documents: np.ndarray, samples: int = SAMPLES
) -> np.ndarray:
    """The 95 % interval of the mean over bootstrap samples of the documents: (2,) float."""
    sums, counts = np.bincount(documents, values), np.bincount(documents)
    chosen = np.random.default_rng(0).integers(
        len(counts), size=(samples, len(counts))
    )
    means = sums[chosen].sum(axis=1) / counts[chosen].sum(axis=1)
    return np.percentile(means, [2.5, 97.5])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("dev", type=Path)
    args = parser.parse_args()
    linker = find_linker(spacy.load(args.model))
    linker.refresh()
    stages, ranker = linker.stages, FeatureRanker(pretrained=False)
    docs = read_docs(args.dev, linker.vocab)
    found = annotated_mentions(stages, docs)
    batch, neighbours, gold, _ = found
    rows, parts = ranker.gather_withheld(found, stages.context)
    features, right = CandidateFeatures.concat(parts), np.zeros(len(rows))
    for fold in range(FOLDS):
        others = np.flatnonzero(batch.documents % FOLDS != fold)
        some = found.take(others)
        weights = ranker.fit(
            some, stages.context, folds_of(some.batch.documents), FOLDS
        )[0].weights
        held_out = np.flatnonzero(batch.documents[rows] % FOLDS == fold)
        best = weights.logits(features.take(held_out)).argmax(axis=1)
        entities = features.entities[held_out, best]
        right[held_out] = is_gold(entities[:, None], gold[rows[held_out]])[:, 0]
    names = is_gold(neighbours.entities.first(1).ids[rows], gold[rows])[:, 0]
    low, high = interval(right - names, batch.documents[rows])
    print(
        f"{len(rows)} mentions: R@1 {right.mean():.4f}, names alone {names.mean():.4f}"
    )
    print(f"difference {(right - names).mean():+.4f} ({low:+.4f} to {high:+.4f})")


if __name__ == "__main__":
    main()
