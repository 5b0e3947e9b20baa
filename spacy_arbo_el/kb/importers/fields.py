"""Records of entities with the keys and values that people have."""

import warnings
from collections import Counter
from numbers import Integral
from typing import Any, Dict, Iterable, Mapping, Tuple
from typing import Counter as CounterType

from ...errors import Warnings
from ..entity import OPTIONAL, is_missing

FIELDS = ("id", *OPTIONAL)
LISTS = ("aliases", "types")
# Other names of fields, without regard to case. The first one that a record has is the field.
OTHER_NAMES = {
    "id": ("id", "cui", "concept_id", "entity_id", "kb_id", "identifier"),
    "title": ("title", "name", "label", "canonical_name", "preferred_name", "preflabel"),
    "description": ("description", "definition", "desc"),
    "aliases": ("aliases", "synonyms", "alias", "synonym", "names", "altlabel", "altlabels"),
    "types": ("types", "type", "semantic_types"),
    "frequency": ("frequency", "freq"),
    "meta": ("meta",),
}
# So many keys are named in a warning.
SHOWN_KEYS = 8


def fields_of(keys: Iterable[str]) -> Dict[str, str]:
    """From key to field. Keys that belong to no field are left out."""
    keys = list(keys)
    found = {key: key for key in keys if key in FIELDS}
    by_name = {key.lower(): key for key in reversed(keys)}
    for field, names in OTHER_NAMES.items():
        others = [by_name[name] for name in names if name in by_name]
        if field not in found and others and others[0] not in found:
            found[others[0]] = field
    return found


class RecordReader:
    """Brings records to the fields of entities, and counts those without a name.

    total: The number of records.
    unnamed: The number of those without title and aliases that have other keys.
    others: How often such records have each other key.
    """

    def __init__(self) -> None:
        self.total = self.unnamed = 0
        self.others: CounterType[str] = Counter()
        self._fields: Dict[Tuple[str, ...], Dict[str, str]] = {}

    def read(self, record: Mapping[Any, Any]) -> Dict[str, Any]:
        """A record with the fields of an entity as keys, beside others.

        Values that are missing are left out, a whole number as an id becomes a string, and a single
        string counts as a list of one.
        """
        values = {str(key): value for key, value in record.items() if not is_missing(value)}
        keys = tuple(values)
        if keys not in self._fields:
            self._fields[keys] = fields_of(keys)
        fields = self._fields[keys]
        values = {fields.get(key, key): value for key, value in values.items()}
        if isinstance(values.get("id"), Integral) and not isinstance(values["id"], bool):
            values["id"] = str(values["id"])
        for key in LISTS:
            value = values.get(key, [])
            if isinstance(value, str):
                values[key] = [value]
            elif not isinstance(value, (list, dict)) and hasattr(value, "__iter__"):
                values[key] = list(value)
        self.note(values, [key for key in values if key not in FIELDS])
        return values

    def note(self, values: Mapping[str, Any], others: Iterable[str]) -> None:
        """Count a record.

        values: Its fields.
        others: Its other keys.
        """
        self.total += 1
        others = list(others)
        has_name = values.get("title") or values.get("aliases") or "unnamed" in others
        if others and not has_name:
            self.unnamed += 1
            self.others.update(others)

    def warn(self) -> None:
        """Warn once of all records without a name."""
        if self.unnamed:
            keys = [repr(key) for key, _ in self.others.most_common(SHOWN_KEYS)]
            more = ", …" if len(self.others) > SHOWN_KEYS else ""
            listed = ", ".join(keys) + more
            warnings.warn(
                Warnings.W102.format(count=self.unnamed, total=self.total, keys=listed),
                stacklevel=2,
            )
