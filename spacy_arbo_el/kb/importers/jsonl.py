"""The format of this project: JSONL, one entity per line."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ...records.fields import ALT_IDS, fields_of
from ...records.formats import certainty
from ...records.lines import PathLike, line_error, read_text
from ...records.objects import read_records
from ...records.source import Source, check_unique
from ...storage.files import replacing
from ..entity import Entity
from ..store import EntityStore
from .common import ImportReport, RecordReader, records_by_id

# How sure a "{" at the beginning is, where no other format knows the file by more.
BY_BRACE = 0.6
# How sure an object is whose first key is no field, and whose first value is an object; or none of
# whose keys is a field.
BY_IDS = 0.7
_OF_IDS = re.compile(rb'\{\s*"([^"\\]*)"\s*:\s*\{')
_KEYS = re.compile(rb'"([^"\\]*)"\s*:')


@dataclass(frozen=True)
class EntityJsonlReader:
    """Reads the entities of a JSONL file, one by one. Empty lines are skipped.

    A line is an object with "id" and, optionally, "title", "description", "aliases" and "types"
    (lists of strings), "frequency" and "meta". Usual names of these, such as "name" and "synonyms",
    are read too. Ids in a list "alt_ids" lead to the entity. Other keys go to ``meta``; a warning
    says where names are missing. A line may also have an object for each id, as in JSON.

    Raises ValueError with file, line and problem at the first invalid line.

    unique: Whether to check that no id occurs twice, which needs memory for all ids.
    encoding: That of the file.
    skip_bad: Whether invalid lines are counted and left out.
    """

    unique: bool = True
    encoding: str = "utf8"
    skip_bad: bool = False

    @staticmethod
    def sniff(name: str, start: bytes) -> float:
        """Know files of JSONL, and all that begin with an object."""
        if start[:1] == b"{":
            return BY_BRACE
        return certainty(name, start, (".jsonl", ".ndjson"))

    def read(self, path: PathLike, report: ImportReport) -> Iterator[Entity]:
        """Yield the entities. report: Gets the ids under "alt_ids"."""
        source = Source(path, report.on_bad(self.skip_bad), encoding=self.encoding)
        records = (
            (number, record)
            for number, line in read_records(source)
            for record in records_by_id(line) or [line]
        )
        return _entities(records, source, report, self.unique)


@dataclass(frozen=True)
class EntityJsonReader:
    """Reads the entities of a JSON file: a list of objects like the lines of JSONL.

    It may also be an object with such an object, a name or a list of names for each id.

    Raises ValueError with file, number of the entry (as its line) and problem.

    skip_bad: Whether invalid entries are counted and left out.
    """

    skip_bad: bool = False

    @staticmethod
    def sniff(name: str, start: bytes) -> float:
        """Know files by their name, and those with an object or names for each id."""
        by_name = certainty(name, start, (".json",))
        match = _OF_IDS.match(start)
        keys = [match[1]] if match else _KEYS.findall(start)
        has_fields = any(fields_of([key.decode("utf8", "replace")]) for key in keys)
        if has_fields:
            return by_name
        return by_name and BY_IDS

    def read(self, path: PathLike, report: ImportReport) -> Iterator[Entity]:
        """Yield the entities. report: Gets the ids under "alt_ids"."""
        try:
            records = json.loads(read_text(path))
        except (ValueError, RecursionError) as error:
            line = getattr(error, "lineno", 1)
            raise line_error(path, line, f"no valid JSON: {error}.") from None
        records = records_by_id(records) or records
        if not isinstance(records, list) or not all(
            isinstance(record, dict) for record in records
        ):
            problem = (
                "expected a list of objects, or an object with a record, a name or a list of names "
                "for each id. For Wikidata, give --format wikidata."
            )
            raise line_error(path, 1, problem)
        source = Source(path, report.on_bad(self.skip_bad))
        yield from _entities(enumerate(records, 1), source, report)


def _entities(
    records: Iterable[tuple[int, dict[str, Any]]],
    source: Source,
    report: ImportReport,
    unique: bool = True,
) -> Iterator[Entity]:
    """The entities of records with their line numbers, see ``EntityJsonlReader``."""
    reader = RecordReader(report=report)
    lines_of: dict[str, int] = {}

    def read(number: int, record: dict[str, Any]) -> Entity:
        entity = reader.entity(reader.read_dict(record))
        if unique:
            check_unique("entity", entity.id, number, lines_of)
        return entity

    yield from source.read(records, read)
    reader.warn()


def write_entities_jsonl(entities: Iterable[Entity], path: PathLike) -> int:
    """Write entities, or a knowledge base with its merged ids, for ``EntityJsonlReader``.

    The previous file stays on errors, as for a ``meta`` that is no JSON. RETURNS: Their number.
    """
    count = 0
    with replacing(path) as file:
        for line in entity_lines(entities):
            file.write(line.encode("utf8") + b"\n")
            count += 1
    return count


def entity_lines(entities: Iterable[Entity]) -> Iterator[str]:
    """Entities as lines of JSONL; see ``write_entities_jsonl``."""
    store = getattr(entities, "entities", entities)
    further = store.further_ids() if isinstance(store, EntityStore) else {}
    for entity in entities:
        entity.meta_json()
        data = entity.to_dict()
        if entity.id in further:
            data[ALT_IDS] = further[entity.id]
        yield json.dumps(data, ensure_ascii=False)
