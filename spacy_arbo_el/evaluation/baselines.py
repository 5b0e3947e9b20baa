"""Baselines that compare strings: TF-IDF of names, an alias table, BM25 over titles.

They rank the entities of a knowledge base by the surface form of a mention alone, in any case. So
they say how far one gets without an encoder and without context. All searches are batched: an
entity is scored by a sparse matrix product.
"""

import re
from collections import Counter
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from spacy.tokens import Doc, Span
from spacy.training import Example

from ..annotations import Link
from ..arrays import TopK, first_of_each, take_or
from ..errors import Errors
from ..kb.entity import NIL, Entity
from ..linker import ArboLinker
from ..mentions.getters import find_mentions
from ..mentions.labels import current_ids
from ..mentions.records import gold_ids
from .report import MOST_CANDIDATES, scores_with_seen, seen_ids
from .scorer import Outcome

# Numbers of the dense scores of names that are computed at a time.
BLOCK = 1 << 24
_WORD = re.compile(r"\w+")

# Surface forms -> the positions of entities, best first.
Ranker = Callable[[Sequence[str]], TopK]
# Positions of entities in a knowledge base, with the entities.
Items = Sequence[Tuple[int, Entity]]


@dataclass(frozen=True)
class Labelled:
    """Annotated mentions.

    surface_forms: The text of each.
    kb_ids: The ids of its entities; empty for NIL.
    """

    surface_forms: Sequence[str]
    kb_ids: Sequence[Sequence[str]]

    @classmethod
    def from_exemplars(cls, linker: ArboLinker) -> "Labelled":
        """The mentions that a linker has stored."""
        records = linker.exemplars.records
        kb_ids = current_ids(linker.kb, [record.kb_ids for record in records])
        return cls([record.text for record in records], kb_ids)

    @classmethod
    def from_docs(cls, docs: Iterable[Doc], linker: ArboLinker) -> "Labelled":
        """The mentions of annotated documents."""
        return cls.of([span for doc in docs for span in _annotated(doc, linker)], linker)

    @classmethod
    def of(cls, spans: Sequence[Span], linker: ArboLinker) -> "Labelled":
        """Annotated mentions, with the ids that their entities have now."""
        kb_ids = current_ids(linker.kb, [gold_ids(span) for span in spans])
        return cls([span.text for span in spans], kb_ids)


def baseline_scores(
    linker: ArboLinker, examples: Sequence[Example], train: Optional[Iterable[Doc]] = None
) -> Dict[str, Dict[str, Any]]:
    """Scores of baselines on gold mentions, with the keys of ``compare_inference``.

    TF-IDF: Character unigrams and bigrams of all names (BioCoM, Table 2).
    TF-IDF + training mentions: The same, with training mentions as further names.
    alias table: P(entity | surface form), counted in the training mentions (DEER, §5.1).
    alias table + parts: Unigrams and bigrams of training mentions lead to their entities too.
    BM25: Words of titles (DEER, §5.1). Only where the package ``bm25s`` is installed.

    linker: Its knowledge base is searched.
    examples: Their references have the mentions.
    train: Documents with the training mentions; by default the linker's exemplars. Entities that
        occur in them are "seen". The alias tables are left out where there are none.
    """
    if train is None:
        labelled, seen = Labelled.from_exemplars(linker), seen_ids(linker)
    else:
        labelled = Labelled.from_docs(train, linker)
        seen = {kb_id for ids in labelled.kb_ids for kb_id in ids}
    spans = [span for example in examples for span in _annotated(example.reference, linker)]
    items = list(linker.kb.entities.items())
    ids = {position: entity.id for position, entity in items}
    mentions = Labelled.of(spans, linker)
    labels = [span.label_ for span in spans]
    return {
        name: scores_with_seen(
            _outcomes(mentions, labels, ranker(mentions.surface_forms), ids), seen
        )
        for name, ranker in _rankers(linker, items, labelled)
    }


def _rankers(linker: ArboLinker, items: Items, labelled: Labelled) -> Iterable[Tuple[str, Ranker]]:
    yield "TF-IDF", NameTfidf.build(items)
    if any(labelled.kb_ids):
        yield "TF-IDF + training mentions", NameTfidf.build(_with_mentions(items, labelled))
        positions = [linker.kb.entities.positions_of(list(ids)) for ids in labelled.kb_ids]
        yield "alias table", AliasTable.build(labelled.surface_forms, positions)
        yield "alias table + parts", AliasTable.build(labelled.surface_forms, positions, parts=True)
    if has_bm25():
        yield "BM25", TitleBm25.build(items)


def _with_mentions(items: Items, labelled: Labelled) -> Items:
    """The entities with the surface forms of their training mentions as further aliases."""
    forms: Dict[str, Dict[str, None]] = {}
    for form, ids in zip(labelled.surface_forms, labelled.kb_ids):
        for kb_id in ids:
            forms.setdefault(kb_id, {})[form] = None
    return [
        (position, replace(entity, aliases=(*entity.aliases, *forms.get(entity.id, ()))))
        for position, entity in items
    ]


def _annotated(doc: Doc, linker: ArboLinker) -> List[Span]:
    """The mentions of a document that are annotated."""
    return [span for span in find_mentions(doc, linker.mentions.getter) if span.kb_id_]


def _outcomes(
    mentions: Labelled, labels: Sequence[str], found: TopK, ids: Mapping[int, str]
) -> List[Outcome]:
    """What a baseline predicts: its first candidate, or NIL where it has none."""
    results = []
    for label, gold, row in zip(labels, mentions.kb_ids, found.ids.tolist()):
        candidates = [ids[position] for position in row if position >= 0]
        first = candidates[0] if candidates else NIL
        link = Link(first, 0.0, ids=candidates)
        results.append(Outcome(label, tuple(gold), first, link))
    return results


@dataclass(frozen=True)
class NameTfidf:
    """The cosine similarity of TF-IDF vectors over characters, to the most similar name.

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
    def build(cls, items: Items, ngrams: Tuple[int, int] = (1, 2)) -> "NameTfidf":
        """The index of all names of entities.

        ngrams: The lengths of the shortest and the longest n-grams.
        """
        vectorizer = TfidfVectorizer(analyzer="char", ngram_range=ngrams, dtype=np.float32)
        named = [(position, entity.names) for position, entity in items if entity.names]
        names = [name for _, group in named for name in group]
        counts = np.array([len(group) for _, group in named], dtype=np.int64)
        matrix = vectorizer.fit_transform(names) if any(names) else sparse.csr_matrix((0, 0))
        positions = np.array([position for position, _ in named], dtype=np.int64)
        return cls(vectorizer, matrix, np.cumsum(counts) - counts, positions)

    def __call__(self, surface_forms: Sequence[str]) -> TopK:
        if not self.names.shape[0]:
            return TopK.empty(len(surface_forms), MOST_CANDIDATES)
        number = {text: i for i, text in enumerate(dict.fromkeys(surface_forms))}
        distinct, size = list(number), max(BLOCK // self.names.shape[0], 1)
        blocks = [self._ranked(distinct[i : i + size]) for i in range(0, len(distinct), size)]
        rows = np.array([number[text] for text in surface_forms], dtype=np.int64)
        return TopK.concat(blocks).resized(MOST_CANDIDATES).take(rows)

    def _ranked(self, surface_forms: Sequence[str]) -> TopK:
        queries = self.vectorizer.transform(surface_forms).toarray()
        scores = np.maximum.reduceat(self.names @ queries.T, self.starts, axis=0).T
        kept = min(MOST_CANDIDATES, scores.shape[1])
        # All that are as good as the last candidate, since equal ones go by their positions.
        last = -np.partition(-scores, kept - 1, axis=1)[:, kept - 1]
        rows, columns = np.nonzero((scores >= last[:, None]) & (scores > 0))
        return best_of_rows(rows, self.positions[columns], scores[rows, columns], len(scores))


@dataclass(frozen=True)
class AliasTable:
    """Entities by their share of the training mentions with a surface form, P(e | m).

    aliases: The number of each folded surface form.
    priors: (aliases, positions), the shares.
    """

    aliases: Mapping[str, int]
    priors: sparse.csr_matrix

    @classmethod
    def build(
        cls, surface_forms: Sequence[str], positions: Sequence[np.ndarray], parts: bool = False
    ) -> "AliasTable":
        """The table of training mentions.

        surface_forms: The text of each mention.
        positions: The positions of its entities; -1 for those that are in no knowledge base.
        parts: Whether each word of a mention, and each two in sequence, are aliases as well.
        """
        counts: Counter[Tuple[str, int]] = Counter()
        for text, entities in zip(surface_forms, positions):
            aliases = {folded(text)} | (_parts(text) if parts else set())
            counts.update((a, p) for a in aliases for p in {*entities.tolist()} if p >= 0)
        numbers = {alias: i for i, alias in enumerate(dict.fromkeys(a for a, _ in counts))}
        rows = np.array([numbers[alias] for alias, _ in counts], dtype=np.int64)
        columns = np.array([position for _, position in counts], dtype=np.int64)
        values = np.array(list(counts.values()), dtype=np.float64)
        totals = np.bincount(rows, weights=values, minlength=len(numbers))
        shape = len(numbers), int(columns.max(initial=-1)) + 1
        shares = (values / totals[rows]).astype(np.float32)
        return cls(numbers, sparse.csr_matrix((shares, (rows, columns)), shape=shape))

    def __call__(self, surface_forms: Sequence[str]) -> TopK:
        row = np.array([self.aliases.get(folded(t), -1) for t in surface_forms], dtype=np.int64)
        known = np.flatnonzero(row >= 0)
        found = self.priors[row[known]].tocoo()
        return best_of_rows(known[found.row], found.col, found.data, len(row))


def folded(text: str) -> str:
    """A surface form without case, and with single spaces."""
    return " ".join(text.casefold().split())


def words(text: str) -> List[str]:
    """The words of a text without case: letters, digits and underscores."""
    return _WORD.findall(text.casefold())


def _parts(text: str) -> "set[str]":
    """Each word of a text, and each two in sequence."""
    single = folded(text).split()
    return {*single, *map(" ".join, zip(single, single[1:]))}


@dataclass(frozen=True)
class TitleBm25:
    """BM25 over the words of titles (Lucene's variant, k1 = 1.5, b = 0.75).

    vocabulary: The column of each word.
    weights: (titles, words), what a word adds to the score of a title.
    positions: (titles,) int64, the entities.
    """

    vocabulary: Mapping[str, int]
    weights: sparse.csc_matrix
    positions: np.ndarray

    @classmethod
    def build(cls, items: Items) -> "TitleBm25":
        """The index of the titles of entities that have words.

        Raises ImportError where ``bm25s`` is not installed.
        """
        if not has_bm25():
            raise ImportError(Errors.E830)
        import bm25s

        # An entity without a name has no title to index.
        titles = [(position, words(e.title)) for position, e in items if e.names]
        titles = [(position, tokens) for position, tokens in titles if tokens]
        positions = np.array([position for position, _ in titles], dtype=np.int64)
        if not titles:
            return cls({}, sparse.csc_matrix((0, 0)), positions)
        # Numbered in order: bm25s would number them by a set, so that sums differ between runs.
        distinct = dict.fromkeys(word for _, tokens in titles for word in tokens)
        vocabulary = {word: number for number, word in enumerate(distinct)}
        numbers = [[vocabulary[word] for word in tokens] for _, tokens in titles]
        index = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
        index.index(bm25s.tokenization.Tokenized(numbers, vocabulary), show_progress=False)
        parts = (index.scores["data"], index.scores["indices"], index.scores["indptr"])
        weights = sparse.csc_matrix(parts, shape=(len(titles), len(parts[2]) - 1))
        return cls(vocabulary, weights, positions)

    def __call__(self, surface_forms: Sequence[str]) -> TopK:
        tokens = [
            [self.vocabulary[word] for word in words(text) if word in self.vocabulary]
            for text in surface_forms
        ]
        columns = np.array([column for group in tokens for column in group], dtype=np.int64)
        rows = np.repeat(np.arange(len(tokens)), [len(group) for group in tokens])
        shape = len(tokens), self.weights.shape[1]
        counts = sparse.csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape=shape)
        scores = (counts @ self.weights.T.tocsr()).tocoo()
        found = scores.data > 0
        ids = self.positions[scores.col[found]]
        return best_of_rows(scores.row[found], ids, scores.data[found], len(tokens))


def has_bm25() -> bool:
    """Whether ``bm25s`` is installed, of the extra "baselines"."""
    return find_spec("bm25s") is not None


def best_of_rows(rows: np.ndarray, ids: np.ndarray, scores: np.ndarray, n_rows: int) -> TopK:
    """The best entries of each row, ``MOST_CANDIDATES`` at most.

    rows: (n,) int64, the row of each entry.
    ids: (n,) int64, at most once in a row.
    scores: (n,) float32.
    """
    order = np.lexsort((ids, -scores, rows))
    ids, scores = ids[order].astype(np.int64), scores[order].astype(np.float32)
    places = first_of_each(rows[order].astype(np.int64), ids, n_rows, MOST_CANDIDATES)
    return TopK(take_or(ids, places, -1), take_or(scores, places, -np.inf))
