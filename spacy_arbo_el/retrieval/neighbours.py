"""Vectors of mentions -> their neighbours: entities, exemplars, mentions of the same document."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Optional

import numpy as np
from thinc.api import get_torch_default_device

from .entities import EntitySearch, Types, search_by_type
from .index import DECISIVE, FlatIndex, Index, faiss, settle_first
from .similarity import Similarity

if TYPE_CHECKING:
    from .candidates import Candidates


# Mentions up to which all pairs are compared; on two cores that takes half a minute.
EXACT = 65536
# Beyond: how many cells are searched for each mention, of so many times the root of all.
SEARCHED = 1.05
# Vectors a cell that its centre is fitted on.
FITTED_ON = 40


@dataclass(frozen=True)
class Neighbours:
    """What is near each of ``m`` mentions, nearest first; -1 and -inf fill up the rows.

    document: (m,) int64, which document each mention stands in.
    entities, entity_similarity: (m, c) int64 positions in the KB and float32 similarities.
    exemplars, exemplar_similarity: (m, k) int64 rows in the store and float32.
    exemplar_entity: (m, k) int64, the entity each of these exemplars is labelled with.
    candidates: All that speaks for the likeliest entities, where a lexicon was asked for.
    decided: (m,) bool, mentions that a correction has decided: their first exemplar is right.
    corrected: (m,) bool, mentions that a correction holds for: no other mention carries them.
    mentions, mention_similarity: (m, j) int64 and float32, other mentions, of the same document
        unless all documents are linked together.
    vectors: (m, width) float32, the mentions' own, prepared. euclidean: Whether they are compared
        by their squared Euclidean distance, rather than the inner product.
    """

    document: np.ndarray
    entities: np.ndarray
    entity_similarity: np.ndarray
    exemplars: np.ndarray
    exemplar_similarity: np.ndarray
    exemplar_entity: np.ndarray
    mentions: np.ndarray
    mention_similarity: np.ndarray
    candidates: Optional["Candidates"] = None
    decided: Optional[np.ndarray] = None
    corrected: Optional[np.ndarray] = None
    vectors: Optional[np.ndarray] = None
    euclidean: bool = False

    def __len__(self) -> int:
        return len(self.document)


class Retriever:
    """Searches the KB's texts, the exemplars and the document's own mentions.

    entities: The search over the knowledge base.
    exemplar_index: An index over the exemplars' vectors.
    exemplar_rows, exemplar_entity: (n,) int64, for each vector of the exemplar index its row in
        the store and the entity it is labelled with.
    """

    def __init__(
        self,
        entities: EntitySearch,
        exemplar_index: Index,
        exemplar_rows: np.ndarray,
        exemplar_entity: np.ndarray,
        similarity: Similarity,
    ):
        self.entities = entities
        self.exemplar_index = exemplar_index
        self.exemplar_rows = exemplar_rows
        self.exemplar_entity = exemplar_entity
        self.similarity = similarity

    def neighbours(
        self,
        vectors: np.ndarray,
        document: np.ndarray,
        entities: int,
        exemplars: int,
        mentions: int,
        types: Optional[Types] = None,
        named: Optional[np.ndarray] = None,
    ) -> Neighbours:
        """The neighbours of mentions.

        vectors: (m, width) float32, prepared.
        document: (m,) int64, ascending: mentions of a document stand together.
        entities, exemplars, mentions: How many of each to find.
        types: Which entities a mention may be linked to, and so which exemplars count.
        named: (m, c) int64 entities that go by a mention's name, -1 for none.
        """
        others = nearest_in_document(vectors, document, mentions, self.similarity)
        found = Neighbours(
            document,
            *self.entities.nearest(vectors, entities, types, named),
            *self._nearest_exemplars(vectors, exemplars, types),
            *others,
        )
        return replace(found, vectors=vectors, euclidean=self.similarity.metric != "ip")

    def _nearest_exemplars(self, vectors: np.ndarray, count: int, types: Optional[Types]):
        def search(vectors: np.ndarray, count: int, allowed: Optional[np.ndarray]):
            usable = None if allowed is None else allowed[self.exemplar_entity]
            similarities, found = self.exemplar_index.search(vectors, count, usable)
            return found, similarities

        count = min(count, len(self.exemplar_rows))
        found, similarities = search_by_type(search, vectors, count, types)
        there = found >= 0
        return (
            np.where(there, self.exemplar_rows[found], -1),
            similarities,
            np.where(there, self.exemplar_entity[found], -1),
        )


def nearest_in_document(
    vectors: np.ndarray, document: np.ndarray, count: int, similarity: Similarity
):
    """The nearest other mentions of the same document.

    RETURNS: mentions (m, count) int64 and similarities (m, count) float32.
    """
    found = np.full((len(vectors), count), -1, dtype=np.int64)
    similarities = np.full((len(vectors), count), -np.inf, dtype=np.float32)
    bounds = np.flatnonzero(np.diff(document, prepend=-1, append=-1))
    for start, end in zip(bounds[:-1], bounds[1:]):
        kept = min(count, end - start - 1)
        if kept <= 0:
            continue
        scores = similarity.blocks(vectors[start:end], vectors[start:end])
        np.fill_diagonal(scores, -np.inf)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :kept]
        found[start:end, :kept] = order + start
        similarities[start:end, :kept] = np.take_along_axis(scores, order, axis=1)
    return found, similarities


def nearest_in_corpus(vectors: np.ndarray, count: int, similarity: Similarity):
    """The nearest other mentions of any document, in the form of ``nearest_in_document``.

    Exact up to ``EXACT`` mentions, and on a GPU; beyond that by ``nearest_in_cells``.
    """
    if len(vectors) > EXACT and get_torch_default_device().type == "cpu" and faiss:
        similarities, found = nearest_in_cells(vectors, count + 1, similarity)
    else:
        similarities, found = FlatIndex(vectors, similarity).search(vectors, count + 1)
    # A mention usually finds itself first, but not where others have the very same vector.
    itself = found == np.arange(len(vectors))[:, None]
    itself[~itself.any(axis=1), -1:] = True
    shape = (len(vectors), max(found.shape[1] - 1, 0))
    return found[~itself].reshape(shape), similarities[~itself].reshape(shape)


def nearest_in_cells(vectors: np.ndarray, count: int, similarity: Similarity):
    """The ``count`` nearest of the vectors to each of them, itself included, but for a few.

    The vectors are put into cells round centres (FAISS, IVF), and each is compared with those in
    the cells nearest to it, 3 % of all pairs for 100,000 mentions, fewer for more (the cost grows
    with the power of 1.75 of their number). ``benchmarks/corpus.py`` says how many are missed.
    RETURNS: similarities (m, count) float32 and rows (m, count) int64.
    """
    cells = int(4 * np.sqrt(len(vectors)))
    searched = int(SEARCHED * np.sqrt(cells))
    inner = similarity.metric == "ip"
    metric = faiss.METRIC_INNER_PRODUCT if inner else faiss.METRIC_L2
    centres = (faiss.IndexFlatIP if inner else faiss.IndexFlatL2)(vectors.shape[1])
    index = faiss.IndexIVFFlat(centres, vectors.shape[1], cells, metric)
    index.cp.niter, index.cp.max_points_per_centroid = 6, FITTED_ON
    index.train(vectors)
    index.add(vectors)
    index.nprobe = searched
    similarities, found = index.search(vectors, count)
    similarities = similarities if inner else -similarities
    settle_first(similarities, found, vectors, similarity, vectors.__getitem__)
    return similarities, found


def nearest_earlier(
    earlier: np.ndarray, new: np.ndarray, count: int, similarity: Similarity, block: int = 256
):
    """The nearest of the mentions that came before each new one, new ones among them.

    earlier: (n, width) float32, prepared. new: (m, width), in the order in which they came.
    RETURNS: rows (m, count) int64, those of new mentions numbered on from n, and similarities
        (m, count) float32; -1 and -inf where there are no more. Both depend on a mention and what
        came before it alone, not on how many come at once.
    """
    known, rows = len(earlier), np.arange(len(new))
    found = np.full((len(new), count), -1, dtype=np.int64)
    values = np.full((len(new), count), -np.inf, dtype=np.float32)
    for start in range(0, len(new), block):
        part = new[start : start + block]
        among = new[: start + len(part)]
        scores = np.full((len(part), known + len(among)), -np.inf, dtype=np.float32)
        if known:
            scores[:, :known] = similarity.blocks(part, earlier)
        scores[:, known:] = similarity.blocks(part, among)
        later = np.arange(len(among)) >= rows[start : start + len(part), None]
        scores[:, known:][later] = -np.inf
        # Further than asked for: among near equals, the exact similarities decide.
        wide = min(count + DECISIVE, scores.shape[1])
        near = np.argpartition(-scores, wide - 1, axis=1)[:, :wide]
        last = np.take_along_axis(scores, near, axis=1).min(axis=1)
        # Where more are equally near than fit, those that came first.
        for row in np.flatnonzero((scores >= last[:, None]).sum(axis=1) > wide).tolist():
            if np.isfinite(last[row]):
                near[row] = np.argsort(-scores[row], kind="stable")[:wide]
        near = np.where(np.isfinite(np.take_along_axis(scores, near, axis=1)), near, -1)
        exact = similarity.paired(part, _take_from_two(earlier, among, np.maximum(near, 0)))
        exact[near < 0] = -np.inf
        order = np.lexsort((near, -exact), axis=1)[:, :count]
        kept = order.shape[1]
        found[start : start + block, :kept] = np.take_along_axis(near, order, axis=1)
        values[start : start + block, :kept] = np.take_along_axis(exact, order, axis=1)
    return found, values


def _take_from_two(first: np.ndarray, second: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Rows (m, k) of two arrays one after the other, without making one of them."""
    taken = np.empty((*rows.shape, second.shape[1]), dtype=np.float32)
    in_first = rows < len(first)
    if in_first.any():
        taken[in_first] = first[rows[in_first]]
    taken[~in_first] = second[rows[~in_first] - len(first)]
    return taken
