"""The entities that mentions may be linked to in one call."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..base.arrays import take_or
from ..base.errors import Errors
from ..kb.knowledge_base import ArboKB
from ..ranking.ranking import Ranking


@dataclass(frozen=True)
class Only:
    """The entities of some ids or types.

    ids: Their ids; None for all.
    types: The types of which they must have one; None for all.
    """

    ids: frozenset[str] | None = None
    types: frozenset[str] | None = None

    @classmethod
    def of(
        cls,
        kb: ArboKB,
        ids: Iterable[str] | None,
        types: Iterable[str] | None,
    ) -> "Only":
        """Entities of a knowledge base. Raises ValueError for an id that it lacks.

        A string is one id, or one type.
        """
        only = cls(_values(ids), _values(types))
        for entity_id in sorted(only.ids or ()):
            if kb.entities.position(entity_id) < 0:
                raise Errors.E408(id=entity_id)
        return only

    def mask(self, kb: ArboKB) -> np.ndarray:
        """(positions,) bool, whether an entity may be linked to."""
        entities = kb.entities
        mask = np.ones(entities.positions, dtype=bool)
        if self.ids is not None:
            positions = entities.positions_of(sorted(self.ids))
            mask[:] = False
            # One may have been removed meanwhile.
            mask[positions[positions >= 0]] = True
        if self.types is not None:
            typed = np.zeros_like(mask)
            for name in self.types:
                typed[entities.of_types([name])] = True
            # An entity without a type is of any, but none of these.
            typed[entities.of_types([])] = False
            mask &= typed
        return mask

    def restrict(self, ranking: Ranking, kb: ArboKB) -> Ranking:
        """A ranking without other candidates."""
        return ranking.where(take_or(self.mask(kb), ranking.candidates.ids, False))


def _values(setting: Iterable[str] | None) -> frozenset[str] | None:
    """The values of a setting, of which a string is a single one; None for all."""
    if setting is None:
        return None
    return frozenset([setting] if isinstance(setting, str) else setting)
