"""Wikidata from its JSON dump: one item per line, plain or compressed."""

import bz2
import gzip
import json
import zlib
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

from ...formats import entity_formats
from ...io import PathLike, check_exists, is_storable, line_error
from ..entity import Entity
from .lines import at_line
from .report import ImportReport

OPENERS: Dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}


@entity_formats("wikidata")
def read_wikidata(
    path: PathLike,
    report: Optional[ImportReport] = None,
    *,
    languages: Tuple[str, ...] = ("en",),
    types: Tuple[str, ...] = (),
    sitelinks: int = 0,
) -> Iterator[Entity]:
    """Yield the items of a Wikidata dump (.json, .json.gz, .json.bz2), one at a time.

    The types of an item are the ids of its P31 ("instance of"). Its frequency is the number of
    articles about it.

    Raises ValueError with file, line and problem at an invalid line.

    path: The dump.
    report: Gets the number of items left out.
    languages: The languages of label, description and aliases. The first one that an item has
        counts.
    types: Only items of these types are imported; empty for all.
    sitelinks: Only items with at least so many articles are imported.
    """
    path, report = check_exists(path), report or ImportReport()
    for number, line in _lines(path):
        line = line.strip().rstrip(b",")
        if line in (b"", b"[", b"]"):
            continue
        try:
            item = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise line_error(path, number, f"no valid JSON: {error}.") from None
        try:
            with at_line(path, number):
                entity = _item(item, report, languages, types, sitelinks)
        except (AttributeError, KeyError, IndexError, TypeError) as error:
            problem = f"no Wikidata item ({type(error).__name__}: {error})."
            raise line_error(path, number, problem) from None
        if entity is not None:
            yield entity


def _lines(path: Path) -> Iterator[Tuple[int, bytes]]:
    """(number from 1, line) of a file that may be compressed."""
    number = 0
    with OPENERS.get(path.suffix, open)(path, "rb") as file:
        try:
            for number, line in enumerate(file, 1):
                yield number, line
        except (EOFError, zlib.error, OSError) as error:
            if path.suffix not in OPENERS:
                raise
            problem = f"the compressed file is damaged or cut off here ({error})."
            raise line_error(path, number + 1, problem) from None


def _item(
    item: Dict[str, Any],
    report: ImportReport,
    languages: Tuple[str, ...],
    types: Tuple[str, ...],
    sitelinks: int,
) -> Optional[Entity]:
    if item.get("type", "item") != "item":
        report.skip(f"a {item['type']}, not an item")
        return None
    label = _in_language(item.get("labels", {}), languages)
    if label is None:
        report.skip(f"no label in {', '.join(languages)}")
        return None
    kinds = _instance_of(item.get("claims") or {})
    if types and not set(types) & set(kinds):
        report.skip("of another type")
        return None
    articles = len(item.get("sitelinks") or {})
    if articles < sitelinks:
        report.skip(f"fewer than {sitelinks} articles")
        return None
    description = _in_language(item.get("descriptions", {}), languages)
    aliases = _in_language(item.get("aliases", {}), languages) or []
    names = [alias["value"] for alias in aliases]
    title, about = label["value"], description["value"] if description else ""
    if not all(map(is_storable, (item["id"], title, about, *names, *kinds))):
        report.skip("half a character or NUL in its text")
        return None
    aliases = tuple(name for name in dict.fromkeys(names) if name and name != title)
    return Entity(item["id"], title, about, aliases, tuple(kinds), float(articles))


def _in_language(values: Any, languages: Tuple[str, ...]) -> Any:
    # In the dumps an empty object is a list.
    return next((values[code] for code in languages if values and code in values), None)


def _instance_of(claims: Dict[str, Any]) -> List[str]:
    """The types: those of preferred rank where there are any, otherwise those of normal rank."""
    by_rank: Dict[str, List[str]] = {}
    for claim in claims.get("P31", []):
        value = claim["mainsnak"].get("datavalue", {}).get("value", {}).get("id")
        if value:
            by_rank.setdefault(claim.get("rank", "normal"), []).append(value)
    return list(dict.fromkeys(by_rank.get("preferred") or by_rank.get("normal") or []))
