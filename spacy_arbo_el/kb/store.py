"""Where entities are kept. This one keeps them in memory; others can take its place."""

from typing import Dict, Iterable, Iterator, List

from ..errors import Errors
from .entity import Entity


class MemoryStore:
    """Entities in order of arrival, found by id or by position.

    A position is stable until an entity is removed.
    """

    def __init__(self, entities: Iterable[Entity] = ()):
        self._entities: List[Entity] = []
        self._position: Dict[str, int] = {}
        for entity in entities:
            self.add(entity)

    def __len__(self) -> int:
        return len(self._entities)

    def __iter__(self) -> Iterator[Entity]:
        return iter(self._entities)

    def __contains__(self, entity_id: str) -> bool:
        return entity_id in self._position

    def at(self, position: int) -> Entity:
        return self._entities[position]

    def position(self, entity_id: str) -> int:
        """Where the entity stands, -1 where there is none of that id."""
        return self._position.get(entity_id, -1)

    def get(self, entity_id: str) -> Entity:
        position = self.position(entity_id)
        if position < 0:
            raise KeyError(Errors.E003.format(id=entity_id))
        return self._entities[position]

    def add(self, entity: Entity) -> None:
        if entity.id in self._position:
            raise ValueError(Errors.E002.format(id=entity.id, where=""))
        self._position[entity.id] = len(self._entities)
        self._entities.append(entity)

    def update(self, entity: Entity) -> None:
        self.get(entity.id)
        self._entities[self._position[entity.id]] = entity

    def remove(self, entity_id: str) -> None:
        self.get(entity_id)
        del self._entities[self._position[entity_id]]
        self._position = {entity.id: i for i, entity in enumerate(self._entities)}
