"""The order in which new entities are reviewed, large and doubtful ones first."""

import hashlib
from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from ...discovery.entities import NearestEntity, NewEntity
from ...discovery.new_entities import NewEntities
from ...kb.entity import Entity
from .errors import ReviewMessages

# What every cluster has of doubt, so that of certain ones the large come first too.
LEAST_DOUBT = 0.1


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A new entity.

    near, nearest: The id and the title of its nearest entity, "" for none.
    probability: Of its nearest entity, 0.0 for none.
    doubt: 0 to 1.
    version: See ``version_of``.
    is_listed: Whether the list has entities with its label, or none with any.
    """

    id: str
    name: str
    label: str
    mentions: int
    cohesion: float
    nearest: str
    probability: float
    doubt: float
    near: str
    version: str
    is_listed: bool

    @classmethod
    def of(
        cls, entity: NewEntity, threshold: float, types: Collection[str]
    ) -> "QueueRow":
        none = NearestEntity("", "", 0.0)
        best, second, *_ = (*entity.nearest, none, none)
        first = best.probability
        closeness = 1 - abs(first - threshold) / max(threshold, 1 - threshold)
        margin = min(1.0, first / threshold if threshold else 1.0) * (
            1 - (first - second.probability)
        )
        looseness = min(max(1 - entity.cohesion, 0.0), 1.0)
        doubt = looseness + (closeness + margin if entity.nearest else 0.0)
        labels = [record.label for record in entity.members]
        label = max(dict.fromkeys(labels), key=labels.count)
        return cls(
            entity.id,
            entity.name,
            label,
            len(labels),
            entity.cohesion,
            best.title,
            first,
            round(doubt / 3, 4),
            best.kb_id,
            version_of(entity),
            is_listed=not types or label in types,
        )


def version_of(entity: NewEntity | Entity) -> str:
    """Fingerprint of an entity, so that changes are noticed."""
    if isinstance(entity, Entity):
        content = repr(sorted(entity.to_dict().items()))
    else:
        content = repr(sorted(record.key for record in entity.members))
    return hashlib.blake2b(
        content.encode("utf8", "replace"), digest_size=6
    ).hexdigest()


SORTS: dict[str, Callable[[QueueRow], tuple]] = {
    # First what the list has the like of: of persons and places a list of firms lacks most.
    "doubt": lambda row: (
        not row.is_listed,
        -row.mentions * (row.doubt + LEAST_DOUBT),
        row.id,
    ),
    "mentions": lambda row: (-row.mentions, row.id),
    "probability": lambda row: (-row.probability, row.id),
    "cohesion": lambda row: (row.cohesion, row.id),
    "name": lambda row: (row.name.casefold(), row.id),
}
CHOICES = {"state": ("open", "skipped", "flagged", "all"), "sort": tuple(SORTS)}


@dataclass(frozen=True)
class Filters:
    """Filters and order of the shown new entities. The address of the page holds them.

    q: A text in the name or the id. near: The id of one of the nearest entities.
    least, most: The number of mentions, 0 for no limit. low, high: The nearest's probability.
    """

    q: str = ""
    label: str = ""
    document: str = ""
    near: str = ""
    least: int = 0
    most: int = 0
    low: float = 0.0
    high: float = 1.0
    state: str = "open"
    sort: str = "doubt"
    page: int = 1

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "Filters":
        """Filters of an address. Raises ValueError for a value that can't be."""
        values = {}
        for name, default in vars(cls()).items():
            text = query.get(name, "").strip()
            try:
                values[name] = type(default)(text) if text else default
                if name in CHOICES and values[name] not in CHOICES[name]:
                    raise ValueError
                if isinstance(default, (int, float)) and not abs(values[name]) < 1e9:
                    raise ValueError  # infinite, or not a number
            except ValueError:
                raise ReviewMessages.E915(name=name, value=text) from None
        return cls(**values)

    def query(self) -> dict[str, str]:
        """Query of an address with values beside the defaults."""
        plain = vars(Filters())
        return {name: str(v) for name, v in vars(self).items() if v != plain[name]}


def sure_of(query: Mapping[str, str]) -> float:
    """The probability from which a new entity counts as certain. ValueError for none."""
    text = query.get("sure", "").strip() or "0.9"
    with suppress(ValueError):
        if 0 <= float(text) <= 1:
            return float(text)
    raise ReviewMessages.E915(name="sure", value=text)


class Queue:
    """The new entities that are not decided on, in order.

    types: Those of the list's entities.
    """

    def __init__(
        self, new_entities: Callable[[], NewEntities], types: Collection[str]
    ) -> None:
        self._new = new_entities
        self._types = types
        new = self._new()
        rows = []
        for start in range(0, len(new), 1000):
            entities = new[start : start + 1000]
            rows += [QueueRow.of(entity, new.threshold, types) for entity in entities]
        self.rows = {row.id: row for row in rows}
        self._order = sorted(map(SORTS["doubt"], rows))

    def update(self, ids: Iterable[str]) -> None:
        """Update some new entities in the queue. They may be decided on by now, or exist again."""
        for entity_id in dict.fromkeys(ids):
            if entity_id in self.rows:
                place = SORTS["doubt"](self.rows.pop(entity_id))
                del self._order[bisect_left(self._order, place)]
            try:
                entity = self._new().named(entity_id)
                row = QueueRow.of(entity, self._new().threshold, self._types)
            except (KeyError, ValueError):
                continue
            self.rows[row.id] = row
            insort(self._order, SORTS["doubt"](row))

    def select(
        self, filters: Filters, skipped: set[str], flagged: set[str]
    ) -> list[QueueRow]:
        """The rows that pass the filters, in their order."""
        all_ids = self.rows.keys()
        of_state = {"open": all_ids - skipped, "skipped": skipped, "flagged": flagged}
        chosen = of_state.get(filters.state, all_ids)
        rows = [
            self.rows[entity_id]
            for *_, entity_id in self._order
            if entity_id in chosen
        ]
        if filters.query().keys() - {"state", "sort", "page"}:
            matching = self._with_mentions(filters)
            text = filters.q.casefold()
            rows = [
                row
                for row in rows
                if (matching is None or row.id in matching)
                and filters.least <= row.mentions <= (filters.most or row.mentions)
                and filters.low <= row.probability <= filters.high
                and (text in row.name.casefold() or text in row.id.casefold())
            ]
        return (
            rows if filters.sort == "doubt" else sorted(rows, key=SORTS[filters.sort])
        )

    def _with_mentions(self, filters: Filters) -> set[str] | None:
        """The ids of new entities with a matching label, document or near entity; None for all."""
        if not (filters.label or filters.document or filters.near):
            return None
        new = self._new()
        with new.lock:
            numbers = new.clusters.numbers.tolist()
            rows = new.rows
            matching_numbers = {
                number
                for number, record, nearest in zip(numbers, rows.records, rows.nearest)
                if filters.label in ("", record.label)
                and filters.document in ("", record.document, record.key[0])
                and filters.near in ("", *(entity.kb_id for entity in nearest))
            }
            return {new.clusters.ids[number] for number in matching_numbers}


def next_id(rows: Sequence[QueueRow], before: QueueRow | None, sort: str) -> str:
    """Id of the next row; "" for none. If that row is gone, it is that of the first."""
    place = SORTS[sort](before) if before is not None else ()
    after = (row for row in rows if SORTS[sort](row) > place)
    return next((row.id for row in (*islice(after, 1), *rows) if row != before), "")
