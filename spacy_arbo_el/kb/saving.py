"""Writing a knowledge base into a folder and to bytes, and restoring it from bytes."""

import json
import os
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, Optional, Tuple, Union

import numpy as np
import srsly

from ..errors import Errors
from ..storage.files import pack_arrays, unpack_arrays
from . import folder
from .checks import schema_problems
from .database import Database
from .manifest import VERSION, index_entry, manifest_problems
from .vectors import RowFiles, VectorRows, are_owners, block_checksums


@dataclass(frozen=True)
class AttachedIndex:
    """A search index that was built over the rows and is stored beside them.

    about: Its description, JSON-serialisable; see ``retrieval/index/approximate.py``.
    source: Its file, or a function that writes it to a path.
    """

    about: Dict[str, Any]
    source: Union[Path, Callable[[Path], None]]

    @property
    def can_be_written(self) -> bool:
        """Whether its file still exists. A writer may have replaced it by another."""
        return not isinstance(self.source, Path) or self.source.is_file()

    def write(self, path: Path) -> None:
        if isinstance(self.source, Path):
            _copy(self.source, path)
        else:
            self.source(path)
            with path.open("r+b") as file:
                os.fsync(file.fileno())

    def entry(self, path: Path) -> Dict[str, Any]:
        """What the manifest holds about the index, which is written to ``path``."""
        size, crc = path.stat().st_size, folder.file_checksum(path)
        return {**self.about, "file": path.name, "size": size, "crc": crc}


def attached_index(path: Path, database: Database) -> Optional[AttachedIndex]:
    """The search index of a folder; None where there is none."""
    about = index_entry(database.manifest())
    return AttachedIndex(about, path / about["file"]) if about else None


def write(database: Database, rows: VectorRows, index: Optional[AttachedIndex], path: Path) -> None:
    """Write all of it into a folder, which replaces an older one in one step."""
    with folder.replacing_kb(path) as target:
        copy = database.copy(target / folder.DATABASE)
        try:
            name = uuid.uuid4().hex
            with copy.transaction():
                copy.set(uuid=name, files=0, index="", indexes=0)
                if len(rows):
                    files = RowFiles(target, 1, name, rows.width, rows.dtype).create()
                    _write_rows(copy, rows, files)
                    copy.set(files=1)
                if index is not None and index.can_be_written:
                    file = target / f"index-1{index.about['suffix']}"
                    index.write(file)
                    copy.set(index=json.dumps(index.entry(file)), indexes=1)
            manifest = copy.manifest()
        finally:
            copy.close()
        # No other program has the file open yet, so it may be read without SQLite.
        folder.write_manifest(target, manifest, folder.file_checksum(target / folder.DATABASE))


def _write_rows(database: Database, rows: VectorRows, files: RowFiles) -> None:
    database.empty("block")
    last_sums = (0, 0)
    for start, block in rows.blocks():
        vectors = block.astype(rows.dtype)
        owners = rows.owners[start : start + len(block)]
        files.write(start, vectors, owners)
        sums = block_checksums(start, vectors, owners, last_sums)
        last_sums = sums[-1][1:]
        database.many("INSERT OR REPLACE INTO block VALUES (?, ?, ?)", sums)


def _copy(source: Path, target: Path) -> None:
    with source.open("rb") as old, target.open("xb") as new:
        while chunk := old.read(folder.CHUNK):
            new.write(chunk)
        new.flush()
        os.fsync(new.fileno())


def dump(database: Database, rows: VectorRows) -> bytes:
    """All of it as bytes, without the index."""
    arrays = {"vectors": rows.array().astype(rows.dtype), "owners": rows.owners}
    return srsly.msgpack_dumps({"database": database.to_bytes(), "rows": pack_arrays(arrays)})


def restore(data: bytes) -> Tuple[Database, VectorRows]:
    """What ``dump`` wrote, in memory; ValueError where it is damaged."""
    where = "the bytes given"
    try:
        parts = dict(srsly.msgpack_loads(data))
        arrays = unpack_arrays(parts["rows"])
        content = parts["database"]
    except Exception as error:  # whatever reading damaged bytes may raise
        raise ValueError(Errors.E013.format(where=where, problem=error)) from error
    database = Database.from_bytes(content)
    problems = list(schema_problems(database))
    manifest = {} if problems else database.manifest()
    if manifest and manifest.get("version") != VERSION:
        raise ValueError(Errors.E008.format(where=where, found=manifest.get("version")))
    problems = problems or list(manifest_problems(manifest))
    if problems:
        raise ValueError(Errors.E019.format(where=where, problems="; ".join(problems)))
    vectors, owners = arrays["vectors"], arrays["owners"]
    counts = (manifest["rows"], manifest["width"] if manifest["rows"] else vectors.shape[-1])
    if vectors.shape != counts or owners.shape != counts[:1]:
        shapes = (manifest["entities"], vectors.shape, owners.shape)
        raise ValueError(Errors.E009.format(where=where, manifest=manifest, counts=shapes))
    if not are_owners(owners, manifest["positions"]):
        problem = "there are owners that are no entities"
        raise ValueError(Errors.E019.format(where=where, problems=problem))
    database.set(files=0, index="")
    return database, VectorRows(vectors, np.asarray(owners, dtype=np.int64), manifest["dtype"])
