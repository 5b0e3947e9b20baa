"""Baselines of papers that compare strings: alias tables and BM25 (DEER, §5.1), and TF-IDF.

    python baselines.py MODEL DEV.spacy [--train TRAIN.spacy] [--output SCORES.json]

They search the knowledge base of a pipeline. The training mentions are its exemplars, or those of
--train, such as for a pipeline without exemplars.
"""

import argparse
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import spacy
import srsly
from rich.console import Console
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from spacy.training import Example

from spacy_arbo_el.base.arrays import TopK, first_of_each, take_or
from spacy_arbo_el.corpora.docbin import read_docs
from spacy_arbo_el.corpora.reader import MentionCorpus
from spacy_arbo_el.evaluation.outcomes import Outcome
from spacy_arbo_el.evaluation.report import MOST_CANDIDATES, as_table, scores_with_seen
from spacy_arbo_el.evaluation.seen import Seen
from spacy_arbo_el.kb.entity import NIL, Entity
from spacy_arbo_el.linker import ArboLinker, find_linker
from spacy_arbo_el.mentions.annotations import Link
from spacy_arbo_el.mentions.getters import find_mentions
from spacy_arbo_el.mentions.labels import current_ids
from spacy_arbo_el.mentions.record import gold_ids

# Numbers of the dense scores of names that are computed at a time.
BLOCK = 1 << 24

# Surface forms -> the positions of entities, best first.
Ranker = Callable[[Sequence[str]], TopK]
# Positions of entities, with the entities.
Items = Sequence[tuple[int, Entity]]
# The surface forms of mentions, with the ids of their entities.
Mentions = Sequence[tuple[str, Sequence[str]]]


def baseline_scores(
    linker: ArboLinker, examples: Iterable[Example], rank: Ranker, seen: Seen
) -> dict[str, Any]:
    """Score a baseline on gold mentions. The keys are those of ``score_rows``.

    Its first candidate is its prediction, or NIL without candidates.

    linker: Its knowledge base is searched.
    examples: Their references have the mentions.
    rank: The baseline.
    seen: What counts as seen.
    """
    mentions = (find_mentions(eg.reference, linker.mentions.getter) for eg in examples)
    spans = [span for group in mentions for span in group if span.kb_id_]
    found = rank([span.text for span in spans]).ids
    ids = {position: entity.id for position, entity in linker.kb.entities.items()}
    golds = current_ids(linker.kb, [gold_ids(span) for span in spans])
    results = []
    for span, gold, row in zip(spans, golds, found.tolist()):
        candidates = [ids[position] for position in row if position >= 0]
        first = candidates[0] if candidates else NIL
        results.append(
            Outcome(
                span.label_, tuple(gold), first, Link(first, 0.0, ids=candidates), span
            )
        )
    return scores_with_seen(results, seen, linker.kb)


@dataclass(frozen=True)
class NameTfidf:
    """TF-IDF over characters and pairs of them. The cosine to the most similar name.

    BioCoM has this baseline (Table 1, appendix D).

    vectorizer: Makes the vectors.
    names: (names, n-grams), the vectors of all names, those of an entity side by side.
    starts: (entities,) int64, the first name of each entity that has one.
    positions: (entities,) int64, these entities.
    """

    vectorizer: TfidfVectorizer
    names: sparse.csr_matrix
    starts: np.ndarray
    positions: np.ndarray

    @classmethod
    def build(cls, items: Iterable[tuple[int, Entity]]) -> "NameTfidf":
        """Index all names of entities. items: Positions of entities, with the entities."""
        vectorizer = TfidfVectorizer(
            analyzer="char", ngram_range=(1, 2), dtype=np.float32
        )
        named = [
            (position, entity.names) for position, entity in items if entity.names
        ]
        names = [name for _, group in named for name in group]
        counts = np.array([len(group) for _, group in named], dtype=np.int64)
        matrix = (
            vectorizer.fit_transform(names)
            if any(names)
            else sparse.csr_matrix((0, 0))
        )
        positions = np.array([position for position, _ in named], dtype=np.int64)
        return cls(vectorizer, matrix, np.cumsum(counts) - counts, positions)

    def __call__(self, surface_forms: Sequence[str]) -> TopK:
        if not self.names.shape[0]:
            return TopK.empty(len(surface_forms), MOST_CANDIDATES)
        number = {text: i for i, text in enumerate(dict.fromkeys(surface_forms))}
        distinct, size = list(number), max(BLOCK // self.names.shape[0], 1)
        blocks = [
            self._ranked(distinct[i : i + size]) for i in range(0, len(distinct), size)
        ]
        rows = np.array([number[text] for text in surface_forms], dtype=np.int64)
        return TopK.concat(blocks).resized(MOST_CANDIDATES).take(rows)

    def _ranked(self, surface_forms: Sequence[str]) -> TopK:
        queries = self.vectorizer.transform(surface_forms).toarray()
        scores = np.maximum.reduceat(self.names @ queries.T, self.starts, axis=0).T
        kept = min(MOST_CANDIDATES, scores.shape[1])
        # All that are as good as the last candidate, since equal ones go by their positions.
        last = -np.partition(-scores, kept - 1, axis=1)[:, kept - 1]
        rows, columns = np.nonzero((scores >= last[:, None]) & (scores > 0))
        return best_of_rows(
            rows, self.positions[columns], scores[rows, columns], len(scores)
        )


def best_of_rows(
    rows: np.ndarray, ids: np.ndarray, scores: np.ndarray, n_rows: int
) -> TopK:
    """The best entries of each row, ``MOST_CANDIDATES`` at most.

    rows: (n,) int64, the row of each entry.
    ids: (n,) int64, at most once in a row.
    scores: (n,) float32.
    """
    order = np.lexsort((ids, -scores, rows))
    ids, scores = ids[order].astype(np.int64), scores[order].astype(np.float32)
    places = first_of_each(rows[order].astype(np.int64), ids, n_rows, MOST_CANDIDATES)
    return TopK(take_or(ids, places, -1), take_or(scores, places, -np.inf))


def alias_table(
    mentions: Iterable[tuple[str, Iterable[int]]], parts: bool = False
) -> Ranker:
    """Rank entities by P(entity | surface form), counted in mentions.

    mentions: Surface forms, with the positions of their entities; -1 for one that is in no KB.
    parts: Whether each word of a mention, and each two in sequence, are surface forms as well.
    """
    counts: dict[str, Counter] = defaultdict(Counter)
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
    titles = {
        p: e.title.casefold()
        for p, e in items
        if e.names and re.search(r"\w", e.title)
    }
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
        return best_of_rows(
            scores.row, positions[scores.col], scores.data, len(surface_forms)
        )

    return rank


def with_mentions(items: Items, mentions: Mentions) -> Items:
    """The entities, with the surface forms of their mentions as further aliases."""
    forms: dict[str, list[str]] = defaultdict(list)
    for text, ids in mentions:
        for kb_id in ids:
            forms[kb_id].append(text)
    return [
        (p, replace(e, aliases=(*e.aliases, *forms.get(e.id, ())))) for p, e in items
    ]


def rankers(linker: ArboLinker, mentions: Mentions) -> dict[str, Ranker]:
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
        labelled = [
            (record.text, record.kb_ids) for record in linker.exemplars.records
        ]
    else:
        docs = read_docs(train, linker.vocab)
        spans = (
            span for doc in docs for span in linker.mentions.getter(doc) if span.kb_id_
        )
        labelled = [(span.text, gold_ids(span)) for span in spans]
    ids = current_ids(linker.kb, [ids for _, ids in labelled])
    return [(text, own) for (text, _), own in zip(labelled, ids)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--train", type=Path)
    parser.add_argument("--output", type=Path, help="A JSON file of the rows.")
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
    Console(width=140).print(as_table(rows, f"Baselines, {args.data}"))
    if args.output:
        srsly.write_json(args.output, rows)


if __name__ == "__main__":
    main()
