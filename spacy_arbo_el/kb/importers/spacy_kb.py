"""Entities of spaCy's own ``InMemoryLookupKB``."""

import struct
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from spacy.kb import InMemoryLookupKB
from spacy.vocab import Vocab

from ...base.errors import Errors
from ...storage.formats import BY_NAME
from ...storage.lines import PathLike, check_exists
from ..entity import Entity
from ..folder import SPACY_FILES
from .common import ImportReport


@dataclass(frozen=True)
class SpacyKBReader:
    """Reads the entities of a folder that ``InMemoryLookupKB.to_disk`` wrote."""

    reads_folders: ClassVar[bool] = True

    @staticmethod
    def sniff(name: str, start: bytes) -> float:
        """Know folders by the names of their files."""
        return BY_NAME if name in SPACY_FILES else 0.0

    def read(self, path: PathLike, report: ImportReport | None = None) -> Iterator[Entity]:
        """Yield the entities. ValueError where the folder is incomplete or damaged."""
        path = check_exists(path)
        missing = [name for name in SPACY_FILES if not (path / name).is_file()]
        if missing:
            raise Errors.E010(path=path, missing=", ".join(missing))
        _check_contents(path)
        kb = InMemoryLookupKB(Vocab(), entity_vector_length=1)
        try:
            kb.from_disk(path)
            entities = list(entities_of(kb))
        except (ValueError, OSError, KeyError, TypeError, MemoryError) as error:
            problem = f"strings.json does not fit to contents: {error}"
            raise Errors.E013(where=path, problem=problem) from None
        yield from entities


def _check_contents(path: Path) -> None:
    """Raise ValueError for wrong lengths in "contents". spaCy's reader would crash on them."""
    data = (path / "contents").read_bytes()
    try:
        is_valid = _end_of_contents(data) == len(data)
    except struct.error:
        is_valid = False
    if not is_valid:
        problem = "contents is damaged or cut off"
        raise Errors.E013(where=path, problem=problem)


def _end_of_contents(data: bytes) -> int:
    """Find the end of the contents by their counts. Struct.error or -1 where these are impossible.

    They are: the numbers of entities and of values in a vector; the vectors (float32); hash,
    frequency (float32) and row of each entity; the number of aliases; hash and number of entities
    of each alias; number and prior probability (float32) of each of its entities.
    """
    n_entities, width = struct.unpack_from("<qq", data)
    end = 16 + n_entities * (4 * width + 16)
    if min(n_entities, width) < 0 or end > len(data):
        return -1
    rows = (row for _, _, row in struct.iter_unpack("<Qfi", data[end - 16 * n_entities : end]))
    if not all(0 <= row <= n_entities for row in rows):
        return -1
    (n_aliases,) = struct.unpack_from("<q", data, end)
    end += 8
    for _ in range(n_aliases):
        _, count = struct.unpack_from("<Qq", data, end)
        end += 16 + 12 * count
        if count < 0 or end > len(data):
            return -1
        numbers = (n for n, _ in struct.iter_unpack("<qf", data[end - 12 * count : end]))
        if not all(1 <= number <= n_entities for number in numbers):
            return -1
    return end


def entities_of(kb: InMemoryLookupKB) -> Iterator[Entity]:
    """Entities of spaCy's knowledge base. Prior probabilities become frequencies.

    Its vectors are left out, since they are from another encoder. spaCy's entities have no title:
    the alias with the highest prior probability becomes the title. An entity's frequency is the
    mean of its priors for the aliases that it shares with others, or for all where it shares none.
    spaCy's own frequency is kept in ``meta["count"]``.
    """
    aliases: dict[str, list[tuple[float, str]]] = defaultdict(list)
    shared: dict[str, list[float]] = defaultdict(list)
    counts: dict[str, float] = {}
    for alias in kb.get_alias_strings():
        candidates = kb.get_alias_candidates(alias)
        for candidate in candidates:
            entity_id = candidate.entity_
            prior = candidate.prior_prob
            aliases[entity_id].append((-prior, alias))
            counts[entity_id] = candidate.entity_freq
            if len(candidates) > 1:
                shared[entity_id].append(prior)
    for entity_id in kb.get_entity_strings():
        names = [alias for _, alias in sorted(aliases[entity_id])]
        title, name_aliases = (names[0], tuple(names[1:])) if names else ("", ())
        priors = shared[entity_id] or [-prior for prior, _ in aliases[entity_id]]
        frequency = sum(priors) / len(priors) if priors else 0.0
        count = counts.get(entity_id)
        meta = {"count": count} if count else {}
        yield Entity(entity_id, title, aliases=name_aliases, frequency=frequency, meta=meta)
