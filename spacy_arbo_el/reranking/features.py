"""The candidates of mentions, and their features. Similarities of vectors and of strings."""

from dataclasses import dataclass
from typing import Optional, Sequence, Tuple

import numpy as np

from ..arrays import TopK, first_of_each, take_or
from ..mentions.record import MentionRecord
from ..retrieval.entity_search import AllowedEntities
from ..retrieval.neighbours import Neighbours
from .entity_strings import EntityStrings

# How many candidates a mention has, at most, because its surface form is one of their strings.
MAX_SAME_STRING = 4

FEATURES = (
    "name",  # similarity of vectors to the entity's nearest text
    "exemplar",  # similarity of vectors to its nearest exemplar
    "nearest",  # the larger of the two
    "name_ngrams",  # similarity of n-grams to the most similar name
    "exemplar_ngrams",  # similarity of n-grams to the most similar surface form of an exemplar
    "ngrams",  # the larger of the two
    "name_words",  # share of words in common with a name
    "words",  # share of words in common with a name or surface form
    "name_numbers",  # 1 if a name has the same numbers
    "numbers",  # 1 if a name or surface form has the same numbers
    "has_exemplar",  # 1 if the entity has an exemplar
    "title",  # 1 if its title has the same n-grams
    "attested",  # share of the exemplars with the mention's surface form that are the entity's
)


@dataclass(frozen=True)
class CandidateFeatures:
    """The candidates of ``m`` mentions with their features.

    entities: (m, c) int64 positions in the KB, -1 for none.
    features: (m, c, len(FEATURES)) float32, 0 where there is no candidate.
    exemplars: (m, c) int64, the row of the entity's nearest exemplar; -1 where no exemplar of it is
        among the neighbours, or a text of the entity is as similar.
    """

    entities: np.ndarray
    features: np.ndarray
    exemplars: np.ndarray

    def __len__(self) -> int:
        return len(self.entities)

    @property
    def valid(self) -> np.ndarray:
        """(m, c) bool, where there is a candidate."""
        return self.entities >= 0

    @classmethod
    def concat(cls, parts: Sequence["CandidateFeatures"]) -> "CandidateFeatures":
        """Concatenate batches with equally many candidates."""
        return cls(
            np.concatenate([part.entities for part in parts]),
            np.concatenate([part.features for part in parts]),
            np.concatenate([part.exemplars for part in parts]),
        )

    def where(self, keep: np.ndarray) -> "CandidateFeatures":
        """The same with none in the place of the others. keep: (m, c) bool."""
        return CandidateFeatures(
            np.where(keep, self.entities, -1),
            np.where(keep[:, :, None], self.features, np.float32(0)),
            np.where(keep, self.exemplars, -1),
        )

    def take(self, mentions: np.ndarray) -> "CandidateFeatures":
        """The given mentions: numbers of them, or (m,) bool."""
        return CandidateFeatures(
            self.entities[mentions], self.features[mentions], self.exemplars[mentions]
        )


def gather_features(
    neighbours: Neighbours,
    records: Sequence[MentionRecord],
    entity_strings: EntityStrings,
    allowed: Optional[AllowedEntities],
    count: int,
    withheld: Optional[np.ndarray] = None,
) -> CandidateFeatures:
    """Choose the candidates of mentions, and compute their features.

    records: The m mentions.
    allowed: Which entities each mention may be linked to; None for all.
    count: How many candidates a mention has at most.
    withheld: (entities,) bool, the entities that count as without exemplars; none of theirs may be
        among the neighbours.
    """
    same = entity_strings.owners(records, MAX_SAME_STRING, withheld)
    entities = _choose_candidates(neighbours, same, allowed, count)
    texts = neighbours.entities
    exemplars = TopK(neighbours.exemplar_entities, neighbours.exemplars.scores)
    name, _ = _similarity_of(entities, texts)
    exemplar, column = _similarity_of(entities, exemplars)
    rows = np.full(entities.shape, -1, dtype=np.int64)
    if exemplars.width:
        rows = np.take_along_axis(neighbours.exemplars.ids, np.maximum(column, 0), axis=1)
        rows = np.where((column >= 0) & (exemplar > name), rows, -1)
    # An entity without a name has no text that could be similar.
    name = np.where(entity_strings.has_only_id(entities), np.maximum(name, exemplar), name)
    strings = [record.normalized for record in records]
    similarity = entity_strings.index.similarity(strings, entities)
    has_exemplar = entity_strings.has_exemplar[entities]
    if withheld is not None:
        hidden = take_or(withheld, entities, False)
        has_exemplar = has_exemplar & ~hidden
        for _, of_exemplars in similarity:
            of_exemplars[hidden] = 0
    features = [name, exemplar, np.maximum(name, exemplar)]
    features += [*similarity.ngrams, similarity.ngrams.max(axis=0)]
    for view in (similarity.words, similarity.numbers):
        features += [view[0], view.max(axis=0)]
    attested = entity_strings.attested(records, entities, withheld)
    features += [has_exemplar, similarity.first[0], attested]
    stacked = np.stack(features, axis=2).astype(np.float32)
    stacked[entities < 0] = 0
    return CandidateFeatures(entities, stacked, rows)


def _choose_candidates(
    neighbours: Neighbours, same: np.ndarray, allowed: Optional[AllowedEntities], count: int
) -> np.ndarray:
    """(m, count) int64 positions, -1 for none.

    same: (m, s) int64, entities with the string of the mention, -1 for none.
    """
    if allowed is not None:
        same = allowed.restrict(same)
    # Entities with the same string and those of exemplars first: they are few, and may be far
    # down the list of entities.
    nearest = neighbours.entities.first(count).ids
    entities = np.concatenate([same, neighbours.exemplar_entities, nearest], axis=1)
    valid = entities >= 0
    flat = entities[valid]
    places = first_of_each(np.nonzero(valid)[0], flat, len(entities), count)
    return take_or(flat, places, -1)


def _similarity_of(entities: np.ndarray, owners: TopK) -> Tuple[np.ndarray, np.ndarray]:
    """Similarity and column of each candidate among ``owners``. The first occurrence counts.

    A candidate that does not occur there gets the smallest similarity of the row: it can't be
    larger. Its column is -1.
    """
    columns = owners.columns_of(entities)
    return owners.scores_at(columns, owners.least), columns
