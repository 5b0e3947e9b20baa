"""Verification of a whole folder of a knowledge base, with everything read."""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from .attached_index import index_problems
from .database import CHECKED, DATABASE, Database, damages_of
from .folder import find, foreign_names, open_source
from .store import EntityStore
from .texts import TextRows, file_of
from .vector_cache import VectorCache
from .vector_files import HEADER, VectorFolder, kind_of_file


def verify(path: Path) -> list[str]:
    """Read a whole folder and list its problems, files that don't belong to it included."""
    try:
        path = find(Path(path))
        database, _ = open_source(path)
        with closing(database), database.snapshot():
            foreign = foreign_names(path)
            return [
                *(damages_of(database) if database.size() > CHECKED else ()),
                *_entity_problems(database),
                *_trigram_problems(database),
                *_derived_problems(path),
                *(f"{name} does not belong to the knowledge base" for name in foreign),
            ]
    except (ValueError, OSError) as error:
        return [str(error)]


def vector_problems(path: Path) -> Iterator[str]:
    """Damages of the vectors in a folder, all of which are read."""
    for keys in sorted(path.glob("vectors-*.keys")):
        vector_kind = kind_of_file(keys)
        vectors = keys.with_suffix(".bin")
        rows = vectors.name
        if (
            not keys.stat().st_size
            and vectors.is_file()
            and vectors.stat().st_size <= HEADER
        ):
            continue  # its writer was killed before it wrote a vector
        if vector_kind is None:
            yield f"{keys.name} or {rows} is damaged: it has another header"
            continue
        cache = VectorCache(vector_kind, VectorFolder(path), most_checked=sys.maxsize)
        if cache.damage:
            yield f"{keys.name} or {rows} is damaged: {cache.damage}"


def _derived_problems(path: Path) -> Iterator[str]:
    """Damages of what follows from the entities. It is made again where it is used."""
    yield from vector_problems(path)
    for texts in sorted(path.glob("texts-*")):
        try:
            if file_of(TextRows.from_bytes(texts.read_bytes()).identity) != texts.name:
                yield f"{texts.name} is of other texts"
        except ValueError as error:
            yield f"{texts.name} is damaged: {error}"
    yield from index_problems(path)


def _entity_problems(database: Database) -> Iterator[str]:
    try:
        for _ in EntityStore(database):
            pass
    except (ValueError, OSError) as error:
        yield str(error)


def _trigram_problems(database: Database) -> Iterator[str]:
    # The check is a statement that writes, so it is made on a copy.
    with (
        tempfile.TemporaryDirectory() as place,
        closing(database.copy(Path(place) / DATABASE)) as copy,
    ):
        try:
            copy.rows(
                "INSERT INTO trigram (trigram, rank) VALUES ('integrity-check', 1)"
            )
        except (ValueError, OSError) as error:
            yield f"{DATABASE} has an index of trigrams that differs from its names ({error})"
