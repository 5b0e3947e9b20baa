"""Fit the weights and the curves that a linker begins with, for the untrained bundled encoder.

    python default_ranker.py DOMAIN:TRAIN.spacy:DEV.spacy:KB … [--mentions 1200] [--write]

The corpora are annotated and public. Each is used three ways: with the entities alone, with one
candidate of every fourth mention, as in a knowledge base of few entities, and with the exemplars of
every second document. TRAIN or DEV may be empty. Each DEV is scored by weights that were fitted
without its domain, then by those of all. The curves are printed for ``calibration.py``.
"""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

import numpy as np
import spacy
import srsly
from spacy.tokens import Doc

from spacy_arbo_el.calibration import Calibration, Curve, fit_logistic, probability
from spacy_arbo_el.corpora.docbin import read_docs
from spacy_arbo_el.evaluation.calibrate import (
    AnnotatedMentions,
    LabelledEdges,
    mention_edges,
    same_entity_edges,
)
from spacy_arbo_el.evaluation.reliability import reliability
from spacy_arbo_el.linker import ArboLinker
from spacy_arbo_el.mentions.labels import is_gold
from spacy_arbo_el.reranking.feature_ranker import FeatureRanker
from spacy_arbo_el.reranking.features import CandidateFeatures
from spacy_arbo_el.reranking.pretrained import PRETRAINED, PretrainedWeights
from spacy_arbo_el.reranking.ranker_weights import RankerWeights, fit_weights
from spacy_arbo_el.retrieval.neighbours import Neighbours
from spacy_arbo_el.storage.files import write_file

FEW = 4
# The default of the component.
THRESHOLD = 0.4
Parts = Tuple[ArboLinker, AnnotatedMentions, AnnotatedMentions]


def some_documents(docs: List[Doc], n_mentions: int) -> List[Doc]:
    """Documents with about so many mentions, spread over the corpus."""
    wanted = max(round(n_mentions * len(docs) / sum(len(doc.ents) for doc in docs)), 2)
    return docs[:: max(len(docs) // wanted, 1)][:wanted]


def one_candidate(features: CandidateFeatures, gold: np.ndarray) -> CandidateFeatures:
    """One candidate of every fourth mention: its entity, if it is one, or any by chance."""
    rows = np.arange(0, len(features), FEW)
    part = features.take(rows)
    column = np.random.default_rng(0).integers(np.maximum(part.valid.sum(axis=1), 1))
    column[::2] = is_gold(part.entities, gold[rows])[::2].argmax(axis=1)
    return part.where(np.arange(part.entities.shape[1]) == column[:, None])


class Labelled(NamedTuple):
    """Candidates of mentions with labels.

    correct: (m, c) bool.
    documents: (m,) int64, different in each corpus.
    """

    candidates: CandidateFeatures
    correct: np.ndarray
    documents: np.ndarray

    @classmethod
    def of(
        cls, candidates: CandidateFeatures, gold: np.ndarray, documents: np.ndarray
    ) -> "Labelled":
        """gold: (m, g) int64, as in ``AnnotatedMentions``."""
        return cls(candidates, is_gold(candidates.entities, gold), documents)


def fit(corpora: List[List[Labelled]]) -> RankerWeights:
    """Weights that fit some corpora, each of which counts alike."""
    sizes = [sum(len(part.correct) for part in corpus) for corpus in corpora]
    parts = [part for corpus in corpora for part in corpus]
    weights = fit_weights(
        CandidateFeatures.concat([part.candidates for part in parts]),
        np.concatenate([part.correct for part in parts]),
        np.concatenate([part.documents for part in parts]),
        np.repeat(np.mean(sizes) / np.array(sizes), sizes),
    )
    if weights is None:
        raise SystemExit("There are too few mentions.")
    return weights


def scores_of(name: str, weights: RankerWeights, test: Labelled) -> Dict[str, float]:
    """R@1, accuracy at the default threshold without NIL, and ECE, of weights on a dev set."""
    logits = weights.logits(test.candidates)
    right = np.take_along_axis(test.correct, logits.argmax(axis=1)[:, None], axis=1)[:, 0]
    probabilities = probability(logits.max(axis=1))
    linked = right & (probabilities >= THRESHOLD)
    error = reliability(probabilities, right).error
    print(f"{name}: R@1 {right.mean():.4f}, linked {linked.mean():.4f}, ECE {error:.4f}")
    names = ("arbo_recall_at_1", "arbo_acc", "arbo_calibration_error")
    return dict(zip(names, map(float, (right.mean(), linked.mean(), error))))


def entity_edges(neighbours: Neighbours, gold: np.ndarray) -> LabelledEdges:
    """The edge of each mention from its nearest entity."""
    nearest = neighbours.entities.first(1)
    return nearest.scores.ravel(), is_gold(nearest.ids, gold).ravel()


def exemplar_edges(neighbours: Neighbours, gold: np.ndarray) -> LabelledEdges:
    """The edges from exemplars of other entities than the one with the nearest text."""
    nearest = neighbours.entities.resized(1).ids
    changes = neighbours.exemplars.valid & (neighbours.exemplar_entities != nearest)
    correct = is_gold(neighbours.exemplar_entities, gold)
    return neighbours.exemplars.scores[changes], correct[changes]


# The curves that a linker begins with are fitted apart: they are for linkers with a reranker, which
# chooses between texts and exemplars itself.
def edges(
    linker: ArboLinker, alone: AnnotatedMentions, beside: AnnotatedMentions
) -> Dict[str, LabelledEdges]:
    """What the curves are fitted on, by kind."""
    stages = linker.stages
    ranked = stages.rerank(alone.batch, alone.neighbours)
    nearest = ranked.neighbours.mentions
    found = {
        "entity": entity_edges(alone.neighbours, alone.gold),
        "exemplar": exemplar_edges(beside.neighbours, beside.gold),
        "mention": mention_edges(ranked.ranking, nearest, alone.identities),
    }
    features = stages.discovery.features(alone.batch.encoded, alone.batch.normalized)
    same = same_entity_edges(stages.discovery, features, linker.similarity, alone.identities)
    return {**found, "same_mention": same, "same_new_entity": same}


def fit_curves(parts: List[Dict[str, LabelledEdges]]) -> Iterator[Tuple[str, Optional[Curve], int]]:
    """The curve of each kind, and how many edges it is fitted on. Each corpus counts equally."""
    for kind in Calibration().to_config():
        scores, correct = zip(*(part[kind] for part in parts))
        count = min(len(part) for part in scores if len(part) >= 200)
        rows = [np.random.default_rng(0).permutation(len(part))[:count] for part in scores]
        scores = np.concatenate([part[row] for part, row in zip(scores, rows)])
        correct = np.concatenate([part[row] for part, row in zip(correct, rows)])
        yield kind, fit_logistic(scores, correct), len(scores)


def collect(linker: ArboLinker, docs: List[Doc], first: int) -> Tuple[List[Labelled], Parts]:
    """Candidates of a corpus in the three ways, and what the curves are fitted on.

    first: The number of its first document.
    """
    ranker, context = FeatureRanker(pretrained=False), linker.stages.context
    alone = AnnotatedMentions.retrieve(linker.stages, docs, 64)
    features = ranker.gather(alone.batch, alone.neighbours, context)
    # A document is held out in all ways at once.
    documents = first + alone.batch.documents
    few = one_candidate(features, alone.gold)
    linker.feedback.add_exemplars(docs[::2])
    beside = AnnotatedMentions.retrieve(linker.stages, docs[1::2], 64)
    with_exemplars = ranker.gather(beside.batch, beside.neighbours, linker.stages.context)
    linker.feedback.remove_exemplars(span for doc in docs[::2] for span in doc.ents)
    labelled = [
        Labelled.of(features, alone.gold, documents),
        Labelled.of(few, alone.gold[::FEW], documents[::FEW]),
        Labelled.of(with_exemplars, beside.gold, first + 1 + 2 * beside.batch.documents),
    ]
    return labelled, (linker, alone, beside)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpora", nargs="+", metavar="DOMAIN:[TRAIN]:[DEV]:KB")
    parser.add_argument("--mentions", type=int, default=1200)
    parser.add_argument("--write", action="store_true", help="Write the weights into the package.")
    args = parser.parse_args()
    trained: List[Tuple[str, List[Labelled]]] = []
    tests: List[Tuple[str, str, Labelled]] = []
    parts, linkers = [], {}
    for item in args.corpora:
        domain, train, dev, kb = item.split(":")
        if kb not in linkers:
            linkers[kb] = spacy.blank("en").add_pipe("arbo_linker")
            linkers[kb].set_kb(kb)
            linkers[kb].refresh()
        linker = linkers[kb]
        if train:
            docs = some_documents(list(read_docs(Path(train), linker.vocab)), args.mentions)
            labelled, part = collect(linker, docs, 100_000 * len(parts))
            trained.append((domain, labelled))
            parts.append(part)
        if dev:
            docs = some_documents(list(read_docs(Path(dev), linker.vocab)), args.mentions)
            found = AnnotatedMentions.retrieve(linker.stages, docs, 64)
            features = FeatureRanker(pretrained=False).gather(
                found.batch, found.neighbours, linker.stages.context
            )
            test = Labelled.of(features, found.gold, found.batch.documents)
            tests.append((domain, Path(dev).stem, test))
        print(f"{item}: read", flush=True)
    scores = {}
    for left_out in sorted({domain for domain, _, _ in tests}):
        weights = fit([labelled for domain, labelled in trained if domain != left_out])
        for domain, name, test in tests:
            if domain == left_out:
                key = f"{name}, fitted without {domain}"
                scores[key] = scores_of(key, weights, test)
    weights = fit([labelled for _, labelled in trained])
    for _, name, test in tests:
        scores[f"{name}, fitted on all"] = scores_of(f"{name}, fitted on all", weights, test)
    srsly.write_json("metrics/default_ranker.json", scores)
    for linker in linkers.values():
        linker.reranker = replace(FeatureRanker(), weights=weights)
    for kind, curve, count in fit_curves([edges(*part) for part in parts]):
        rounded = None if curve is None else tuple(round(float(x), 1) for x in curve)
        print(f"    {kind}: Curve = {rounded}  # {count} edges")
    if args.write:
        encoder = next(iter(linkers.values())).encoder
        write_file(PRETRAINED, PretrainedWeights.for_encoder(weights, encoder).to_bytes())


if __name__ == "__main__":
    main()
