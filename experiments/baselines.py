"""Baselines of papers that compare strings: alias tables and BM25 (DEER, §5.1), and TF-IDF.

    python baselines.py MODEL DEV.spacy [--train TRAIN.spacy]

They search the knowledge base of a pipeline. The training mentions are its exemplars, or those of
--train, such as for a pipeline without exemplars.
"""

import argparse
import re
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Dict, Iterable, List, Sequence, Tuple

import numpy as np
import spacy
from rich.console import Console
from sklearn.feature_extraction.text import CountVectorizer

from spacy_arbo_el.arrays import TopK
from spacy_arbo_el.corpora.docbin import read_docs
from spacy_arbo_el.corpora.reader import MentionCorpus
from spacy_arbo_el.evaluation.baselines import NameTfidf, Ranker, baseline_scores, best_of_rows
from spacy_arbo_el.evaluation.report import as_table
from spacy_arbo_el.evaluation.seen import Seen
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.linker import ArboLinker, find_linker
from spacy_arbo_el.mentions.labels import current_ids
from spacy_arbo_el.mentions.record import gold_ids

# Positions of entities, with the entities.
Items = Sequence[Tuple[int, Entity]]
# The surface forms of mentions, with the ids of their entities.
Mentions = Sequence[Tuple[str, Sequence[str]]]


def alias_table(mentions: Iterable[Tuple[str, Iterable[int]]], parts: bool = False) -> Ranker:
    """Rank entities by P(entity | surface form), counted in mentions.

    mentions: Surface forms, with the positions of their entities; -1 for one that is in no KB.
    parts: Whether each word of a mention, and each two in sequence, are surface forms as well.
    """
    counts: Dict[str, Counter] = defaultdict(Counter)
    for text, positions in mentions:
        words = folded(text).split()
        aliases = {" ".join(words)}
        if parts:
            aliases.update(words, map(" ".join, zip(words, words[1:])))
        for alias in aliases:
            counts[alias].update(set(positions) - {-1})

    def rank(surface_forms: Sequence[str]) -> TopK:
        found = [
            (row, position, count / sum(counts[alias].values()))
            for row, alias in enumerate(map(folded, surface_forms))
            if alias in counts
            for position, count in counts[alias].items()
        ]
        rows, ids, shares = np.array(found, dtype=np.float64).reshape(-1, 3).T
        return best_of_rows(rows, ids, shares, len(surface_forms))

    return rank


def folded(text: str) -> str:
    """A surface form in lower case, with single spaces."""
    return " ".join(text.casefold().split())


def bm25(items: Items, k1: float = 1.5, b: float = 0.75) -> Ranker:
    """Rank entities by the words of their titles, in Lucene's variant."""
    titles = {p: e.title.casefold() for p, e in items if e.names and re.search(r"\w", e.title)}
    if not titles:
        return lambda surface_forms: TopK.empty(len(surface_forms))
    vectorizer = CountVectorizer(token_pattern=r"\w+", lowercase=False)
    counts = vectorizer.fit_transform(titles.values()).tocoo()
    frequency = np.bincount(counts.col)
    idf = np.log(1 + (len(titles) - frequency + 0.5) / (frequency + 0.5))
    lengths = np.bincount(counts.row, counts.data)
    norm = k1 * (1 - b + b * lengths / lengths.mean())
    weights = counts.copy()
    weights.data = idf[counts.col] * counts.data / (counts.data + norm[counts.row])
    positions = np.array(list(titles))

    def rank(surface_forms: Sequence[str]) -> TopK:
        queries = vectorizer.transform(text.casefold() for text in surface_forms)
        scores = (queries @ weights.T).tocoo()
        return best_of_rows(scores.row, positions[scores.col], scores.data, len(surface_forms))

    return rank


def with_mentions(items: Items, mentions: Mentions) -> Items:
    """The entities, with the surface forms of their mentions as further aliases."""
    forms: Dict[str, List[str]] = defaultdict(list)
    for text, ids in mentions:
        for kb_id in ids:
            forms[kb_id].append(text)
    return [(p, replace(e, aliases=(*e.aliases, *forms.get(e.id, ())))) for p, e in items]


def rankers(linker: ArboLinker, mentions: Mentions) -> Dict[str, Ranker]:
    """The baselines by name. mentions: Those of the training corpus."""
    items = list(linker.kb.entities.items())
    positions = linker.kb.entities.positions_of
    known = [(text, positions(list(ids)).tolist()) for text, ids in mentions]
    return {
        "TF-IDF": NameTfidf.build(items),
        "TF-IDF + training mentions": NameTfidf.build(with_mentions(items, mentions)),
        "alias table": alias_table(known),
        "alias table + parts": alias_table(known, parts=True),
        "BM25": bm25(items),
    }


def training_mentions(linker: ArboLinker, train: "Path | None") -> Mentions:
    """The mentions of a corpus; without one, the linker's exemplars."""
    if train is None:
        labelled = [(record.text, record.kb_ids) for record in linker.exemplars.records]
    else:
        docs = read_docs(train, linker.vocab)
        spans = (span for doc in docs for span in linker.mentions.getter(doc) if span.kb_id_)
        labelled = [(span.text, gold_ids(span)) for span in spans]
    ids = current_ids(linker.kb, [ids for _, ids in labelled])
    return [(text, own) for (text, _), own in zip(labelled, ids)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--train", type=Path)
    args = parser.parse_args()
    nlp = spacy.load(args.model)
    linker, examples = find_linker(nlp), list(MentionCorpus(args.data)(nlp))
    mentions = training_mentions(linker, args.train)
    ids = frozenset(kb_id for _, own in mentions for kb_id in own)
    seen = Seen(ids, frozenset(text.casefold() for text, _ in mentions))
    rows = {
        name: baseline_scores(linker, examples, rank, seen)
        for name, rank in rankers(linker, mentions).items()
    }
    Console(width=130).print(as_table(rows, f"Baselines, {args.data}"))


if __name__ == "__main__":
    main()
