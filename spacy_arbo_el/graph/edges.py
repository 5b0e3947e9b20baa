"""Edges from neighbours: what retrieval found, as the arrays of a graph."""

from typing import NamedTuple, Optional, Tuple

import numba
import numpy as np

from .checks import check_count, check_floats, check_integers, check_threshold

PADDING = -1


class Edges(NamedTuple):
    """A graph's edges: ``source`` and ``target`` (E,) int32 node ids, ``weight`` (E,) float32."""

    source: np.ndarray
    target: np.ndarray
    weight: np.ndarray


def build_edges(
    n_entities: int,
    n_mentions: int,
    *,
    entities: Optional[np.ndarray] = None,
    entity_similarity: Optional[np.ndarray] = None,
    mentions: Optional[np.ndarray] = None,
    mention_similarity: Optional[np.ndarray] = None,
    exemplars: Optional[np.ndarray] = None,
    exemplar_entities: Optional[np.ndarray] = None,
    threshold: float = np.inf,
) -> Edges:
    """Build the edges into each mention from its nearest entities and mentions (paper §A.2, Eq. 7).

    n_entities, n_mentions: How many there are; exemplars count as mentions.
    entities: (Q, ke) integers, Q <= n_mentions: the entities 0..n_entities-1 nearest to each of the
        first Q mentions; -1 is padding.
    entity_similarity: (Q, ke) floats, larger is closer; ignored where ``entities`` is padding.
    mentions: (Q, km) integers: the mentions 0..n_mentions-1 nearest to each of the first Q (mention
        numbers, not node ids); -1 is padding. A mention among its own neighbours is left out.
    mention_similarity: (Q, km) floats, as above.
    exemplars: (X,) integers: mentions whose entity is known.
    exemplar_entities: (X,) integers: that entity. An edge of weight -inf ties them.
    threshold: λ, the largest weight to keep; a weight is a similarity with its sign turned.

    Returns edges grouped by the mention they enter: first from entities, then -inf to its known
    entity, then from mentions, each in the order given. Where weights are equal the earlier edge
    wins (see ``arborescence``), so an entity wins over a mention. Two edges between the same nodes
    are merged, and the smaller weight stays.

    Raises ValueError where shapes do not fit together, a number is out of range or NaN.
    """
    n_entities = check_count("n_entities", n_entities)
    n_mentions = check_count("n_mentions", n_mentions)
    limit = check_threshold(threshold)
    entities, entity_similarity = _neighbours(
        "entities", entities, "entity_similarity", entity_similarity, n_entities, n_mentions
    )
    mentions, mention_similarity = _neighbours(
        "mentions", mentions, "mention_similarity", mention_similarity, n_mentions, n_mentions
    )
    exemplars, exemplar_entities = _exemplars(exemplars, exemplar_entities, n_entities, n_mentions)
    return Edges(
        *_build(
            n_entities,
            n_mentions,
            entities,
            entity_similarity,
            mentions,
            mention_similarity,
            exemplars,
            exemplar_entities,
            limit,
        )
    )


def _neighbours(name, neighbours, similarity_name, similarity, limit, n_mentions):
    """Check one pair of neighbour arrays; int64 and float32, empty where none are given."""
    if neighbours is None and similarity is None:
        return np.empty((0, 0), np.int64), np.empty((0, 0), np.float32)
    if neighbours is None or similarity is None:
        raise ValueError(f"{name} and {similarity_name} go together: give both or neither.")
    neighbours = check_integers(name, neighbours, ndim=2).astype(np.int64, copy=False)
    similarity = check_floats(similarity_name, similarity, ndim=2)
    if neighbours.shape != similarity.shape:
        raise ValueError(
            f"{name} and {similarity_name} must have the same shape, one similarity a neighbour, "
            f"but have {neighbours.shape} and {similarity.shape}."
        )
    if len(neighbours) > n_mentions:
        raise ValueError(
            f"{name} has {len(neighbours)} rows, but there are only {n_mentions} mentions."
        )
    wrong = (neighbours < PADDING) | (neighbours >= limit)
    if wrong.any():
        row, column = _first(wrong)
        raise ValueError(
            f"{name}[{row}, {column}] is {neighbours[row, column]}, but must be from 0 to "
            f"{limit - 1}, or -1 for padding."
        )
    wrong = np.isnan(similarity) & (neighbours != PADDING)
    if wrong.any():
        row, column = _first(wrong)
        raise ValueError(
            f"{similarity_name}[{row}, {column}] is NaN. Look for zero vectors that were "
            "normalised, or pad the neighbour with -1."
        )
    return neighbours, similarity


def _exemplars(exemplars, entities, n_entities, n_mentions):
    """Check the exemplars and sort them by mention; two (X,) int64 arrays."""
    if exemplars is None and entities is None:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    if exemplars is None or entities is None:
        raise ValueError("exemplars and exemplar_entities go together: give both or neither.")
    exemplars = check_integers("exemplars", exemplars).astype(np.int64, copy=False)
    entities = check_integers("exemplar_entities", entities).astype(np.int64, copy=False)
    if len(exemplars) != len(entities):
        raise ValueError(
            f"exemplars and exemplar_entities must be equally long, one entity an exemplar, but "
            f"have {len(exemplars)} and {len(entities)} entries."
        )
    for name, array, limit in (
        ("exemplars", exemplars, n_mentions),
        ("exemplar_entities", entities, n_entities),
    ):
        wrong = (array < 0) | (array >= limit)
        if wrong.any():
            at = int(np.argmax(wrong))
            raise ValueError(f"{name}[{at}] is {array[at]}, but must be from 0 to {limit - 1}.")
    order = np.argsort(exemplars, kind="stable")
    return exemplars[order], entities[order]


def _first(wrong: np.ndarray) -> Tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))


@numba.njit(cache=True, nogil=True)
def _build(
    n_entities,
    n_mentions,
    entities,
    entity_similarity,
    mentions,
    mention_similarity,
    exemplars,
    exemplar_entities,
    threshold,
):
    most = entities.size + mentions.size + len(exemplars)
    source = np.empty(most, np.int32)
    target = np.empty(most, np.int32)
    weight = np.empty(most, np.float32)
    # Where the last edge from a node was put: a duplicate if that is among this mention's own.
    last = np.full(n_entities + n_mentions, -1, np.int64)
    n_edges = 0
    n_tied = 0
    for mention in range(n_mentions):
        begin = n_edges
        node = n_entities + mention
        if mention < len(entities):
            for i in range(entities.shape[1]):
                w = -entity_similarity[mention, i]
                n_edges = _put(
                    source, weight, last, begin, n_edges, entities[mention, i], w, threshold
                )
        while n_tied < len(exemplars) and exemplars[n_tied] == mention:
            w = np.float32(-np.inf)
            n_edges = _put(
                source, weight, last, begin, n_edges, exemplar_entities[n_tied], w, threshold
            )
            n_tied += 1
        if mention < len(mentions):
            for i in range(mentions.shape[1]):
                other = mentions[mention, i]
                if other == mention or other == PADDING:  # noqa: SIM109 - Numba
                    continue
                w = -mention_similarity[mention, i]
                n_edges = _put(
                    source, weight, last, begin, n_edges, other + n_entities, w, threshold
                )
        target[begin:n_edges] = node
    return source[:n_edges].copy(), target[:n_edges].copy(), weight[:n_edges].copy()


@numba.njit(cache=True, nogil=True)
def _put(source, weight, last, begin, n_edges, node, w, threshold):
    """Write an edge from ``node`` unless it is no edge or a duplicate; how many there are now."""
    if node == PADDING or w > threshold or w == np.float32(np.inf):
        return n_edges
    at = last[node]
    if at >= begin:
        weight[at] = min(weight[at], w)
        return n_edges
    last[node] = n_edges
    source[n_edges] = node
    weight[n_edges] = w
    return n_edges + 1
