"""Linking and discovery where some entities are missing from the knowledge base.

    python benchmarks/nil.py MODEL DEV.spacy [--drop 0.1 0.5] [--seed 0]

A share of the entities in dev is removed from the knowledge base, with their exemplars. With 0,
only the entities are missing that the knowledge base never had. Mentions of missing entities should
be NIL, and those of the same missing entity should be one new entity.

Half of the documents are used to calibrate and to choose both thresholds λ. The other half is
scored. Then the halves change places. "best λ" is the threshold that is best on the scored
mentions: an upper bound. "in KB" is the accuracy on mentions whose entity is in the knowledge base.
ARI is computed on mentions whose entity is missing, including those that are linked by mistake.
"""

import argparse
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Dict, List, Mapping, NamedTuple, Tuple

import numpy as np
import spacy
from sklearn.metrics import adjusted_rand_score

from spacy_arbo_el.calibration.logistic import fit_logistic, similarity_at
from spacy_arbo_el.corpora.reader import read_docs, unlinked
from spacy_arbo_el.evaluation.calibrate import fit_calibration, same_entity_edges
from spacy_arbo_el.evaluation.holdout import remove_entities, with_removed_as_nil
from spacy_arbo_el.evaluation.thresholds import THRESHOLDS
from spacy_arbo_el.evaluation.tuning import NGRAM_WEIGHTS
from spacy_arbo_el.inference.clustering import Clustering
from spacy_arbo_el.inference.consensus import Consensus
from spacy_arbo_el.inference.decisions import Inference
from spacy_arbo_el.inference.independent import Independent
from spacy_arbo_el.inference.vote import ExemplarVote
from spacy_arbo_el.kb.entity import NIL
from spacy_arbo_el.linker import find_linker
from spacy_arbo_el.mentions.labels import gold_positions, is_gold
from spacy_arbo_el.mentions.records import gold_ids
from spacy_arbo_el.retrieval.mention_search import nearest_in_document

# Whether mentions of other documents are neighbours, and the procedure.
PROCEDURES: Mapping[str, Tuple[bool, Inference]] = {
    "independent": (False, Independent(n_exemplars=8)),
    "exemplar vote": (False, ExemplarVote(n_exemplars=15)),
    "directed, document": (False, Clustering("arborescence")),
    "directed, corpus": (True, Clustering("arborescence")),
    "minimax, corpus": (True, Clustering("minimax")),
    "undirected, corpus": (True, Clustering("undirected")),
    "consensus, document": (False, Consensus(n_exemplars=8)),
    "consensus, corpus": (True, Consensus(n_exemplars=8)),
}


class Gold(NamedTuple):
    """The gold entities of mentions.

    positions: (m, g) int64, their positions in the knowledge base, -1 for none.
    missing: (m,) bool, whether the entity is not in the knowledge base.
    label: (m,) int64, equal for mentions of the same entity.
    """

    positions: np.ndarray
    missing: np.ndarray
    label: np.ndarray


def gold_of(linker, docs) -> Gold:
    spans = [span for doc in docs for span in linker.reader.all_mentions(doc)]
    ids = [gold_ids(span) for span in spans]
    missing = np.array([span.kb_id_ == NIL for span in spans])
    names = [span.id_ or "|".join(group) for span, group in zip(spans, ids)]
    return Gold(gold_positions(linker.kb, ids), missing, np.unique(names, return_inverse=True)[1])


def accuracy(gold: Gold, entity: np.ndarray) -> np.ndarray:
    """(m,) bool, whether each link or NIL is correct."""
    correct = is_gold(entity[:, None], gold.positions)[:, 0]
    return np.where(gold.missing, entity < 0, correct)


def best(gold: Gold, decided: np.ndarray, rows: np.ndarray) -> int:
    """The number of the threshold whose decisions (T, m) are best on some mentions."""
    return int(np.argmax([accuracy(gold, entity)[rows].mean() for entity in decided]))


def groups_of(linker, batch, gold: Gold, unlinked: np.ndarray, tune: np.ndarray) -> np.ndarray:
    """The new entities of unlinked mentions: (m,) int64, -1 for linked ones.

    Threshold and n-gram weight are chosen on the unlinked mentions in ``tune``.
    """
    tuned_on = np.flatnonzero(unlinked & gold.missing & tune)
    if len(tuned_on) < 30:
        tuned_on = np.flatnonzero(tune)
    identities = [{str(label)} for label in gold.label[tuned_on].tolist()]
    options = []
    for ngram_weight in NGRAM_WEIGHTS:
        discovery = replace(linker.discovery, ngram_weight=ngram_weight)
        features = discovery.features(batch.encoded, batch.normalized)
        chosen = features[tuned_on], linker.similarity
        edges = same_entity_edges(discovery, *chosen, identities)
        curve = fit_logistic(*edges) or linker.calibration.same_new_entity
        levels = np.array([similarity_at(float(t), curve) for t in THRESHOLDS[1:]])
        labels = discovery.sweep(*chosen, levels)
        scores = [adjusted_rand_score(gold.label[tuned_on], row) for row in labels]
        options.append((max(scores), discovery, levels[int(np.argmax(scores))], features))
    _, discovery, level, features = max(options, key=lambda one: one[0])
    groups, rows = np.full(len(unlinked), -1), np.flatnonzero(unlinked)
    groups[rows] = discovery.sweep(features[rows], linker.similarity, np.array([level]))[0]
    return groups


def score(gold: Gold, entity: np.ndarray, groups: np.ndarray) -> Dict[str, float]:
    """Scores of linking and discovery."""
    correct = accuracy(gold, entity)
    nil, missing = entity < 0, gold.missing
    correct_nil = float((nil & missing).sum())
    precision, recall = correct_nil / max(nil.sum(), 1), correct_nil / max(missing.sum(), 1)
    # Mentions linked by mistake are clustered by the entity that they are linked to.
    label = np.where(entity >= 0, entity + 1 + groups.max(initial=0), groups)
    return {
        "accuracy": correct.mean(),
        "in KB": correct[~missing].mean(),
        "NIL P": precision,
        "NIL R": recall,
        "NIL F1": 2 * precision * recall / max(precision + recall, 1e-9),
        "ARI": adjusted_rand_score(gold.label[missing], label[missing]),
    }


def run(linker, docs) -> Dict[str, Dict[str, float]]:
    """Scores of each procedure, over both halves."""
    plain = [unlinked(doc) for doc in docs]
    as_read = gold_of(linker, docs)
    results: Dict[str, List[Tuple[np.ndarray, ...]]] = defaultdict(list)
    for half in (0, 1):
        fit_calibration(linker, docs[half::2], from_scratch=True).install(linker)
        # The most exemplars that a procedure uses.
        linker.inference = Clustering(n_exemplars=15)
        mentions = linker.gather(lambda: plain)
        corpus, batch = mentions.ranked, mentions.ranked.batch
        tune = mentions.documents % 2 == half
        gold = Gold(*(array[np.argsort(mentions.as_read)] for array in as_read))
        nearest = nearest_in_document(batch.encoded, batch.documents, 4, linker.similarity)
        within_documents = corpus.with_mentions(nearest)
        for name, (across_documents, inference) in PROCEDURES.items():
            ranked = corpus if across_documents else within_documents
            entities = ranked.neighbours.entities.width
            narrowed = ranked.neighbours.narrowed(entities, inference.n_exemplars)
            ranked = replace(ranked, neighbours=narrowed)
            stages = replace(linker.stages, inference=inference)
            decided = np.stack([stages.decide(ranked, float(t)).entities for t in THRESHOLDS])
            entity = decided[best(gold, decided, tune)]
            groups = groups_of(linker, batch, gold, entity < 0, tune)
            results[f"{name}, ours discovered"].append((~tune, entity, groups))
            if name == "independent":
                entity = decided[best(gold, decided, ~tune)]
                for grouping, groups in simple_groups(batch).items():
                    results[f"{name}, best λ, {grouping}"].append((~tune, entity, groups))
    return {name: _mean_scores(gold, parts) for name, parts in results.items()}


def simple_groups(batch) -> Dict[str, np.ndarray]:
    """The new entity of each mention, for two simple ways of grouping."""
    strings = [normalized.lower() for normalized in batch.normalized]
    same_string = np.unique(strings, return_inverse=True)[1]
    return {"same string": same_string, "each alone": np.arange(len(strings))}


def _mean_scores(gold: Gold, parts) -> Dict[str, float]:
    """The mean of the scores of the two halves, weighted by their numbers of mentions."""
    total: Counter = Counter()
    for rows, entity, groups in parts:
        part = Gold(*(array[rows] for array in gold))
        for key, value in score(part, entity[rows], groups[rows]).items():
            total[key] += value * rows.sum() / len(rows)
    return dict(total)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("dev", type=Path)
    parser.add_argument("--drop", type=float, nargs="+", default=[0.1, 0.5])
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for share in options.drop:
        nlp = spacy.load(options.model)
        linker = find_linker(nlp)
        docs = list(read_docs(options.dev, nlp.vocab))
        removed = remove_entities(linker, docs, share, options.seed) if share else set()
        docs = with_removed_as_nil(docs, linker.kb)
        with linker.cached_encoder():
            rows = run(linker, docs)
        missing = sum(s.kb_id_ == NIL for doc in docs for s in linker.reader.all_mentions(doc))
        print(f"\n{len(removed)} entities dropped ({share:.0%}), {missing} mentions are NIL\n")
        columns = list(next(iter(rows.values())))
        print("| | " + " | ".join(columns) + " |")
        print("|---" * (len(columns) + 1) + "|")
        for name, row in rows.items():
            print(f"| {name} | " + " | ".join(f"{row[c]:.3f}" for c in columns) + " |", flush=True)


if __name__ == "__main__":
    main()
