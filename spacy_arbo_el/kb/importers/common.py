"""Shared parts of entity readers. Records with usual keys, ids that occur once, a report."""

import warnings
from collections import Counter
from contextlib import contextmanager
from numbers import Integral
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union
from typing import Counter as CounterType

from ...errors import ArboError, Errors, Warnings
from ...storage.lines import PathLike, is_storable, line_error
from ..entity import OPTIONAL, Entity, is_missing

Records = Union[Entity, Mapping[str, Any], Iterable[Union[Entity, Mapping[str, Any]]]]
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
    """Fields of entities by key. Keys that belong to no field are left out."""
    keys = list(keys)
    found = {key: key for key in keys if key in FIELDS}
    by_name = {key.lower(): key for key in reversed(keys)}
    for field, names in OTHER_NAMES.items():
        others = [by_name[name] for name in names if name in by_name]
        if field not in found and others and others[0] not in found:
            found[others[0]] = field
    return found


class RecordReader:
    """Converts records to entity fields, counting those without names.

    total: The number of records.
    unnamed: The number of those without title and aliases that have other keys.
    others: How often such records have each other key.
    """

    def __init__(self) -> None:
        self.total = self.unnamed = 0
        self.others: CounterType[str] = Counter()
        self._fields: Dict[Tuple[str, ...], Dict[str, str]] = {}

    def read(self, record: Mapping[Any, Any]) -> Dict[str, Any]:
        """Convert a record to entity fields as keys. Beside others.

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


# So many errors of invalid lines are kept.
MOST_PLACES = 5


class ImportReport:
    """Report of an import. A reader fills it while it yields entities.

    count: The number of entities imported.
    skipped: The number of entries left out, by reason.
    redirects: From an entity's other ids to its id.
    places: The first errors of lines that are left out.
    """

    def __init__(self) -> None:
        self.count = 0
        self.skipped: CounterType[str] = Counter()
        self.redirects: Dict[str, str] = {}
        self.places: List[str] = []

    def skip(self, reason: str) -> None:
        """Count an entry that is left out."""
        self.skipped[reason] += 1

    def skip_bad(self, error: ValueError) -> None:
        """Count an invalid line, keeping the first errors."""
        self.skip("invalid")
        if len(self.places) < MOST_PLACES:
            self.places.append(str(error))

    def redirect(self, ids: Iterable[str], entity_id: str) -> None:
        """Let other ids lead to an entity. The first entity of an id counts.

        ValueError where an id has characters that can't be stored.
        """
        for other in ids:
            if other and other != entity_id:
                if not is_storable(other):
                    raise ArboError(Errors.E037.format(id=entity_id, value=other))
                self.redirects.setdefault(other, entity_id)


@contextmanager
def at_line(path: PathLike, number: int) -> Iterator[None]:
    """Add file and line to entities' errors in the block."""
    try:
        yield
    except ValueError as error:
        raise line_error(path, number, problem_in(error)) from None


def problem_in(error: ValueError) -> str:
    """The message of an error, without its code."""
    _, _, problem = str(error).rpartition("[arbo-")
    return problem.partition("] ")[2] or str(error)


class Entries:
    """Reads entities from entries of several lines each.

    path: The file.
    report: Gets the other ids of entities.
    """

    def __init__(self, path: PathLike, report: Optional[ImportReport]):
        self.path, self.report = path, report or ImportReport()
        self._lines: Dict[str, int] = {}

    def check_new(self, entity_id: str, number: int) -> None:
        """Write down the line of an id. ValueError where it occurred before."""
        if entity_id in self._lines:
            raise line_error(
                self.path,
                number,
                f"the entity id {entity_id!r} was used before, in line {self._lines[entity_id]}. "
                "Merge the two entries, or give one of them another id.",
            )
        self._lines[entity_id] = number

    def entity(
        self,
        number: int,
        ids: Sequence[str],
        names: Iterable[str],
        description: str = "",
        types: Iterable[str] = (),
        **others: Any,
    ) -> Entity:
        """Make an entity; raise ValueError with the line.

        number: The line.
        ids: Its id, and others that lead to it.
        names: Its title and its aliases; each counts once.
        """
        title, *aliases = dict.fromkeys(names)
        with at_line(self.path, number):
            self.report.redirect(ids[1:], ids[0])
            kinds = tuple(dict.fromkeys(types))
            return Entity(ids[0], title, description, tuple(aliases), kinds, **others)


def entity_of(record: Mapping[str, Any]) -> Entity:
    """The entity of a record. Keys that are no fields go to ``meta``.

    ValueError where a value is not that of the field, or ``meta`` can't be written as JSON.
    """
    values = {key: record[key] for key in FIELDS if key in record}
    others = {key: value for key, value in record.items() if key not in FIELDS}
    meta = values.get("meta", {})
    if isinstance(meta, Mapping):
        values["meta"] = {**meta, **others}
    entity = Entity(**{"id": None, **values})
    if entity.meta:
        entity.meta_json()
    return entity


def entities_from(source: Any) -> Iterator[Entity]:
    """The entities of one record or many.

    source: An ``Entity``, a dict with the fields of one, a data frame with a row for each, or an
        iterable of entities and dicts. Values of dicts may be None or NaN, which count as left out;
        a single string counts as a list of one; a number as an id becomes a string. Usual other
        names of fields, such as "name" and "synonyms", are read too. Other keys go to ``meta``; a
        warning says where names are missing.

    ValueError where a record is no entity, with its number from 1.
    """
    if isinstance(source, (Entity, Mapping)):
        source = [source]
    elif hasattr(source, "to_dict") and hasattr(source, "columns"):
        source = source.to_dict("records")
    reader = RecordReader()
    for number, record in enumerate(source, 1):
        if isinstance(record, Entity):
            yield record
            continue
        try:
            if not isinstance(record, Mapping):
                raise ValueError(f"it is a {type(record).__name__}, not an Entity or a dict")
            entity = entity_of(reader.read(record))
        except ValueError as error:
            problem = problem_in(error).rstrip(".")
            raise ArboError(Errors.E041.format(number=number, problem=problem)) from None
        yield entity
    reader.warn()
