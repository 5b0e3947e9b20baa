"""The default beside a few lines around its encoder: namesakes by context, and lists with holes.

    python nearest_names.py CORPUS.spacy:KB [CORPUS.spacy:KB ...] [--holes 0.5]

These link a mention to the entity whose name has the nearest vector of the same encoder, with
``--context`` times the similarity of the 300 characters around it to the first 50 words of the
description. Without ``--holes``: R@1 of mentions with an entity, and of those whose name several
entities have, with paired intervals over documents. With it, that share of the gold entities is
removed from the list, and micro F1 is compared with the best of three thresholds on the similarity.
"""

import argparse
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import spacy
from entity_folds import interval
from spacy.tokens import Doc

from spacy_arbo_el.base.arrays import unit
from spacy_arbo_el.corpora.docbin import read_docs
from spacy_arbo_el.corpora.docs import unlinked_examples
from spacy_arbo_el.evaluation.holdout import remove_entities, with_removed_as_nil
from spacy_arbo_el.evaluation.outcomes import Outcome
from spacy_arbo_el.evaluation.report import linked_outcomes
from spacy_arbo_el.linker import ArboLinker

THRESHOLDS = (0.7, 0.8, 0.9)
AROUND, WORDS, SAMPLES = 150, 50, 2000


def encoded(linker: ArboLinker, texts: Sequence[str], size: int) -> np.ndarray:
    """Vectors of distinct texts, each encoded once: (n, width) float32."""
    number = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    vectors = unit(linker.encoder.encode_passages("entity", list(number), size))
    return vectors[[number[text] for text in texts]]


def nearest_names(
    linker: ArboLinker, results: Sequence[Outcome], weight: float
) -> tuple[list[str], np.ndarray]:
    """The nearest entity of each mention, and the similarity of its name."""
    entities = list(linker.kb)
    names = [(name, i) for i, entity in enumerate(entities) for name in entity.names]
    owners = np.array([owner for _, owner in names])
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    present = owners[starts]
    vectors = encoded(linker, [name for name, _ in names], 64)
    mentions = encoded(linker, [result.span.text for result in results], 64)
    if weight:
        described = [i for i, entity in enumerate(entities) if entity.description]
        texts = [" ".join(entities[i].description.split()[:WORDS]) for i in described]
        descriptions = np.zeros((len(entities), vectors.shape[1]), dtype=np.float32)
        descriptions[described] = encoded(linker, texts, 96)
        contexts = encoded(linker, [_around(result) for result in results], 96)
    chosen, similarity = [], []
    for row in range(len(results)):
        by_entity = np.maximum.reduceat(vectors @ mentions[row], starts)
        score = by_entity
        if weight:
            score = by_entity + weight * (descriptions[present] @ contexts[row])
        best = int(score.argmax())
        chosen.append(entities[present[best]].id)
        similarity.append(float(by_entity[best]))
    return chosen, np.array(similarity)


def _around(result: Outcome) -> str:
    text, span = result.span.doc.text, result.span
    return text[max(span.start_char - AROUND, 0) : span.end_char + AROUND]


def f1(right: np.ndarray, linked: np.ndarray, gold: np.ndarray) -> float:
    """Micro F1 of links."""
    return float(2 * (right & linked & gold).sum() / (linked.sum() + gold.sum()))


def outcomes_of(
    linker: ArboLinker, docs: Sequence[Doc], threshold: float
) -> list[Outcome]:
    results = linked_outcomes(
        linker, linker.stages, unlinked_examples(docs), threshold
    )
    return [
        result
        for result in results
        if result.gold is not None and result.link is not None
    ]


def namesakes(
    linker: ArboLinker, docs: Sequence[Doc], weights: Sequence[float]
) -> None:
    results = [r for r in outcomes_of(linker, docs, 0.0) if r.gold]
    documents = np.unique([id(r.span.doc) for r in results], return_inverse=True)[1]
    owners: dict[str, set] = {}
    for entity in linker.kb:
        for name in entity.names:
            owners.setdefault(name.casefold(), set()).add(entity.id)
    shared = np.array(
        [len(owners.get(r.span.text.casefold(), ())) > 1 for r in results]
    )
    ours = np.array([bool(r.link.ids) and r.link.ids[0] in r.gold for r in results])
    print(f"  {len(results)} mentions, {shared.sum()} of a shared name")
    print(
        f"  default {100 * ours.mean():.1f}, of a shared name {100 * ours[shared].mean():.1f}"
    )
    for weight in weights:
        chosen, _ = nearest_names(linker, results, weight)
        theirs = np.array([one in r.gold for one, r in zip(chosen, results)])
        low, high = 100 * interval(1.0 * ours - theirs, documents, SAMPLES)
        print(
            f"  nearest names, context {weight}: {100 * theirs.mean():.1f}, of a shared name "
            f"{100 * theirs[shared].mean():.1f}; default ahead by {low:+.1f} to {high:+.1f}"
        )


def holes(linker: ArboLinker, docs: Sequence[Doc], share: float) -> None:
    remove_entities(linker, docs, share, 0)
    docs = with_removed_as_nil(docs, linker.kb)
    results = outcomes_of(linker, docs, linker.threshold)
    gold = np.array([bool(r.gold) for r in results])
    linked = np.array([r.predicted != "NIL" for r in results])
    right = np.array([r.is_correct for r in results])
    chosen, similarity = nearest_names(linker, results, 0.0)
    theirs = np.array([one in (r.gold or ()) for one, r in zip(chosen, results)])
    scores = {t: f1(theirs, similarity >= t, gold) for t in THRESHOLDS}
    sure = np.array(
        [r.link.scores[0] >= 0.9 if r.link.scores else False for r in results]
    )
    first = np.array(
        [bool(r.link.ids) and r.link.ids[0] in (r.gold or ()) for r in results]
    )
    ours = f1(right, linked, gold)
    print(
        f"  {len(results)} mentions, {gold.mean():.0%} with an entity: F1 {ours:.3f}"
    )
    print(
        "  nearest names "
        + ", ".join(f"{t}: {score:.3f}" for t, score in scores.items())
    )
    print(
        f"  at 0.9 or more: {sure.mean():.0%} of mentions, right {first[sure].mean():.3f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="+", help="CORPUS.spacy:KB")
    parser.add_argument("--holes", type=float, default=0.0)
    parser.add_argument("--context", type=float, nargs="*", default=[0.0, 0.8])
    args = parser.parse_args()
    for one in args.data:
        corpus, kb = one.split(":")
        nlp = spacy.blank("en")
        linker: Any = nlp.add_pipe("arbo_linker")
        docs = [doc for doc in read_docs(corpus, nlp.vocab) if doc.ents]
        print(one, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            # Entities are removed from a copy, which has the vectors too.
            linker.set_kb(shutil.copytree(kb, Path(folder) / "kb"))
            linker.refresh()
            if args.holes:
                holes(linker, docs, args.holes)
            else:
                namesakes(linker, docs, args.context)


if __name__ == "__main__":
    main()
