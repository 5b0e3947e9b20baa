"""The nearest other mentions of mentions, in a corpus or in a document.

In a corpus, all are searched, or some at a time. The result for a mention depends on the corpus
alone, not on the mentions that are searched for at the same time. So workers can share the mentions
among them.
"""

import hashlib
from dataclasses import dataclass
from typing import Any, Union

import numpy as np

from ..base.arrays import TopK, int_array, take_or
from ..base.devices import on_gpu
from .index.exact import FlatIndex, rescore
from .similarity import Similarity

# Mentions of a document that are compared by one matrix product.
MAX_COMPARED = 1024
# Mentions of a corpus up to which all pairs are compared; on two cores that takes half a minute.
MAX_EXACT = 65536
# The number of cells searched for a mention, as a multiple of the square root of all cells.
PROBES_FACTOR = 1.05
# Vectors per cell that its centre is fitted on.
TRAINING_ROWS_PER_CELL = 40
# Mentions that are searched for, or added to the cells, at a time.
BLOCK = 16384
# Vectors that are hashed at a time.
HASHED = 4096


def nearest_in_document(
    vectors: np.ndarray, documents: np.ndarray, count: int, similarity: Similarity
) -> TopK:
    """The nearest other mentions of the same document, (m, count).

    Mentions without a vector have no neighbours and are none. A document of more than
    ``MAX_COMPARED`` mentions is searched as a corpus is.

    vectors: (m, width) float32, prepared.
    documents: (m,) int64, ascending, the number of the document of each mention.
    """
    nearest = TopK.empty(len(vectors), count)
    readable = np.flatnonzero(usable(vectors))
    bounds = np.flatnonzero(np.diff(documents[readable], prepend=-1, append=-1))
    for start, end in zip(bounds[:-1], bounds[1:]):
        width = min(count, end - start - 1)
        if width <= 0:
            continue
        rows = readable[start:end]
        search = _compare_all if len(rows) <= MAX_COMPARED else nearest_in_corpus
        neighbours = search(vectors[rows], width, similarity)
        ids = take_or(rows, neighbours.ids, -1)
        nearest.put(rows, TopK(ids, neighbours.scores))
    return nearest


def _compare_all(vectors: np.ndarray, count: int, similarity: Similarity) -> TopK:
    scores = similarity.blocks(vectors, vectors)
    np.fill_diagonal(scores, -np.inf)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    return TopK(order, np.take_along_axis(scores, order, axis=1))


@dataclass(frozen=True)
class CorpusSearch:
    """Finds a corpus's nearest other mentions.

    vectors: (m, width) float32, prepared, of all mentions; may be mapped from a file.
    count: How many neighbours a mention has.
    index: The search index.
    """

    vectors: np.ndarray
    count: int
    index: Union["AllPairs", "Cells"]

    @classmethod
    def build(
        cls, vectors: np.ndarray, count: int, similarity: Similarity
    ) -> "CorpusSearch":
        """Build an exact search, or one by cells.

        It is exact for up to ``MAX_EXACT`` mentions, and on a GPU.

        vectors: (m, width) float32, prepared. Mentions without a vector have no neighbours and are
            none.
        """
        starts = range(0, len(vectors), BLOCK)
        blocks = [np.flatnonzero(usable(vectors[s : s + BLOCK])) + s for s in starts]
        readable = np.concatenate([int_array(), *blocks])
        if len(readable) > MAX_EXACT and not on_gpu():
            return cls(vectors, count, Cells.build(vectors, readable, similarity))
        return cls(
            vectors, count, AllPairs.build(vectors, readable, count + 1, similarity)
        )

    def nearest(self, mentions: np.ndarray) -> TopK:
        """Neighbours of mentions (b,) int64: (b, count), fewer where there are fewer others."""
        width = max(min(self.count, len(self.vectors) - 1), 0)
        nearest = TopK.empty(len(mentions), width)
        for start in range(0, len(mentions), BLOCK):
            searched = mentions[start : start + BLOCK]
            queries = np.asarray(self.vectors[searched])
            readable = np.flatnonzero(usable(queries))
            best = self.index.search(queries[readable], self.count + 1)
            neighbours = _without_self(best, searched[readable]).first(width)
            nearest.put(start + readable, neighbours)
        return nearest


def nearest_in_corpus(vectors: np.ndarray, count: int, similarity: Similarity) -> TopK:
    """Nearest other mentions of any document, for prepared vectors: (m, count), or (m, m - 1)."""
    return CorpusSearch.build(vectors, count, similarity).nearest(
        np.arange(len(vectors))
    )


@dataclass(frozen=True)
class AllPairs:
    """Compares a mention with all others. Of equally near ones the first are taken.

    rows: (r,) int64, ascending, the mentions that are searched: of many with equal vectors only the
        first ones.
    index: Their vectors.
    """

    rows: np.ndarray
    index: FlatIndex

    @classmethod
    def build(
        cls,
        vectors: np.ndarray,
        readable: np.ndarray,
        count: int,
        similarity: Similarity,
    ) -> "AllPairs":
        """count: How many are looked for, the mention itself included."""
        all_are = len(readable) == len(vectors)
        rows = readable[first_copies(vectors if all_are else vectors[readable], count)]
        return cls.over(vectors, rows, similarity)

    @classmethod
    def over(
        cls, vectors: np.ndarray, rows: np.ndarray, similarity: Similarity
    ) -> "AllPairs":
        """rows: As in the class."""
        searched = vectors if len(rows) == len(vectors) else vectors[rows]
        return cls(rows, FlatIndex(searched, similarity))

    @property
    def similarity(self) -> Similarity:
        return self.index.similarity

    def search(self, queries: np.ndarray, count: int) -> TopK:
        """The ``count`` mentions nearest to vectors. Fewer if there are fewer."""
        best = self.index.search(queries, count)
        return TopK(take_or(self.rows, best.ids, -1), best.scores)


@dataclass(frozen=True)
class Cells:
    """Nearly all of the nearest mentions.

    The vectors are put into cells round centres (FAISS, IVF), and each is compared with those in
    the cells nearest to it. That is 3 % of all pairs for 100,000 mentions and a smaller share for
    more: the cost grows with the power of 1.75 of their number. ``benchmarks/corpus.py`` measures
    the recall.

    vectors: (m, width) float32, prepared, of all mentions.
    centres: The centres of the cells. They are searched exactly, so that no other query has a say
        in which cells a mention is compared with.
    index: The mentions in the cells.
    """

    vectors: np.ndarray
    similarity: Similarity
    centres: FlatIndex
    index: Any

    @classmethod
    def build(
        cls, vectors: np.ndarray, readable: np.ndarray, similarity: Similarity
    ) -> "Cells":
        """readable: (r,) int64, ascending, the mentions that are searched."""
        # Its import takes time and memory, and exact search needs none of it.
        import faiss

        cells = int(4 * np.sqrt(len(readable)))
        width = vectors.shape[1]
        inner = similarity.metric == "ip"
        metric = faiss.METRIC_INNER_PRODUCT if inner else faiss.METRIC_L2
        centres = (faiss.IndexFlatIP if inner else faiss.IndexFlatL2)(width)
        index = faiss.IndexIVFFlat(centres, width, cells, metric)
        index.cp.niter = 6
        index.cp.max_points_per_centroid = TRAINING_ROWS_PER_CELL
        sample = min(len(readable), cells * TRAINING_ROWS_PER_CELL)
        chosen = np.random.default_rng(0).choice(readable, sample, replace=False)
        index.train(np.ascontiguousarray(vectors[np.sort(chosen)]))
        for start in range(0, len(readable), BLOCK):
            rows = readable[start : start + BLOCK]
            index.add_with_ids(np.ascontiguousarray(vectors[rows]), rows)
        return cls.over(vectors, similarity, index)

    @classmethod
    def over(cls, vectors: np.ndarray, similarity: Similarity, index: Any) -> "Cells":
        """index: As in the class."""
        index.nprobe = max(int(PROBES_FACTOR * np.sqrt(index.nlist)), 1)
        centres = index.quantizer.reconstruct_n(0, index.nlist)
        return cls(vectors, similarity, FlatIndex(centres, similarity), index)

    def search(self, queries: np.ndarray, count: int) -> TopK:
        """Nearly all of the ``count`` nearest mentions of vectors."""
        if not len(queries):
            return TopK.empty(0, count)
        inner = self.similarity.metric == "ip"
        sign = np.float32(1 if inner else -1)
        cells = self.centres.search(queries, self.index.nprobe)
        distances, rows = self.index.search_preassigned(
            queries, count, cells.ids, sign * cells.scores
        )
        approximate = TopK(rows, sign * distances)
        return rescore(approximate, queries, self.vectors, inner, approximate.width)


def _without_self(nearest: TopK, mentions: np.ndarray) -> TopK:
    """The neighbours of mentions (b,) without themselves, or the last, in one column less."""
    is_self = nearest.ids == mentions[:, None]
    is_self[~is_self.any(axis=1), -1:] = True
    shape = (len(mentions), max(nearest.width - 1, 0))
    return TopK(
        nearest.ids[~is_self].reshape(shape), nearest.scores[~is_self].reshape(shape)
    )


def usable(vectors: np.ndarray) -> np.ndarray:
    """(n,) bool, the vectors that can be compared. Zeros stand for text that cannot be read."""
    return vectors.any(axis=1) & np.isfinite(vectors).all(axis=1)


def first_copies(vectors: np.ndarray, count: int) -> np.ndarray:
    """(c,) int64, ascending, the rows that have fewer than ``count`` equal ones before them.

    Of equal vectors the first come first, so the others are never among the ``count`` nearest.
    """
    copies: dict[bytes, int] = {}
    is_among_first = np.zeros(len(vectors), dtype=bool)
    for row, digest in enumerate(digests_of(vectors).tolist()):
        copies[digest] = copies.get(digest, 0) + 1
        is_among_first[row] = copies[digest] <= count
    return np.flatnonzero(is_among_first)


def digests_of(vectors: np.ndarray) -> np.ndarray:
    """Hash vectors (m, width) float32 to 16 bytes each, a zero of either sign alike: (m,)."""
    digests = np.empty(len(vectors), dtype="V16")
    for start in range(0, len(vectors), HASHED):
        block = vectors[start : start + HASHED] + np.float32(0)
        for row, data in enumerate(np.ascontiguousarray(block).view(np.uint8), start):
            digests[row] = hashlib.blake2b(data, digest_size=16).digest()
    return digests
