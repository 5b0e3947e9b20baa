"""Linking and discovery where some entities are missing from the knowledge base.

    python benchmarks/nil.py MODEL DEV.spacy [--drop 0.1 0.5] [--seed 0]

A share of the entities that dev mentions is taken out of the knowledge base, and their exemplars
with them; with 0, what is missing is what the knowledge base lacks anyway. Mentions of what is
missing should be NIL, and those of one missing entity one new entity.

Half of the documents are used to calibrate and to choose both λ, the other half is scored, and the
other way round. "best" is the same procedure with the λ that is best on the very mentions scored,
which nobody could know. Accuracy in KB is that of mentions whose entity is there; ARI is that of
mentions whose entity is missing, those linked by mistake included.
"""

import argparse
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Dict, List, Mapping, NamedTuple, Tuple

import numpy as np
import spacy
from sklearn.metrics import adjusted_rand_score

from spacy_arbo_el.corpora.reader import read_docs, unlinked
from spacy_arbo_el.evaluation.calibrate import fit_calibration, fit_new
from spacy_arbo_el.evaluation.dropping import drop_entities, without_dropped
from spacy_arbo_el.evaluation.gold import gold_positions, is_gold
from spacy_arbo_el.evaluation.report import encoding_once, find_linker
from spacy_arbo_el.evaluation.thresholds import THRESHOLDS
from spacy_arbo_el.evaluation.tuning import LETTERS
from spacy_arbo_el.inference.calibration import Calibration, log_odds, similarity_of
from spacy_arbo_el.inference.clustering import clustering
from spacy_arbo_el.inference.consensus import consensus
from spacy_arbo_el.inference.decisions import Inference
from spacy_arbo_el.inference.independent import independent
from spacy_arbo_el.inference.vote import exemplar_vote
from spacy_arbo_el.kb.entity import NIL
from spacy_arbo_el.mentions import find_mentions, gold_ids
from spacy_arbo_el.retrieval.corpus import with_mentions
from spacy_arbo_el.retrieval.neighbours import nearest_in_document

EXEMPLARS = 15
# Whether mentions of other documents take part, and the procedure.
PROCEDURES: Mapping[str, Tuple[bool, Inference]] = {
    "independent": (False, independent(8)),
    "exemplar vote": (False, exemplar_vote(EXEMPLARS)),
    "directed, document": (False, clustering("arborescence")),
    "directed, corpus": (True, clustering("arborescence")),
    "minimax, corpus": (True, clustering("minimax")),
    "undirected, corpus": (True, clustering("undirected")),
    "consensus, document": (False, consensus(8)),
    "consensus, corpus": (True, consensus(8)),
}


class Gold(NamedTuple):
    """positions: (m, g) int64 gold entities. missing: (m,) bool. label: (m,) which entity it is."""

    positions: np.ndarray
    missing: np.ndarray
    label: np.ndarray


def gold_of(linker, docs) -> Gold:
    spans = [span for doc in docs for span in find_mentions(doc, linker.span_getter)]
    ids = [gold_ids(span) for span in spans]
    missing = np.array([span.kb_id_ == NIL for span in spans])
    names = [span.id_ or "|".join(group) for span, group in zip(spans, ids)]
    return Gold(gold_positions(linker, spans), missing, np.unique(names, return_inverse=True)[1])


def accuracy(gold: Gold, entity: np.ndarray) -> np.ndarray:
    """(m,) bool, whether each link or NIL is right."""
    found = is_gold(entity[:, None], gold.positions)[:, 0]
    return np.where(gold.missing, entity < 0, found)


def best(gold: Gold, decided: np.ndarray, rows: np.ndarray) -> int:
    """The λ whose decisions (T, m) are best on some mentions."""
    return int(np.argmax([accuracy(gold, entity)[rows].mean() for entity in decided]))


def groups_of(linker, gathered, forms, gold: Gold, left: np.ndarray, tune: np.ndarray):
    """New entities of the mentions left, λ and letters chosen on those of them in ``tune``."""
    told = np.flatnonzero(left & gold.missing & tune)
    rows = np.flatnonzero(left)
    keys = [{str(label)} for label in gold.label.tolist()]
    options = []
    for letters in LETTERS:
        discovery = replace(linker.discovery, letters=letters)
        features = discovery.features(gathered.vectors, forms)
        tuned_on = told if len(told) >= 30 else np.flatnonzero(tune)
        chosen = features[tuned_on], linker.similarity
        curve = fit_new(discovery, *chosen, [keys[i] for i in tuned_on.tolist()])
        curve = curve or linker.calibration.new
        least = np.array([similarity_of(float(t), curve) for t in THRESHOLDS[1:]])
        labels = discovery.sweep(*chosen, least)
        scores = [adjusted_rand_score(gold.label[tuned_on], row) for row in labels]
        options.append((max(scores), discovery, least[int(np.argmax(scores))], features))
    _, discovery, level, features = max(options, key=lambda one: one[0])
    groups = np.full(len(left), -1)
    groups[rows] = discovery.sweep(features[rows], linker.similarity, np.array([level]))[0]
    return groups


def score(gold: Gold, entity: np.ndarray, groups: np.ndarray) -> Dict[str, float]:
    right = accuracy(gold, entity)
    nil, missing = entity < 0, gold.missing
    found = float((nil & missing).sum())
    precision, recall = found / max(nil.sum(), 1), found / max(missing.sum(), 1)
    # Mentions linked by mistake are with those linked to the same entity.
    label = np.where(entity >= 0, entity + 1 + groups.max(initial=0), groups)
    return {
        "accuracy": right.mean(),
        "in KB": right[~missing].mean(),
        "NIL P": precision,
        "NIL R": recall,
        "NIL F1": 2 * precision * recall / max(precision + recall, 1e-9),
        "ARI": adjusted_rand_score(gold.label[missing], label[missing]),
    }


def run(linker, docs) -> Dict[str, Dict[str, float]]:
    """Scores of each procedure, over both halves."""
    plain = [unlinked(doc) for doc in docs]
    gold = gold_of(linker, docs)
    counts = [len(find_mentions(doc, linker.span_getter)) for doc in docs]
    in_half = np.repeat(np.arange(len(docs)) % 2, counts)
    logits = [log_odds(float(t)) for t in THRESHOLDS]
    found: Dict[str, List[np.ndarray]] = {}
    for half in (0, 1):
        tune = in_half == half
        linker.calibration = Calibration()
        linker.calibration = fit_calibration(linker, docs[half::2])
        linker.inference = clustering(exemplars=EXEMPLARS)
        gathered = linker.gather(lambda: plain)
        forms = [item.form for item in gathered.items]
        lower = np.unique([form.lower() for form in forms], return_inverse=True)[1]
        near = gathered.neighbours
        alone = nearest_in_document(gathered.vectors, near.document, 4, linker.similarity)
        within = with_mentions(near, *alone)
        for name, (across, inference) in PROCEDURES.items():
            use = near if across else within
            use = replace(
                use,
                exemplars=use.exemplars[:, : inference.exemplars],
                exemplar_entity=use.exemplar_entity[:, : inference.exemplars],
                exemplar_similarity=use.exemplar_similarity[:, : inference.exemplars],
            )
            decided = np.stack([inference(use, linker.calibration, t).entity for t in logits])
            entity = decided[best(gold, decided, tune)]
            groups = groups_of(linker, gathered, forms, gold, entity < 0, tune)
            add(found, f"{name}, ours discovered", ~tune, entity, groups)
            if name == "independent":
                known = decided[best(gold, decided, ~tune)]
                add(found, "independent, best λ, same string", ~tune, known, lower)
                add(found, "independent, best λ, each alone", ~tune, known, np.arange(len(lower)))
    return {name: _pooled(gold, parts) for name, parts in found.items()}


def add(found, name, rows, entity, groups) -> None:
    found.setdefault(name, []).append((rows, entity, groups))


def _pooled(gold: Gold, parts) -> Dict[str, float]:
    """Scores of the two halves, each weighted by its mentions (NIL scores and ARI by half)."""
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
        dropped = drop_entities(linker, docs, share, options.seed) if share else set()
        docs = without_dropped(docs, linker.kb)
        with encoding_once(linker):
            rows = run(linker, docs)
        missing = sum(s.kb_id_ == NIL for d in docs for s in find_mentions(d, linker.span_getter))
        print(f"\n{len(dropped)} entities dropped ({share:.0%}), {missing} mentions are NIL\n")
        columns = list(next(iter(rows.values())))
        print("| | " + " | ".join(columns) + " |")
        print("|---" * (len(columns) + 1) + "|")
        for name, row in rows.items():
            print(f"| {name} | " + " | ".join(f"{row[c]:.3f}" for c in columns) + " |", flush=True)


if __name__ == "__main__":
    main()
