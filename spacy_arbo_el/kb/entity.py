"""Entities: what mentions are linked to."""

import math
from dataclasses import asdict, dataclass, field
from typing import Any, Dict, List, Mapping, Tuple

from ..errors import Errors

NIL = "NIL"


@dataclass(frozen=True)
class Entity:
    """One entry of a knowledge base.

    id: Unique and stable; the value of ``span.kb_id_``. Never empty, never "NIL".
    title: The name that people read. The id where it is empty.
    description: Free text, may be empty.
    aliases: Other names, in order of preference, without the title.
    types: Semantic types or labels ("Disease", "Chemical"); empty means any.
    frequency: How often the entity is mentioned, as a count or a share. It orders entities that
        have the same name. 0.0 where it is unknown.
    meta: Anything else, JSON-serialisable, stored unchanged.
    """

    id: str
    title: str = ""
    description: str = ""
    aliases: Tuple[str, ...] = ()
    types: Tuple[str, ...] = ()
    frequency: float = 0.0
    meta: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not self.id.strip() or self.id == NIL:
            raise ValueError(Errors.E001.format(where=repr(self.title), value=self.id))
        if "|" in self.id:
            raise ValueError(Errors.E012.format(id=self.id))
        if not 0.0 <= self.frequency < math.inf:
            raise ValueError(Errors.E014.format(id=self.id, value=self.frequency))
        object.__setattr__(self, "aliases", tuple(self.aliases))
        object.__setattr__(self, "types", tuple(self.types))
        if not self.title:
            object.__setattr__(self, "title", self.id)

    @property
    def names(self) -> List[str]:
        """The title and the aliases, each once, title first."""
        return list(dict.fromkeys((self.title, *self.aliases)))

    def merged_with(self, other: "Entity") -> "Entity":
        """This entity with the names, types, frequency and ``meta`` of another one as well.

        Its own title, description and values of ``meta`` take precedence.
        """
        names = list(dict.fromkeys([*self.names, *other.names]))
        return Entity(
            self.id,
            self.title,
            self.description or other.description,
            tuple(names[1:]),
            tuple(dict.fromkeys([*self.types, *other.types])),
            other.frequency + self.frequency,
            {**other.meta, **self.meta},
        )

    def to_dict(self) -> Dict[str, Any]:
        """A JSON-serialisable dict; empty fields are left out."""
        data = asdict(self)
        return {key: value for key, value in data.items() if value or key == "id"}
