"""Entities: what mentions are linked to."""

from dataclasses import asdict, dataclass, field
from typing import Any, Dict, List, Mapping, Tuple

from ..display import html_table, shortened
from ..errors import Errors
from ..io import is_storable

NIL = "NIL"
# Larger frequencies don't fit into a float.
LARGEST = 1e300
# Aliases that people see at once.
SHOWN_ALIASES = 5


@dataclass(frozen=True, repr=False)
class Entity:
    """One entry of a knowledge base.

    id: Unique and stable; the value of ``span.kb_id_``. Never empty, never "NIL".
    title: The name that people read. The id where it is empty.
    description: Free text, may be empty.
    aliases: Other names, in order of preference, without the title.
    types: Semantic types or labels ("Disease", "Chemical"); empty means any.
    frequency: How often the entity is mentioned, as a count or a share. It orders entities that
        have the same name. 0.0 where it is unknown.
    meta: Anything else, JSON-serialisable, stored unchanged. With ``"unnamed": True``, the id as a
        title is no name.
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
        if not isinstance(self.frequency, (int, float)) or not 0.0 <= self.frequency < LARGEST:
            raise ValueError(Errors.E014.format(id=self.id, value=self.frequency))
        for name in ("aliases", "types"):
            texts = getattr(self, name)
            if isinstance(texts, str):
                raise ValueError(Errors.E038.format(id=self.id, name=name, value=texts))
            object.__setattr__(self, name, tuple(texts))
        self._check_texts()
        if not self.title:
            object.__setattr__(self, "title", self.id)

    def _check_texts(self) -> None:
        """ValueError where a text is no string, or has characters that can't be stored."""
        texts = (self.id, self.title, self.description, *self.aliases, *self.types)
        try:
            joined = "".join(texts)
            if "\0" not in joined and (joined.isascii() or joined.encode("utf8")):
                return
        except (TypeError, UnicodeEncodeError):
            pass
        wrong = next(text for text in texts if not is_storable(text))
        raise ValueError(Errors.E037.format(id=self.id, value=wrong))

    @property
    def is_unnamed(self) -> bool:
        """Whether the title is no name but the id, as ``meta["unnamed"]`` says."""
        return self.title == self.id and self.meta.get("unnamed") is True

    @property
    def names(self) -> List[str]:
        """The title and the aliases, each once, title first; no title where it is no name."""
        title = () if self.is_unnamed else (self.title,)
        return list(dict.fromkeys((*title, *self.aliases)))

    def __repr__(self) -> str:
        parts = [repr(self.id), repr(shortened(self.title))]
        if self.aliases:
            names = ", ".join(map(repr, self.aliases[:SHOWN_ALIASES]))
            parts.append(f"aliases=[{shortened(names + self._more_aliases)}]")
        if self.types:
            parts.append(f"types=[{shortened(', '.join(map(repr, self.types)))}]")
        if self.description:
            parts.append(f"description={shortened(self.description)!r}")
        return f"Entity({', '.join(parts)})"

    def _repr_html_(self) -> str:
        """For notebooks: the fields that are not empty."""
        names = ", ".join(self.aliases[:SHOWN_ALIASES]) + self._more_aliases
        fields = {
            "description": shortened(self.description, 400),
            "aliases": names,
            "types": ", ".join(self.types),
            "frequency": f"{self.frequency:g}" if self.frequency else "",
            **{str(key): value for key, value in self.meta.items()},
        }
        rows = [(name, value) for name, value in fields.items() if value]
        return html_table(f"{self.id} {self.title}", (), rows)

    @property
    def _more_aliases(self) -> str:
        """How many aliases are not shown."""
        rest = len(self.aliases) - SHOWN_ALIASES
        return f", … and {rest} more" if rest > 0 else ""

    def merged_with(self, other: "Entity") -> "Entity":
        """This entity with the names, types, frequency and ``meta`` of another one as well.

        Its own title, description and values of ``meta`` take precedence.
        """
        names = list(dict.fromkeys([*self.names, *other.names]))
        meta = {**other.meta, **self.meta}
        if names:
            meta.pop("unnamed", None)
        return Entity(
            self.id,
            names[0] if names else self.title,
            self.description or other.description,
            tuple(names[1:]),
            tuple(dict.fromkeys([*self.types, *other.types])),
            other.frequency + self.frequency,
            meta,
        )

    def to_dict(self) -> Dict[str, Any]:
        """A JSON-serialisable dict; empty fields are left out."""
        data = asdict(self)
        return {key: value for key, value in data.items() if value or key == "id"}
