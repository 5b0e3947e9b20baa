"""The nearest mentions of mentions: in their document, in a corpus, among earlier ones."""

import numpy as np
from thinc.api import get_torch_default_device

from ..arrays import TopK
from .index.flat import PAIRWISE_RESCORED, FlatIndex, faiss, rescore_first
from .similarity import Similarity

# Mentions up to which all pairs are compared; on two cores that takes half a minute.
MAX_EXACT = 65536
# The number of cells searched for a mention, as a multiple of the square root of all cells.
PROBES_FACTOR = 1.05
# Vectors per cell that its centre is fitted on.
TRAINING_ROWS_PER_CELL = 40


def nearest_in_document(
    vectors: np.ndarray, documents: np.ndarray, count: int, similarity: Similarity
) -> TopK:
    """The nearest other mentions of the same document, (m, count).

    vectors: (m, width) float32, prepared.
    documents: (m,) int64, ascending, the number of the document of each mention.
    """
    nearest = TopK.empty(len(vectors), count)
    bounds = np.flatnonzero(np.diff(documents, prepend=-1, append=-1))
    for start, end in zip(bounds[:-1], bounds[1:]):
        width = min(count, end - start - 1)
        if width <= 0:
            continue
        scores = similarity.blocks(vectors[start:end], vectors[start:end])
        np.fill_diagonal(scores, -np.inf)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :width]
        nearest.ids[start:end, :width] = order + start
        nearest.scores[start:end, :width] = np.take_along_axis(scores, order, axis=1)
    return nearest


def nearest_in_corpus(vectors: np.ndarray, count: int, similarity: Similarity) -> TopK:
    """The nearest other mentions of any document, (m, count) or (m, m - 1) if there are fewer.

    Exact up to ``MAX_EXACT`` mentions, and on a GPU; beyond that by ``nearest_in_cells``.

    vectors: (m, width) float32, prepared.
    """
    if len(vectors) > MAX_EXACT and get_torch_default_device().type == "cpu" and faiss:
        nearest = nearest_in_cells(vectors, count + 1, similarity)
    else:
        nearest = FlatIndex(vectors, similarity).search(vectors, count + 1)
    # A mention is usually its own nearest one, but not where others have the same vector.
    is_self = nearest.ids == np.arange(len(vectors))[:, None]
    is_self[~is_self.any(axis=1), -1:] = True
    shape = (len(vectors), max(nearest.width - 1, 0))
    return TopK(nearest.ids[~is_self].reshape(shape), nearest.scores[~is_self].reshape(shape))


def nearest_in_cells(vectors: np.ndarray, count: int, similarity: Similarity) -> TopK:
    """Nearly all of the ``count`` nearest mentions of each, itself included.

    The vectors are put into cells round centres (FAISS, IVF), and each is compared with those in
    the cells nearest to it. That is 3 % of all pairs for 100,000 mentions and a smaller share for
    more: the cost grows with the power of 1.75 of their number. ``benchmarks/corpus.py`` measures
    the recall.

    vectors: (m, width) float32, prepared.
    """
    cells = int(4 * np.sqrt(len(vectors)))
    inner = similarity.metric == "ip"
    metric = faiss.METRIC_INNER_PRODUCT if inner else faiss.METRIC_L2
    centres = (faiss.IndexFlatIP if inner else faiss.IndexFlatL2)(vectors.shape[1])
    index = faiss.IndexIVFFlat(centres, vectors.shape[1], cells, metric)
    index.cp.niter, index.cp.max_points_per_centroid = 6, TRAINING_ROWS_PER_CELL
    index.train(vectors)
    index.add(vectors)
    index.nprobe = int(PROBES_FACTOR * np.sqrt(cells))
    distances, rows = index.search(vectors, count)
    nearest = TopK(rows, distances if inner else -distances)
    return rescore_first(nearest, vectors, similarity, vectors.__getitem__)


def nearest_earlier(
    earlier: np.ndarray, new: np.ndarray, count: int, similarity: Similarity, block: int = 256
) -> TopK:
    """The nearest of the mentions that came before each new one, (m, count).

    The result for a mention depends on it and on the mentions before it alone, not on how many
    come at once.

    earlier: (n, width) float32, prepared.
    new: (m, width) float32, prepared, in the order in which they came.
    block: How many new mentions are compared at a time.
    RETURNS: Numbers of mentions; those of new ones are counted on from n.
    """
    n, numbers = len(earlier), np.arange(len(new))
    nearest = TopK.empty(len(new), count)
    for start in range(0, len(new), block):
        queries = new[start : start + block]
        recent = new[: start + len(queries)]
        scores = np.full((len(queries), n + len(recent)), -np.inf, dtype=np.float32)
        if n:
            scores[:, :n] = similarity.blocks(queries, earlier)
        scores[:, n:] = similarity.blocks(queries, recent)
        is_later = np.arange(len(recent)) >= numbers[start : start + len(queries), None]
        scores[:, n:][is_later] = -np.inf
        # More than ``count``: among nearly equal ones, the exact similarities decide.
        ids = _best_columns(scores, min(count + PAIRWISE_RESCORED, scores.shape[1]))
        ids = np.where(np.isfinite(np.take_along_axis(scores, ids, axis=1)), ids, -1)
        exact = similarity.paired(queries, _take_from_two(earlier, recent, np.maximum(ids, 0)))
        exact[ids < 0] = -np.inf
        order = np.lexsort((ids, -exact), axis=1)[:, :count]
        part, width = slice(start, start + block), order.shape[1]
        nearest.ids[part, :width] = np.take_along_axis(ids, order, axis=1)
        nearest.scores[part, :width] = np.take_along_axis(exact, order, axis=1)
    return nearest


def _best_columns(scores: np.ndarray, width: int) -> np.ndarray:
    """(b, width) columns with the largest scores, in any order; of equal ones the first."""
    columns = np.argpartition(-scores, width - 1, axis=1)[:, :width]
    least = np.take_along_axis(scores, columns, axis=1).min(axis=1)
    for row in np.flatnonzero((scores >= least[:, None]).sum(axis=1) > width).tolist():
        if np.isfinite(least[row]):
            columns[row] = np.argsort(-scores[row], kind="stable")[:width]
    return columns


def _take_from_two(first: np.ndarray, second: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Rows (m, k) of ``concatenate([first, second])``, without concatenating them."""
    taken = np.empty((*rows.shape, second.shape[1]), dtype=np.float32)
    in_first = rows < len(first)
    if in_first.any():
        taken[in_first] = first[rows[in_first]]
    taken[~in_first] = second[rows[~in_first] - len(first)]
    return taken
