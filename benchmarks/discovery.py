"""Clusters of mentions across documents, as in Table 5 of the arborescence paper.

    python benchmarks/discovery.py MODEL TRAIN.spacy DEV.spacy [--part 2500] [--mentions 4000]
        [--output SCORES.json]
    python benchmarks/discovery.py MODEL --thresholds CORPUS.spacy [CORPUS.spacy ...]

The mentions of all documents are clustered by their vectors, without a knowledge base. The methods
are those of this package, with edges from the 4 nearest mentions and between those of one name, and
those of scikit-learn and SciPy. All use the same vectors. The threshold of each method is the one
with the best adjusted Rand index on the last documents of the training set; "as configured" has
that of the pipeline. Labels of mentions do not count. There are three settings:

ALL: All mentions are clustered and scored.
ALL/UNSEEN: All mentions are clustered. Those of entities without a training mention are scored.
UNSEEN ONLY: Only the latter are clustered and scored.

With --thresholds, about 4,000 mentions of each corpus, or all, are clustered at several
probabilities that two mentions are the same entity, beside equal strings; nothing is tuned.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import spacy
import srsly
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse import csr_matrix
from scipy.spatial.distance import squareform
from sklearn.cluster import DBSCAN, HDBSCAN
from sklearn.metrics import adjusted_rand_score
from spacy.tokens import Doc

from spacy_arbo_el.base.calibration import Calibration
from spacy_arbo_el.corpora.docbin import read_docs
from spacy_arbo_el.discovery.grouping import Discovery
from spacy_arbo_el.discovery.mention_names import MentionNames
from spacy_arbo_el.linker import find_linker
from spacy_arbo_el.mentions.record import MentionRecord, gold_ids
from spacy_arbo_el.retrieval.similarity import Cosine


class Mentions(NamedTuple):
    """Mentions with gold ids.

    vectors: (m, width) float32 of length 1.
    records: Their plain values.
    """

    vectors: np.ndarray
    records: Sequence[MentionRecord]

    @property
    def gold(self) -> list[str]:
        """Their gold ids, joined."""
        return ["|".join(sorted(record.kb_ids)) for record in self.records]

    def take(self, rows: np.ndarray) -> "Mentions":
        return Mentions(
            self.vectors[rows], [self.records[row] for row in rows.tolist()]
        )


def read(linker, docs) -> Mentions:
    """The mentions of documents that have a gold id."""
    batch = linker.reader.read(
        [
            [span for span in linker.reader.all_mentions(doc) if gold_ids(span)]
            for doc in docs
        ]
    )
    vectors = Cosine().prepare(linker.encoder.encode_mentions(batch.inputs))
    return Mentions(vectors, batch.records)


# From mentions and thresholds (distances: 1 - cosine) to the labels of the mentions at each one.
Method = Callable[[Mentions, np.ndarray], list[np.ndarray]]


def by_graph(discovery: Discovery) -> Method:
    def cluster(mentions: Mentions, distances: np.ndarray) -> list[np.ndarray]:
        names = MentionNames.of(mentions.records)
        at_half = replace(discovery, threshold=0.5)
        # The similarity of a probability of one half.
        curves = (Calibration(same_new_entity=(1.0, float(d) - 1)) for d in distances)
        return [
            at_half.group(mentions.vectors, Cosine(), curve, names) for curve in curves
        ]

    return cluster


def by_linkage(method: str) -> Method:
    def cluster(mentions: Mentions, distances: np.ndarray) -> list[np.ndarray]:
        table = (1 - mentions.vectors @ mentions.vectors.T).astype(np.float64)
        np.fill_diagonal(table, 0)
        table = np.maximum((table + table.T) / 2, 0)
        tree = linkage(squareform(table, checks=False), method)
        return [fcluster(tree, d, "distance") for d in distances]

    return cluster


def by_density(build: Callable[[float], object]) -> Method:
    def cluster(mentions: Mentions, distances: np.ndarray) -> list[np.ndarray]:
        results = []
        for d in distances:
            # The Euclidean distance of vectors of length 1 is sqrt(2 (1 - cosine)).
            labels = build(float(np.sqrt(2 * d))).fit_predict(mentions.vectors)
            noise = labels < 0
            results.append(
                np.where(noise, labels.max() + 1 + np.cumsum(noise), labels)
            )
        return results

    return cluster


def by_string(mentions: Mentions, distances: np.ndarray) -> list[np.ndarray]:
    strings = [record.normalized.lower() for record in mentions.records]
    return [np.unique(strings, return_inverse=True)[1]] * len(distances)


# The distances to try: none, and many.
NONE, MANY = np.array([0.5]), np.linspace(0.02, 0.8, 40)
# Probabilities, and about how many mentions of a corpus they are compared on.
THRESHOLDS = (0.3, 0.5, 0.7, 0.8, 0.9)
MOST = 4000
OURS = {"weak components": "weak", "arborescences": "arborescence"}
# By name, with the distances.
METHODS: dict[str, tuple[Method, np.ndarray]] = {
    "string equality": (by_string, NONE),
    "DBSCAN": (by_density(lambda e: DBSCAN(eps=e, min_samples=2)), MANY),
    "HDBSCAN": (
        by_density(lambda e: HDBSCAN(min_cluster_size=2, min_samples=1, copy=True)),
        NONE,
    ),
    "single linkage": (by_linkage("single"), MANY),
    "average linkage": (by_linkage("average"), MANY),
    **{
        f"ours: {key}": (by_graph(Discovery(method=one)), MANY)
        for key, one in OURS.items()
    },
}


def tuned(method: Method, distances: np.ndarray, mentions: Mentions) -> float:
    """The distance with the best clusters of mentions."""
    labels = method(mentions, distances)
    scores = [adjusted_rand_score(mentions.gold, label) for label in labels]
    return float(distances[int(np.argmax(scores))])


def b_cubed(gold: np.ndarray, predicted: np.ndarray) -> float:
    """B³ F1 of clusters, given by their numbers from 0. There must be a mention."""
    # The number of mentions that each pair of clusters has in common.
    overlap = csr_matrix((np.ones(len(gold)), (gold, predicted)))
    overlap.sum_duplicates()
    common = overlap.tocoo()
    squares = common.data**2 / len(gold)
    precision = float((squares / np.bincount(predicted)[common.col]).sum())
    recall = float((squares / np.bincount(gold)[common.row]).sum())
    return 2 * precision * recall / (precision + recall)


def scored(gold: np.ndarray, labels: np.ndarray) -> list[float]:
    """Adjusted Rand index and B³."""
    numbers = (np.unique(one, return_inverse=True)[1] for one in (gold, labels))
    return [adjusted_rand_score(gold, labels), b_cubed(*numbers)]


def first_docs(docs: Iterable[Doc]) -> Iterator[Doc]:
    """The documents up to the one with the mention of number ``MOST``."""
    count = 0
    for doc in docs:
        yield doc
        count += len(doc.ents)
        if count >= MOST:
            return


def compare_thresholds(linker, corpora: list[Path]) -> None:
    """Print scores of corpora by threshold, and their means."""
    least = np.array(
        [
            replace(linker.discovery, threshold=one).min_similarity(linker.calibration)
            for one in THRESHOLDS
        ]
    )
    print(
        "ARI and B³ of equal strings, and at",
        ", ".join(f"{one:g}" for one in THRESHOLDS),
    )
    table = []
    for path in corpora:
        mentions = read(linker, first_docs(read_docs(path, linker.vocab)))
        gold = np.array(mentions.gold)
        (strings,) = by_string(mentions, NONE)
        found = by_graph(linker.discovery)(mentions, 1 - least)
        table.append([scored(gold, labels) for labels in (strings, *found)])
        shown = np.round(100 * np.array(table[-1]), 1).tolist()
        print(path.stem, len(gold), shown, flush=True)
    print("mean", np.round(100 * np.mean(table, axis=0), 1).tolist())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("train", type=Path, nargs="?")
    parser.add_argument("dev", type=Path, nargs="?")
    parser.add_argument(
        "--thresholds", type=Path, nargs="+", help="corpora to compare them on"
    )
    parser.add_argument(
        "--part", type=int, default=2500, help="mentions of train to tune on"
    )
    parser.add_argument(
        "--mentions", type=int, default=0, help="mentions of dev; 0 for all"
    )
    parser.add_argument(
        "--without", default="", help="methods to leave out, separated by ;"
    )
    parser.add_argument(
        "--output", type=Path, help="a JSON file of the first two settings"
    )
    options = parser.parse_args()
    if options.dev is None and not options.thresholds:
        parser.error("TRAIN.spacy and DEV.spacy are needed, or --thresholds")
    nlp = spacy.load(options.model)
    linker = find_linker(nlp)
    # A pipeline that never linked has no weights; its entities need not be encoded.
    linker.encoder.require_ready(linker.name)
    if options.thresholds:
        compare_thresholds(linker, options.thresholds)
        return
    train = list(read_docs(options.train, nlp.vocab))
    seen = {
        "|".join(sorted(gold_ids(s)))
        for doc in train
        for s in linker.mentions.getter(doc)
    }
    mentions = (
        [s for s in linker.mentions.getter(doc) if gold_ids(s)]
        for doc in reversed(train)
    )
    behind = np.cumsum([len(spans) for spans in mentions])
    part = read(linker, train[-1 - int(np.searchsorted(behind, options.part)) :])
    dev = read(linker, read_docs(options.dev, nlp.vocab))
    dev = dev.take(np.arange(min(options.mentions or len(dev.gold), len(dev.gold))))
    unseen = np.flatnonzero([gold not in seen for gold in dev.gold])
    print(
        f"{len(dev.gold)} mentions, {len(unseen)} of them of unseen entities",
        flush=True,
    )
    print(
        "| | distance | ALL: ARI | B³ | ALL/UNSEEN: ARI | B³ | UNSEEN ONLY: ARI | B³ |"
    )
    print("|---" * 8 + "|", flush=True)
    rows: dict[str, dict[str, float]] = {}
    least = linker.discovery.min_similarity(linker.calibration)
    configured = by_graph(linker.discovery), np.array([1 - least])
    for name, (method, distances) in {
        **METHODS,
        "ours: as configured": configured,
    }.items():
        if name in options.without.split(";"):
            continue
        distance = tuned(method, distances, part)
        (labels,) = method(dev, np.array([distance]))
        gold = np.array(dev.gold)
        scores: list[float] = []
        settings = [(gold, labels)]
        # A single mention is no clustering.
        if len(unseen) > 1:
            (only,) = method(dev.take(unseen), np.array([distance]))
            settings += [(gold[unseen], labels[unseen]), (gold[unseen], only)]
        for expected, predicted in settings:
            scores += scored(expected, predicted)
        rows[name] = dict(zip(("ari", "b3", "ari_unseen", "b3_unseen"), scores))
        cells = [f"{score:.3f}" for score in scores]
        cells += ["–"] * (6 - len(cells))
        print("| " + " | ".join([name, f"{distance:.2f}", *cells]) + " |", flush=True)
    if options.output:
        srsly.write_json(options.output, rows)


if __name__ == "__main__":
    main()
