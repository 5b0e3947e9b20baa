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
from ..io import pack_arrays, replacing_folder, unpack_arrays
from . import folder
from .database import Database
from .vectors import RowFiles, VectorRows, block_checksums


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
    about = folder.index_entry(database.manifest())
    return AttachedIndex(about, path / about["file"]) if about else None


def write(database: Database, rows: VectorRows, index: Optional[AttachedIndex], path: Path) -> None:
    """Write all of it into a folder, which replaces an older one in one step."""
    with replacing_folder(path, folder.KB_FOLDER) as target:
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
    database.many("DELETE FROM block", [()])
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
    manifest = database.manifest()
    vectors, owners = arrays["vectors"], arrays["owners"]
    if manifest.get("version") != folder.VERSION:
        raise ValueError(Errors.E008.format(where=where, found=manifest.get("version")))
    if not manifest["rows"] == len(vectors) == len(owners):
        counts = (manifest["entities"], len(vectors), len(owners))
        raise ValueError(Errors.E009.format(where=where, manifest=manifest, counts=counts))
    database.set(files=0, index="")
    return database, VectorRows(vectors, np.asarray(owners, dtype=np.int64), manifest["dtype"])
