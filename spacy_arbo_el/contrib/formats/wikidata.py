"""Wikidata as JSON: a dump with an item in each line, or entity data."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from ...kb.entity import Entity
from ...kb.importers.common import ImportReport
from ...records.formats import certainty
from ...records.lines import (
    PathLike,
    check_exists,
    is_storable,
    line_error,
    read_lines,
)
from ...records.source import at_line

# The code of names in all languages.
ALL = "mul"
# How files of wbgetentities and Special:EntityData begin; and a list of items, as dumps are.
START = re.compile(
    rb'\{\s*"entities"\s*:\s*\{'
    rb'|\[\s*\{[^{}]{0,2000}"(?:labels"\s*:\s*\{|type"\s*:\s*"(?:item|property|lexeme)")',
    re.S,
)


@dataclass(frozen=True)
class WikidataReader:
    """Reads the items of a Wikidata dump: a .json, .json.gz or .json.bz2 file.

    Files of ``Special:EntityData`` and ``wbgetentities`` are read too, and any list of items.

    The types of an item are the ids of its P31 ("instance of"). Its frequency is the number of
    articles about it.

    Raises ValueError with file, line and problem at an invalid line.

    languages: The languages of label, description and aliases. The first one that an item has
        counts. Names in ``mul``, which are for all languages, are joined with them.
    types: Only items of these types are imported; empty for all.
    type_names: Whether types are names of classes: of those in P31 and P279 ("subclass of") that
        the file has, where these are subclasses of others. It is then read twice. Models can read
        names, ids say nothing to them.
    """

    languages: tuple[str, ...] = ("en",)
    types: tuple[str, ...] = ()
    type_names: bool = False

    sniff = staticmethod(partial(certainty, pattern=START))

    def read(self, path: PathLike, report: ImportReport) -> Iterator[Entity]:
        """Yield the items. report: Gets the number of items left out."""
        path = check_exists(path)
        names = self._names_of_classes(path) if self.type_names else None
        for number, item in _items(path):
            with _as_item(path, number):
                entity = self._entity(item, report, names)
            if entity is not None:
                yield entity

    def _entity(
        self,
        item: dict[str, Any],
        report: ImportReport,
        names: dict[str, str] | None,
    ) -> Entity | None:
        """Make an item's entity; None if it is left out.

        names: The names of classes, by their ids.
        """
        if item.get("type", "item") != "item":
            report.skip(f"a {item['type']}, not an item")
            return None
        id_ = item["id"]
        if "missing" in item:
            report.skip("not in Wikidata")
            return None
        labels = self._in_languages(item.get("labels"))
        if not labels:
            report.skip(f"no label in {', '.join(self.languages)}")
            return None
        claims = item.get("claims") or {}
        kinds = _values(claims, "P31")
        if self.types and not set(self.types) & set(kinds):
            report.skip("of another type")
            return None
        if names is not None:
            # An item is an instance or a subclass of its classes.
            classes = [*kinds, *_values(claims, "P279")]
            kinds = list(
                dict.fromkeys(names[kind] for kind in classes if names.get(kind))
            )
        descriptions = self._in_languages(item.get("descriptions"))
        named_otherwise = chain.from_iterable(self._in_languages(item.get("aliases")))
        title, *further = [name["value"] for name in (*labels, *named_otherwise)]
        description = descriptions[0]["value"] if descriptions else ""
        if not all(map(is_storable, (id_, title, description, *further, *kinds))):
            report.skip("half a character or NUL in its text")
            return None
        articles = float(len(item.get("sitelinks") or {}))
        aliases = tuple(
            name for name in dict.fromkeys(further) if name and name != title
        )
        return Entity(id_, title, description, aliases, tuple(kinds), articles)

    def _in_languages(self, values: Any) -> list[Any]:
        """Values of the first language with any, plus ``mul``."""
        # In the dumps an empty object is a list.
        values = values or {}
        first = next((code for code in self.languages if values.get(code)), ALL)
        return [
            values[code] for code in dict.fromkeys((first, ALL)) if values.get(code)
        ]

    def _names_of_classes(self, path: Path) -> dict[str, str]:
        """Names by id of all items that are subclasses of others."""
        names: dict[str, str] = {}
        for number, item in _items(path):
            with _as_item(path, number):
                if _values(item.get("claims") or {}, "P279"):
                    labels = self._in_languages(item.get("labels"))
                    names.update((item["id"], label["value"]) for label in labels[:1])
        return names


def _items(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in _lines(path):
        line = line.strip().rstrip(",")
        if line in ("", "[", "]"):
            continue
        # Indented items of a list are one line, whose bracket was the line before.
        if line[0] == "{" and line[-1] == "]":
            line = f"[{line}"
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise line_error(path, number, f"no valid JSON: {error}.") from None
        with _as_item(path, number):
            items = value if isinstance(value, list) else [value]
            if "entities" in value:
                items = list(value["entities"].values())
        yield from ((number, item) for item in items)


@contextmanager
def _as_item(path: Path, number: int) -> Iterator[None]:
    """A context in which an item is read. What it lacks is an error that names the line."""
    try:
        with at_line(path, number):
            yield
    except (AttributeError, KeyError, IndexError, TypeError) as error:
        problem = f"no Wikidata item ({type(error).__name__}: {error})."
        raise line_error(path, number, problem) from None


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines of a file. Indented data are one line."""
    lines = read_lines(path)
    for number, line in lines:
        further_lines = lines if line.strip() == "{" else ()
        yield number, "\n".join([line, *(later for _, later in further_lines)])


def _values(claims: dict[str, Any], of: str) -> list[str]:
    """The items of a property. Of preferred rank if there are any, otherwise of normal rank."""
    by_rank: dict[str, list[str]] = {}
    for claim in claims.get(of, []):
        value = claim["mainsnak"].get("datavalue", {}).get("value", {}).get("id")
        if value:
            by_rank.setdefault(claim.get("rank", "normal"), []).append(value)
    return list(dict.fromkeys(by_rank.get("preferred") or by_rank.get("normal") or []))
