"""The top terms of a list: what nearly all of its entities are, so that naming it says nothing."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..kb.entity import Entity
from ..names.spellings import folded
from ..names.words import plural

# What such a share of the entities stand below, or have as their type, is a top term.
SHARE = 0.5
# Fewer entities have none.
MIN_ENTITIES = 4
# Entities whose place in the hierarchy is looked up.
MOST_LOOKED_UP = 2000


@dataclass
class TopTerms:
    """Gathers the hierarchy of a list, ``meta["parents"]`` of its entities, and its types."""

    _parents: dict[str, Sequence[str]] = field(default_factory=dict)
    _types: Counter[str] = field(default_factory=Counter)
    _total: int = 0

    def add(self, entity: Entity) -> None:
        self._total += 1
        self._types.update(map(folded, entity.types))
        parents = entity.meta.get("parents")
        if isinstance(parents, Sequence) and not isinstance(parents, str):
            self._parents[entity.id] = parents

    def ids(self) -> frozenset[str]:
        """The ids of the entities that half of the others stand below: "disease"."""
        step = len(self._parents) // MOST_LOOKED_UP + 1
        looked_up = list(self._parents)[::step]
        below = Counter(
            top for entity_id in looked_up for top in self._above(entity_id)
        )
        least = SHARE * max(self._total - 1, MIN_ENTITIES) / step
        return frozenset(
            entity_id for entity_id, count in below.items() if count >= least
        )

    def words(self) -> frozenset[str]:
        """The names, folded, that are the type of half of the entities, and their plurals."""
        least = SHARE * max(self._total, MIN_ENTITIES)
        types = [name for name, count in self._types.items() if count >= least]
        return frozenset([*types, *map(plural, types)])

    def _above(self, entity_id: str) -> set[str]:
        above: set[str] = set()
        todo = [entity_id]
        while todo:
            for parent in self._parents.get(todo.pop(), ()):
                if isinstance(parent, str) and parent not in above:
                    above.add(parent)
                    todo.append(parent)
        return above - {entity_id}
