"""Entities: what mentions are linked to."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from numbers import Real
from typing import Any

from ..base.display import shortened
from ..base.errors import Errors
from ..names.firms import firm_forms
from ..records.fields import is_missing
from ..records.lines import is_storable

NIL = "NIL"
# Larger frequencies don't fit into a float.
LARGEST = 1e300
# Aliases that people see at once.
SHOWN_ALIASES = 5
# The fields that may be missing, and their kinds.
OPTIONAL = {
    "title": str,
    "description": str,
    "aliases": tuple,
    "types": tuple,
    "frequency": float,
    "meta": dict,
}
# How deeply ``meta`` may be nested: JSON can be read to a depth that varies with the caller's.
DEEPEST = 100


@dataclass(frozen=True, repr=False)
class Entity:
    """One entry of a knowledge base.

    Fields that are None or NaN count as left out, and so do empty aliases and types.

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
    aliases: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    frequency: float = 0.0
    meta: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not self.id.strip() or self.id == NIL:
            raise Errors.E001(where=repr(self.title), value=self.id)
        if "|" in self.id:
            raise Errors.E012(id=self.id)
        for name, kind in OPTIONAL.items():
            value = getattr(self, name)
            if (type(value) is not kind or value != value) and is_missing(value):
                object.__setattr__(self, name, kind())
        if not is_frequency(self.frequency):
            raise Errors.E014(id=self.id, value=self.frequency)
        # SQLite stores -0.0 as 0.0.
        object.__setattr__(self, "frequency", float(self.frequency) + 0.0)
        for name in ("aliases", "types"):
            texts = getattr(self, name)
            if isinstance(texts, (str, Mapping)) or not hasattr(texts, "__iter__"):
                raise Errors.E038(id=self.id, name=name, value=texts)
            object.__setattr__(self, name, tuple(t for t in texts if str(t).strip()))
        self._check_texts()
        if not isinstance(self.meta, Mapping):
            raise Errors.E039(id=self.id, problem="it is no dict")
        if not self.title.strip():
            object.__setattr__(self, "title", self.id)

    def _check_texts(self) -> None:
        """Raise ValueError for a text that is no string, or has characters that can't be stored."""
        texts = (self.id, self.title, self.description, *self.aliases, *self.types)
        try:
            joined = "".join(texts)
            if "\0" not in joined and (joined.isascii() or joined.encode("utf8")):
                return
        except (TypeError, UnicodeEncodeError):
            pass
        wrong = next(text for text in texts if not is_storable(text))
        raise Errors.E037(id=self.id, value=wrong)

    @property
    def is_unnamed(self) -> bool:
        """Return whether the title is only the id. ``meta["unnamed"]`` says so."""
        return self.title == self.id and self.meta.get("unnamed") is True

    @property
    def names(self) -> list[str]:
        """The title and the aliases, each once, title first. No title where it is no name."""
        title = () if self.is_unnamed else (self.title,)
        return list(dict.fromkeys((*title, *self.aliases)))

    @property
    def names_in_text(self) -> list[str]:
        """The names, then those that texts write of firms; see ``FirmForms``."""
        names = self.names
        short = (form for name in names for form in firm_forms(name).short)
        return list(dict.fromkeys((*names, *short)))

    def __repr__(self) -> str:
        fields = [repr(self.id), repr(shortened(self.title))]
        if self.aliases:
            names = ", ".join(map(repr, self.aliases[:SHOWN_ALIASES]))
            hidden = len(self.aliases) - SHOWN_ALIASES
            more = f", … and {hidden} more" if hidden > 0 else ""
            fields.append(f"aliases=[{shortened(names + more)}]")
        if self.types:
            fields.append(f"types=[{shortened(', '.join(map(repr, self.types)))}]")
        if self.description:
            fields.append(f"description={shortened(self.description)!r}")
        return f"Entity({', '.join(fields)})"

    def merged_with(self, other: "Entity") -> "Entity":
        """Merge another entity into this, whose own title, description and ``meta`` count first."""
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

    def to_dict(self) -> dict[str, Any]:
        """A JSON-serialisable dict; empty fields are left out."""
        data = asdict(self)
        return {key: value for key, value in data.items() if value or key == "id"}

    def meta_json(self) -> str:
        """``meta`` as JSON. ValueError where it can't be written so that it can be read."""
        meta = dict(self.meta)
        try:
            text = json.dumps(meta, ensure_ascii=False, allow_nan=False)
            text.encode("utf8")
            if _is_deeper(meta, DEEPEST):
                raise ValueError(f"it is nested more than {DEEPEST} levels deep")
            return text
        except (ValueError, TypeError, RecursionError) as error:
            raise Errors.E039(id=self.id, problem=error) from None


def is_frequency(value: Any) -> bool:
    """Return whether ``value``, NumPy's too, is a number from 0 that fits into a float."""
    try:
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        return is_number and 0.0 <= float(value) < LARGEST
    except OverflowError:
        return False


def _is_deeper(value: Any, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value
    if not isinstance(value, (dict, list, tuple)):
        return False
    return not levels or any(_is_deeper(item, levels - 1) for item in inner)
