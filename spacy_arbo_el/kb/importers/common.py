"""Shared parts of entity readers. Records with usual keys, ids that occur once, a report."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, Protocol, TypeVar

from ...base.errors import Errors, Warnings
from ...records.fields import ALT_IDS, fields_of, further_ids, is_missing, values_of
from ...records.formats import Sniffing
from ...records.lines import OnBad, PathLike, is_storable, throw
from ...records.source import problem_in
from ..entity import OPTIONAL, Entity
from ..layout import Layout

T = TypeVar("T")
# The fields of an entity, and other keys.
Record = tuple[dict[str, Any], dict[str, Any]]
Records = Entity | Mapping[str, Any] | Iterable[Entity | Mapping[str, Any]]
# So many keys are named in a warning.
SHOWN_KEYS = 8


def records_by_id(values: Any) -> list[dict[str, Any]] | None:
    """The records of a dict with one for each id, such as ``{"D1": {"title": "blue fever"}}``.

    A name or a list of names may stand for a record, unless its key is that of a field. None for
    anything else.
    """
    if not isinstance(values, Mapping):
        return None
    records = []
    for key, value in values.items():
        names = [value] if isinstance(value, str) else value
        is_names = isinstance(names, list) and names and isinstance(names[0], str)
        if is_names and key != "text" and not fields_of([str(key)]):
            value = {"title": names[0], "aliases": names[1:]}
        if not isinstance(value, Mapping) or not fields_of(tuple(value)):
            return None
        records.append({"id": str(key), **value})
    return records


class RecordReader:
    """Reads the entities of records, and counts those without names.

    separator: Separates aliases and types in a string.
    fields: The places of all records' fields; None for those that their keys say.
    report: Gets the further ids of entities.
    """

    def __init__(
        self,
        separator: str = "|",
        fields: Mapping[str, Sequence[int]] | None = None,
        report: "ImportReport | None" = None,
    ) -> None:
        self.report = ImportReport() if report is None else report
        self.separator = separator
        self._fixed = fields
        self._fields: dict[tuple[str, ...], dict[str, list[int]]] = {}
        # Of all records, and of those that have other keys but no name; and these keys.
        self._total = self._unnamed = 0
        self._others: Counter[str] = Counter()

    def read(self, keys: tuple[str, ...], values: Sequence[Any]) -> Record:
        """The fields of a record, and its other keys, which go to ``meta``.

        A whole number as an id becomes a string, and a single string is split where a list belongs.
        """
        fields = self._fixed
        if fields is None:
            if keys not in self._fields:
                self._fields[keys] = fields_of(keys)
                self.report.note_columns(keys, self._fields[keys])
            fields = self._fields[keys]
        record = values_of(values, fields, self.separator)
        taken = {place for places in fields.values() for place in places}
        extra = {
            keys[place]: values[place]
            for place in range(len(keys))
            if place not in taken
        }
        if isinstance(record.get("title"), list) and "pattern" in keys:
            record["title"] = _name_of(record["title"])
        if isinstance(record.get("id"), Integral) and not isinstance(
            record["id"], bool
        ):
            record["id"] = str(record["id"])
        return record, extra

    def read_dict(self, record: Mapping[Any, Any]) -> Record:
        """The same of a dict without missing values. Ids under "alt_ids" lead to the entity."""
        present = {
            str(key): value for key, value in record.items() if not is_missing(value)
        }
        fields, extra = self.read(tuple(present), list(present.values()))
        ids = further_ids(extra.get(ALT_IDS))
        if ids is not None:
            del extra[ALT_IDS]
            self.report.redirect(ids, str(fields.get("id")))
        return fields, extra

    def entity(self, record: Record) -> Entity:
        """The entity of a record, which is counted; see ``entity_of``."""
        entity, (fields, extra) = entity_of(record), record
        self._total += 1
        if extra and not (
            fields.get("title") or fields.get("aliases") or "unnamed" in extra
        ):
            self._unnamed += 1
            self._others.update(extra)
        return entity

    def warn(self) -> None:
        """Warn once of all records without a name."""
        if self._unnamed:
            keys = [repr(key) for key, _ in self._others.most_common(SHOWN_KEYS)]
            listed = ", ".join(keys) + (
                ", …" if len(self._others) > SHOWN_KEYS else ""
            )
            Warnings.W102.warn(count=self._unnamed, total=self._total, keys=listed)


def entity_of(record: Record) -> Entity:
    """The entity of a record, whose other keys go to ``meta``. ValueError for other values."""
    fields, extra = record
    meta = fields.get("meta", {})
    if extra and isinstance(meta, Mapping):
        meta = {**meta, **extra}
    entity = Entity(**{"id": None, **fields, "meta": meta})
    if entity.meta:
        entity.meta_json()
    return entity


def _name_of(pattern: Sequence[Any]) -> str:
    """The words of a pattern of spaCy. ValueError where its tokens are no words."""
    words = [
        token.get(key)
        for token in pattern
        for key in ("ORTH", "TEXT", "LOWER")
        if key in token
    ]
    if len(words) != len(pattern) or not all(isinstance(word, str) for word in words):
        raise Errors.E046(pattern=pattern)
    return " ".join(words)


# So many errors of invalid lines are kept.
MOST_PLACES = 5


class ImportReport:
    """Report of an import. A reader fills it while it yields entities.

    count: The number of entities imported.
    skipped: The number of entries left out, by reason.
    redirects: From an entity's other ids to its id.
    xrefs: From ids in other vocabularies to an entity's id; to "" where several entities have them.
    places: The first errors of lines that are left out.
    merged, lost: How many merged ids of the knowledge base that this one replaces are kept, and how
        many are not: they lead nowhere, or an entity has them as its own.
    layout: The columns of the entries, in the order in which they came.
    """

    def __init__(self) -> None:
        self.count = 0
        self.skipped: Counter[str] = Counter()
        self.redirects: dict[str, str] = {}
        self.xrefs: dict[str, str] = {}
        self.places: list[str] = []
        self.merged = 0
        self.lost = 0
        self.layout = Layout()

    def skip(self, reason: str) -> None:
        self.skipped[reason] += 1

    @property
    def reasons(self) -> str:
        return ", ".join(
            f"{count} {reason}" for reason, count in self.skipped.most_common()
        )

    def on_bad(self, skip: bool) -> OnBad:
        """The handler of an invalid line's error: raises it, or counts it."""
        if skip:
            return self.skip_bad
        return throw

    def skip_bad(self, error: ValueError) -> None:
        """Count an invalid line, keeping the first errors."""
        self.skip("invalid")
        if len(self.places) < MOST_PLACES:
            self.places.append(str(error))

    def note_columns(
        self, names: Sequence[str], fields: Mapping[str, Sequence[int]]
    ) -> None:
        """Note the columns of an entry. fields: The places of names by their field."""
        field_at = {
            place: field for field, places in fields.items() for place in places
        }
        columns = dict(self.layout.columns)
        for place, name in enumerate(names):
            columns.setdefault(
                name, ALT_IDS if name == ALT_IDS else field_at.get(place, "")
            )
        self.layout = replace(self.layout, columns=columns)

    def entity(
        self,
        ids: Sequence[str],
        names: Iterable[str],
        description: str = "",
        types: Iterable[str] = (),
        **fields: Any,
    ) -> Entity:
        """Make an entity.

        ids: Its id, and others that lead to it.
        names: Its title and its aliases; each counts once.
        """
        title, *aliases = dict.fromkeys(names)
        self.redirect(ids[1:], ids[0])
        kinds = tuple(dict.fromkeys(types))
        return Entity(ids[0], title, description, tuple(aliases), kinds, **fields)

    def redirect(self, ids: Iterable[str], entity_id: str) -> None:
        """Redirect other ids to an entity, the first of each. ValueError for unstorable ids."""
        for old_id in ids:
            if old_id and old_id != entity_id:
                if not is_storable(old_id):
                    raise Errors.E037(id=entity_id, value=old_id)
                self.redirects.setdefault(old_id, entity_id)

    def note_xrefs(self, ids: Iterable[str], entity_id: str) -> None:
        """Note an entity's ids in other vocabularies. Which of several is meant, no id says."""
        for xref in filter(is_storable, ids):
            if self.xrefs.setdefault(xref, entity_id) != entity_id:
                self.xrefs[xref] = ""

    def all_redirects(self) -> dict[str, str]:
        """The redirects, and those of ids in other vocabularies that a single entity has."""
        single = {
            xref: entity_id for xref, entity_id in self.xrefs.items() if entity_id
        }
        return {**single, **self.redirects}


class EntityFormat(Sniffing, Protocol):
    """A reader of entities, registered as a format: a frozen dataclass of its options.

    A class attribute ``reads_folders = True`` says that it reads folders.
    A reader without ``sniff`` reads what ``--format`` names it for.
    """

    def read(self, path: PathLike, report: ImportReport) -> Iterator[Entity]:
        """Yield the entities of a file. Raises ValueError where it is not valid.

        report: Counts entries that are left out, and gets further ids of entities.
        """


def _rows_of_frame(frame: Any) -> Iterable[Mapping[str, Any]]:
    if hasattr(frame, "collect"):
        frame = frame.collect()
    if hasattr(frame, "iter_rows"):
        return frame.iter_rows(named=True)
    if hasattr(frame, "to_pylist"):
        return frame.to_pylist()
    if hasattr(frame, "to_dict"):
        return frame.to_dict("records")
    raise Errors.E502(got=type(frame).__name__)


def with_known(record: Record, entity: Entity | None) -> Record:
    """A record with the fields of an entity of its id, or None, that it does not give.

    A field that is None or NaN is not given; an empty one is. ``meta`` is given key by key.
    """
    if entity is None:
        return record
    fields, extra = record
    new = {name: value for name, value in fields.items() if not is_missing(value)}
    stored = {name: getattr(entity, name) for name in OPTIONAL if name != "meta"}
    meta = dict(entity.meta)
    if new.get("title") or new.get("aliases"):
        meta.pop("unnamed", None)
    new_meta = new.get("meta", {})
    new["meta"] = {**meta, **new_meta} if isinstance(new_meta, Mapping) else new_meta
    return {**stored, **new}, extra


def entities_from(
    source: Any,
    report: ImportReport | None = None,
    find_entity: Callable[[str], Entity | None] = lambda entity_id: None,
) -> Iterator[Entity]:
    """The entities of one record or many.

    source: An ``Entity``, a dict with the fields of one, a data frame with a row for each, or an
        iterable of entities and dicts. Values of dicts may be None or NaN, which count as left out;
        a single string is split at "|" where a list belongs; a number as an id becomes a string.
        Usual other names of fields, such as "name" and "synonyms", are read too, and several of a
        field are joined. Other keys go to ``meta``; a warning says where names are missing.
    report: Gets the ids under "alt_ids", which lead to an entity.
    find_entity: Function from an id to the entity whose fields a dict keeps where it gives none.

    ValueError where a record is no entity, with its number from 1.
    """
    if isinstance(source, (Entity, Mapping)):
        source = [source]
    elif hasattr(source, "columns"):
        source = _rows_of_frame(source)
    reader = RecordReader(report=report)
    for number, record in enumerate(source, 1):
        if isinstance(record, Entity):
            yield record
            continue
        try:
            if not isinstance(record, Mapping):
                raise ValueError(
                    f"it is a {type(record).__name__}, not an Entity or a dict"
                )
            read = reader.read_dict(record)
            entity = reader.entity(
                with_known(read, find_entity(read[0].get("id", "")))
            )
        except ValueError as error:
            problem = problem_in(error).rstrip(".")
            raise Errors.E041(number=number, problem=problem) from None
        yield entity
    reader.warn()
