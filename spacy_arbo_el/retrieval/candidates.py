"""All that speaks for an entity: its names, its exemplars, their letters, that it was seen."""

from typing import NamedTuple, Optional, Sequence

import numpy as np

from .entities import Types, fill, first_of_each
from .lexical import Lexicon
from .neighbours import Neighbours

# How many entities of each mention are weighed up.
COUNT = 24
# How many of them at most because they go by just the mention's string.
SAME_STRING = 4

FEATURES = (
    "name",  # similarity to the entity's nearest text
    "exemplar",  # similarity to its nearest exemplar
    "nearest",  # the larger of the two
    "name_letters",  # likeness to the most alike name
    "form_letters",  # likeness to the most alike surface form of an exemplar
    "letters",  # the larger of the two
    "name_words",  # words shared with a name
    "words",  # words shared with a name or form
    "name_numbers",  # 1 if a name has the same numbers
    "numbers",  # 1 if a name or form has
    "seen",  # 1 if the entity has an exemplar
)


class Candidates(NamedTuple):
    """Entities that could be meant by each of m mentions, and what speaks for them.

    entities: (m, c) int64 positions in the KB, -1 for none.
    features: (m, c, len(FEATURES)) float32.
    exemplar: (m, c) int64, the row of the entity's nearest exemplar, -1 where none was found or
        a text of the entity is nearer.
    logits: (m, c) float32, what a ranker made of all of a mention's candidates, where they are
        weighed up already and only the likeliest are kept.
    """

    entities: np.ndarray
    features: np.ndarray
    exemplar: np.ndarray
    logits: Optional[np.ndarray] = None


class Strings(NamedTuple):
    """What entities go by.

    lexicon: Their names, and the surface forms of their exemplars.
    seen: (entities,) bool, which have an exemplar.
    nameless: (entities,) bool, which have exemplars, and no name but their id: surface forms are
        their names.
    """

    lexicon: Lexicon
    seen: np.ndarray
    nameless: np.ndarray


def gather_candidates(
    neighbours: Neighbours,
    strings: Sequence[str],
    strings_of: Strings,
    types: Optional[Types] = None,
) -> Candidates:
    """Candidates: the nearest entities, those of the nearest exemplars, those of the same string.

    strings: The m mentions. strings_of: Those of the entities.
    types: Which entities each mention may be linked to.
    """
    count, kept = len(neighbours), min(COUNT, neighbours.entities.shape[1])
    # Those of the very string and those of exemplars first: they are few, and may be far down the
    # list of entities.
    same = strings_of.lexicon.owners(strings, SAME_STRING)
    if types is not None:
        same = np.where(types.allowed[types.label[:, None], same], same, -1)
    both = np.concatenate([same, neighbours.exemplar_entity, neighbours.entities[:, :kept]], axis=1)
    mention = np.nonzero(both >= 0)[0]
    flat = both[both >= 0]
    entities = fill(flat, first_of_each(mention, flat, count, COUNT), -1)
    name, _ = _similarity_of(entities, neighbours.entities, neighbours.entity_similarity)
    near, column = _similarity_of(
        entities, neighbours.exemplar_entity, neighbours.exemplar_similarity
    )
    exemplar = np.full(entities.shape, -1, dtype=np.int64)
    if neighbours.exemplars.shape[1]:
        rows = np.take_along_axis(neighbours.exemplars, np.maximum(column, 0), axis=1)
        exemplar = np.where((column >= 0) & (near > name), rows, -1)
    # What is known by exemplars alone has no name that could be near.
    name = np.where(strings_of.nameless[entities], np.maximum(name, near), name)
    alike = strings_of.lexicon.likeness(strings, entities)
    features = [name, near, np.maximum(name, near)]
    features += [*alike.letters, alike.letters.max(axis=0)]
    for likeness in (alike.words, alike.numbers):
        features += [likeness[0], likeness.max(axis=0)]
    features.append(strings_of.seen[entities])
    stacked = np.stack(features, axis=2).astype(np.float32)
    stacked[entities < 0] = 0
    return Candidates(entities, stacked, exemplar)


def leading(candidates: Candidates, logits: np.ndarray, count: int) -> Candidates:
    """The ``count`` likeliest of each mention, weighed up; of equal ones the first in the KB's
    order. logits: (m, c) float32."""
    order = np.lexsort((candidates.entities, -logits), axis=1)[:, :count]
    entities, exemplar, kept = (
        np.take_along_axis(array, order, axis=1)
        for array in (candidates.entities, candidates.exemplar, logits)
    )
    features = np.zeros((*entities.shape, 0), dtype=np.float32)
    return Candidates(entities, features, exemplar, kept)


def _similarity_of(entities: np.ndarray, owners: np.ndarray, similarity: np.ndarray):
    """The similarity of the first of ``owners`` (nearest first) that is the entity, and where.

    For an entity that is not among them, the smallest similarity there is: it is no nearer.
    """
    if not owners.shape[1]:
        return np.zeros(entities.shape, dtype=np.float32), np.full(entities.shape, -1)
    same = (entities[:, :, None] == owners[:, None, :]) & (owners[:, None, :] >= 0)
    column = np.where(same.any(axis=2), same.argmax(axis=2), -1)
    least = np.where(owners >= 0, similarity, np.inf).min(axis=1, initial=np.inf, keepdims=True)
    found = np.take_along_axis(similarity, np.maximum(column, 0), axis=1)
    return np.where(column >= 0, found, np.where(np.isfinite(least), least, 0.0)), column
