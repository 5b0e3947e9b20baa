"""Fit the weights and the curves that a linker begins with, for the untrained bundled encoder.

    python experiments/default_ranker.py CORPUS.spacy=KB … [--mentions 1200]

The corpora are annotated and public; figures on wned-wiki and reddit-posts are not held out. Each
is used three ways: with the entities alone, with one candidate of every fourth mention, as in a
knowledge base of few entities, and with the exemplars of every second document. The weights are
written into the package, and the curves are printed for ``calibration/calibration.py``.
"""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Tuple

import numpy as np
import spacy
from spacy.tokens import Doc

from spacy_arbo_el.calibration.calibration import Calibration
from spacy_arbo_el.calibration.logistic import Curve, fit_logistic
from spacy_arbo_el.corpora.docbin import read_docs
from spacy_arbo_el.evaluation.calibrate import (
    AnnotatedMentions,
    LabelledEdges,
    mention_edges,
    same_entity_edges,
)
from spacy_arbo_el.linker import ArboLinker
from spacy_arbo_el.mentions.labels import is_gold
from spacy_arbo_el.reranking.feature_ranker import FeatureRanker
from spacy_arbo_el.reranking.features import CandidateFeatures
from spacy_arbo_el.reranking.pretrained import PRETRAINED, PretrainedWeights
from spacy_arbo_el.reranking.ranker_weights import RankerWeights, fit_weights
from spacy_arbo_el.retrieval.neighbours import Neighbours
from spacy_arbo_el.storage.files import write_file

FEW = 4


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


class Collected:
    """Candidates with labels, of all corpora."""

    def __init__(self) -> None:
        self.features: List[CandidateFeatures] = []
        self.correct: List[np.ndarray] = []
        self.documents: List[np.ndarray] = []

    def add(self, features: CandidateFeatures, gold: np.ndarray, documents: np.ndarray) -> None:
        """Candidates of a corpus. documents: (m,) int64, different in each corpus."""
        self.features.append(features)
        self.correct.append(is_gold(features.entities, gold))
        self.documents.append(documents)

    def weights(self) -> Optional[RankerWeights]:
        """The weights that fit all of them."""
        features, labels = CandidateFeatures.concat(self.features), np.concatenate(self.correct)
        return fit_weights(features, labels, np.concatenate(self.documents))


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpora", nargs="+", metavar="CORPUS.spacy=KB")
    parser.add_argument("--mentions", type=int, default=1200)
    args = parser.parse_args()
    collected, parts, linkers = Collected(), [], {}
    for pair in args.corpora:
        corpus, kb = (Path(part) for part in pair.split("="))
        if kb not in linkers:
            linkers[kb] = spacy.blank("en").add_pipe("arbo_linker")
            linkers[kb].set_kb(kb, reencode=True)
            linkers[kb].refresh()
        linker = linkers[kb]
        docs = some_documents(list(read_docs(corpus, linker.vocab)), args.mentions)
        ranker = FeatureRanker(pretrained=False)
        alone = AnnotatedMentions.retrieve(linker.stages, docs, 64)
        features = ranker.gather(alone.batch, alone.neighbours, linker.stages.context)
        # A document is held out in all ways at once.
        start = 100_000 * len(parts)
        documents = start + alone.batch.documents
        collected.add(features, alone.gold, documents)
        collected.add(one_candidate(features, alone.gold), alone.gold[::FEW], documents[::FEW])
        linker.feedback.add_exemplars(docs[::2])
        beside = AnnotatedMentions.retrieve(linker.stages, docs[1::2], 64)
        features = ranker.gather(beside.batch, beside.neighbours, linker.stages.context)
        collected.add(features, beside.gold, start + 1 + 2 * beside.batch.documents)
        linker.feedback.remove_exemplars(span for doc in docs[::2] for span in doc.ents)
        parts.append((linker, alone, beside))
        print(f"{corpus.stem}: {len(alone.batch)} mentions", flush=True)
    weights = collected.weights()
    pretrained = PretrainedWeights.for_encoder(weights, linkers[kb].encoder)
    write_file(PRETRAINED, pretrained.to_bytes())
    print(f"{sum(map(len, collected.features))} lists of candidates, {weights.accuracy:.4f} right")
    for linker in linkers.values():
        linker.reranker = replace(FeatureRanker(), weights=weights)
    for kind, curve, count in fit_curves([edges(*part) for part in parts]):
        rounded = None if curve is None else tuple(round(float(x), 1) for x in curve)
        print(f"    {kind}: Curve = {rounded}  # {count} edges")


if __name__ == "__main__":
    main()
