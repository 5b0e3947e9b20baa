"""What ties a mention to entities: one view for all inference procedures."""

from typing import NamedTuple, Optional

import numpy as np

from ..retrieval.neighbours import Neighbours
from .calibration import Calibration

# Log-odds of what a person has said; probability 0.99999.
CERTAIN = 12.0


class EntityEdges(NamedTuple):
    """Edges into m mentions from entities and from exemplars, likeliest first.

    entity, entity_logit: (m, 1) int64 position in the KB, -1 for none, and float32 log-odds.
    exemplar, exemplar_entity, exemplar_logit: (m, k) int64 row in the store and position of the
        entity that it is labelled with, -1 for none, and float32 log-odds.
    """

    entity: np.ndarray
    entity_logit: np.ndarray
    exemplar: np.ndarray
    exemplar_entity: np.ndarray
    exemplar_logit: np.ndarray


def entity_edges(neighbours: Neighbours, calibration: Calibration) -> EntityEdges:
    """The edges into mentions from their nearest entity and exemplars.

    Where candidates were weighed up and a ranker is fitted, a mention has one edge: from the
    likeliest entity or, if that is what ties it to the entity, from an exemplar of it.
    """
    plain = EntityEdges(
        neighbours.entities[:, :1],
        calibration.logits("entity", neighbours.entity_similarity[:, :1]),
        neighbours.exemplars,
        neighbours.exemplar_entity,
        calibration.logits("exemplar", neighbours.exemplar_similarity),
    )
    ranked = _ranked_edges(neighbours, calibration)
    return _with_decided(plain if ranked is None else ranked, plain, neighbours.decided)


def _with_decided(
    edges: EntityEdges, plain: EntityEdges, decided: Optional[np.ndarray]
) -> EntityEdges:
    """Mentions that a correction has decided hang under their first exemplar for certain."""
    if decided is None or not decided.any():
        return edges
    width = edges.exemplar.shape[1]
    row = decided[:, None]
    first = row & (np.arange(width) == 0)
    return EntityEdges(
        np.where(row, -1, edges.entity),
        edges.entity_logit,
        np.where(row, plain.exemplar[:, :width], edges.exemplar),
        np.where(row, plain.exemplar_entity[:, :width], edges.exemplar_entity),
        np.where(first, np.float32(CERTAIN), edges.exemplar_logit),
    )


def _ranked_edges(neighbours: Neighbours, calibration: Calibration) -> Optional[EntityEdges]:
    candidates = neighbours.candidates
    if candidates is None or calibration.ranker is None:
        return None
    logits = calibration.weigh_up(candidates)
    # Of equal ones the first in the KB's order.
    best = np.lexsort((candidates.entities, -logits), axis=1)[:, :1]
    entity = np.take_along_axis(candidates.entities, best, axis=1)
    exemplar = np.take_along_axis(candidates.exemplar, best, axis=1)
    logit = np.take_along_axis(logits, best, axis=1)
    by_exemplar = exemplar >= 0
    return EntityEdges(
        np.where(by_exemplar, -1, entity),
        logit,
        exemplar,
        np.where(by_exemplar, entity, -1),
        logit,
    )
