"""Baselines that rank entities by surface form alone. Case does not count."""

from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, Sequence, Tuple

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from spacy.training import Example

from ..annotations import Link
from ..arrays import TopK, first_of_each, take_or
from ..kb.entity import NIL, Entity
from ..linker import ArboLinker
from ..mentions.getters import find_mentions
from ..mentions.labels import current_ids
from ..mentions.record import gold_ids
from .outcomes import Outcome
from .report import MOST_CANDIDATES, scores_with_seen
from .seen import Seen

# Numbers of the dense scores of names that are computed at a time.
BLOCK = 1 << 24

# Surface forms -> the positions of entities, best first.
Ranker = Callable[[Sequence[str]], TopK]


def baseline_scores(
    linker: ArboLinker, examples: Iterable[Example], rank: Ranker, seen: Seen
) -> Dict[str, Any]:
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
            Outcome(span.label_, tuple(gold), first, Link(first, 0.0, ids=candidates), span)
        )
    return scores_with_seen(results, seen)


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
    def build(cls, items: Iterable[Tuple[int, Entity]]) -> "NameTfidf":
        """Index all names of entities. items: Positions of entities, with the entities."""
        vectorizer = TfidfVectorizer(analyzer="char", ngram_range=(1, 2), dtype=np.float32)
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
