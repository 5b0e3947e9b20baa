"""Maps of new entities: mentions by distance, and their edges."""

from dataclasses import dataclass

import numpy as np

from ...mentions.record import MentionRecord
from .review import Review

# Mentions that are drawn, the most central ones, and edges from each to its nearest.
DRAWN = 80
EDGES = 3
# The distance of the farthest mention from the middle of the map, which is 200 wide.
FAR = 88.0


@dataclass(frozen=True)
class Point:
    """A mention. x, y: Its place; its distance from the middle is that to the central mention."""

    record: MentionRecord
    similarity: float
    x: float
    y: float


@dataclass(frozen=True)
class ClusterMap:
    """The mentions, and edges between their numbers with their cosines."""

    points: list[Point]
    edges: list[tuple[int, int, float]]


def cluster_map(review: Review, name: str) -> ClusterMap:
    """Draw the map of a new entity.

    The distance from the middle is one minus the cosine with the central mention; directions are
    the two that tell the mentions apart most.
    """
    entity = review.new[name]
    vectors = review.near.vectors(entity)
    cosines = vectors @ vectors[entity.medoid]
    cosines[entity.medoid] = 2.0
    order = np.argsort(-cosines, kind="stable")[:DRAWN]
    kept = vectors[order]
    cosines = np.minimum(cosines[order], 1.0)
    around = kept - kept[0]
    axes = np.linalg.svd(around, full_matrices=False)[2][:2]
    plane = np.zeros((len(order), 2))
    plane[:, : len(axes)] = around @ axes.T
    lengths = np.linalg.norm(plane, axis=1)
    # Mentions of equal vectors lie round the middle, one beside the other.
    turns = 2.4 * np.arange(len(order))
    plane[lengths < 1e-6] = np.stack([np.cos(turns), np.sin(turns)], axis=1)[lengths < 1e-6]
    distances = 1 - cosines
    radius = 6.0 + (FAR - 6.0) * distances / max(float(distances.max()), 0.2)
    radius[0] = 0.0
    places = plane / np.linalg.norm(plane, axis=1, keepdims=True) * radius[:, None]
    points = [
        Point(entity.members[i], round(float(c), 3), round(float(x), 1), round(float(y), 1))
        for i, c, (x, y) in zip(order.tolist(), cosines.tolist(), places.tolist())
    ]
    return ClusterMap(points, _edges(kept))


def _edges(vectors: np.ndarray) -> list[tuple[int, int, float]]:
    """The edges from mentions to their nearest, each once."""
    similar = vectors @ vectors.T
    np.fill_diagonal(similar, -np.inf)
    nearest = np.argsort(-similar, axis=1, kind="stable")[:, : min(EDGES, len(vectors) - 1)]
    pairs = {(min(a, b), max(a, b)) for a, row in enumerate(nearest.tolist()) for b in row}
    return [(a, b, round(float(similar[a, b]), 3)) for a, b in sorted(pairs)]
