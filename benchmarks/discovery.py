"""Cross-document clusters of mentions, as Table 5 of the arborescence paper has them.

    python benchmarks/discovery.py MODEL TRAIN.spacy DEV.spacy [--part 0.2]

Mentions of all documents are clustered by their vectors alone, without a knowledge base: by our
graphs (4 nearest mentions, edges under a threshold; with "letters", character n-grams count beside
vectors, by a share that is tuned too) and by what scikit-learn and SciPy have, on the very same
vectors. Each method's threshold is the one that gives the best adjusted Rand index on the
last documents of the training set. Three settings: ALL; ALL/UNSEEN, clustered all and scored on
mentions of entities that training never showed; UNSEEN ONLY, clustered alone.
"""

import argparse
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Tuple

import numpy as np
import spacy
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from sklearn.cluster import DBSCAN, HDBSCAN
from sklearn.metrics import adjusted_rand_score

from spacy_arbo_el.corpora.reader import read_docs
from spacy_arbo_el.discovery.grouping import Discovery
from spacy_arbo_el.evaluation.clusters import cluster_scores
from spacy_arbo_el.evaluation.report import find_linker
from spacy_arbo_el.evaluation.tuning import LETTERS
from spacy_arbo_el.mentions import find_mentions, gold_ids
from spacy_arbo_el.retrieval.similarity import cosine

NEIGHBOURS = 4


class Mentions(NamedTuple):
    """vectors: (m, width) of length 1. forms: What is read for each. gold: Its ids, joined."""

    vectors: np.ndarray
    forms: List[str]
    gold: List[str]

    def take(self, rows: np.ndarray) -> "Mentions":
        chosen = rows.tolist()
        lists = ([values[i] for i in chosen] for values in (self.forms, self.gold))
        return Mentions(self.vectors[rows], *lists)


def read(linker, docs) -> Mentions:
    """The mentions of docs that have a gold id."""
    spans = [[s for s in find_mentions(doc, linker.span_getter) if gold_ids(s)] for doc in docs]
    windows, forms = linker.reader.read(spans)
    vectors = cosine().prepare(linker.encoding.encode_windows(windows))
    gold = ["|".join(sorted(gold_ids(span))) for group in spans for span in group]
    return Mentions(vectors, [form.lower() for form in forms], gold)


# From mentions and thresholds (distances, 1 - cosine) to a label of each mention, for each.
Method = Callable[[Mentions, np.ndarray], List[np.ndarray]]


def by_graph(method: str, letters: float = 0.0) -> Method:
    discovery = Discovery(neighbours=NEIGHBOURS, method=method, letters=letters)

    def cluster(mentions: Mentions, distances: np.ndarray) -> List[np.ndarray]:
        features = discovery.features(mentions.vectors, mentions.forms)
        return list(discovery.sweep(features, cosine(), 1 - distances))

    return cluster


def by_linkage(method: str) -> Method:
    def cluster(mentions: Mentions, distances: np.ndarray) -> List[np.ndarray]:
        table = (1 - mentions.vectors @ mentions.vectors.T).astype(np.float64)
        np.fill_diagonal(table, 0)
        table = np.maximum((table + table.T) / 2, 0)
        tree = linkage(squareform(table, checks=False), method)
        return [fcluster(tree, d, "distance") for d in distances]

    return cluster


def by_density(build: Callable[[float], object]) -> Method:
    def cluster(mentions: Mentions, distances: np.ndarray) -> List[np.ndarray]:
        found = []
        for d in distances:
            # Of vectors of length 1, the Euclidean distance is sqrt(2 (1 - cosine)).
            labels = build(float(np.sqrt(2 * d))).fit_predict(mentions.vectors)
            alone = labels < 0
            found.append(np.where(alone, labels.max() + 1 + np.cumsum(alone), labels))
        return found

    return cluster


def by_string(mentions: Mentions, distances: np.ndarray) -> List[np.ndarray]:
    return [np.unique(mentions.forms, return_inverse=True)[1]] * len(distances)


# For each name the methods to choose from on the part of train, and how many distances to try.
METHODS: Dict[str, Tuple[List[Method], int]] = {
    "string equality": ([by_string], 1),
    "DBSCAN": ([by_density(lambda e: DBSCAN(eps=e, min_samples=2))], 6),
    "HDBSCAN": ([by_density(lambda e: HDBSCAN(min_cluster_size=2, min_samples=1, copy=True))], 1),
    "single linkage": ([by_linkage("single")], 40),
    "average linkage": ([by_linkage("average")], 40),
    **{
        f"ours: {name}": ([by_graph(method)], 40)
        for name, method in (
            ("weak components", "weak"),
            ("arborescences", "arborescence"),
            ("averages", "average"),
        )
    },
    "ours: weak components, letters": ([by_graph("weak", share) for share in LETTERS], 40),
    "ours: averages, letters": ([by_graph("average", share) for share in LETTERS], 40),
}


def tuned(methods: List[Method], steps: int, mentions: Mentions) -> Tuple[Method, float, float]:
    """The method and the distance that give the best clusters of mentions, and their score."""
    distances = np.linspace(0.02, 0.8, steps) if steps > 1 else np.array([0.5])
    best = []
    for method in methods:
        labels = method(mentions, distances)
        scores = [adjusted_rand_score(mentions.gold, label) for label in labels]
        best.append((max(scores), method, float(distances[int(np.argmax(scores))])))
    score, method, distance = max(best, key=lambda one: one[0])
    return method, distance, score


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model", "train", "dev"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--part", type=float, default=0.2, help="of train, to tune thresholds on")
    parser.add_argument("--without", default="", help="methods to leave out, with commas between")
    options = parser.parse_args()
    nlp = spacy.load(options.model)
    linker = find_linker(nlp)
    train = list(read_docs(options.train, nlp.vocab))
    seen = {"|".join(sorted(gold_ids(s))) for doc in train for s in linker.span_getter(doc)}
    part = read(linker, train[int(len(train) * (1 - options.part)) :])
    dev = read(linker, read_docs(options.dev, nlp.vocab))
    unseen = np.flatnonzero([gold not in seen for gold in dev.gold])
    print(f"{len(dev.gold)} mentions, {len(unseen)} of them of unseen entities", flush=True)
    print("| | distance | ALL: ARI | B³ | ALL/UNSEEN: ARI | B³ | UNSEEN ONLY: ARI | B³ |")
    print("|---" * 8 + "|", flush=True)
    for name, (methods, steps) in METHODS.items():
        if name in options.without.split(","):
            continue
        method, distance, _ = tuned(methods, steps, part)
        (labels,) = method(dev, np.array([distance]))
        (alone,) = method(dev.take(unseen), np.array([distance]))
        gold = np.array(dev.gold)
        cells = []
        for right, found in ((gold, labels), (gold[unseen], labels[unseen]), (gold[unseen], alone)):
            scores = cluster_scores(right.tolist(), found.tolist())
            cells += [f"{scores['ari']:.3f}", f"{scores['b3_f']:.3f}"]
        if len(methods) > 1:
            name += f" ({LETTERS[methods.index(method)]:g})"
        print("| " + " | ".join([name, f"{distance:.2f}", *cells]) + " |", flush=True)


if __name__ == "__main__":
    main()
