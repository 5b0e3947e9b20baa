"""A knowledge base as a whole: into a folder, to bytes, and back."""

import json
import os
import uuid
from pathlib import Path
from typing import Any, Callable, Dict, Optional, Tuple, Union

import numpy as np
import srsly

from ..errors import Errors
from ..io import pack_arrays, replacing_folder, unpack_arrays
from . import folder
from .database import Database
from .vectors import RowFiles, VectorRows, block_checksums


class AttachedIndex:
    """A search index that was built over the rows and is kept beside them.

    about: What it is, JSON-serialisable; see ``retrieval/approximate.py``.
    source: Its file, or a function that writes it to a path.
    """

    def __init__(self, about: Dict[str, Any], source: Union[Path, Callable[[Path], None]]):
        self.about, self.source = about, source

    @property
    def is_there(self) -> bool:
        """Whether it can be written: a writer may have put another in its file's place."""
        return callable(self.source) or self.source.is_file()

    def write(self, path: Path) -> None:
        if callable(self.source):
            self.source(path)
            with path.open("r+b") as file:
                os.fsync(file.fileno())
        else:
            _copy(self.source, path)

    def described(self, path: Path) -> Dict[str, Any]:
        """What the manifest says of the index once it is written."""
        size, crc = path.stat().st_size, folder.file_checksum(path)
        return {**self.about, "file": path.name, "size": size, "crc": crc}


def write(database: Database, rows: VectorRows, index: Optional[AttachedIndex], path: Path) -> None:
    """Write all into a folder, which takes the place of an older one in one step."""
    with replacing_folder(path) as target:
        copy = database.copy(target / folder.DATABASE)
        try:
            name = uuid.uuid4().hex
            with copy.transaction():
                copy.set(
                    uuid=name, files=0, index="", indexes=int(index is not None and index.is_there)
                )
                if len(rows):
                    files = RowFiles(target, 1, name, rows.width, rows.dtype).create()
                    _write_rows(copy, rows, files)
                    copy.set(files=1)
                if index is not None and index.is_there:
                    file = target / f"index-1{index.about['suffix']}"
                    index.write(file)
                    copy.set(index=json.dumps(index.described(file)))
            manifest = copy.manifest()
        finally:
            copy.close()
        # Nobody else has the file open yet, so that it may be read without SQLite.
        folder.write_manifest(target, manifest, folder.file_checksum(target / folder.DATABASE))


def _write_rows(database: Database, rows: VectorRows, files: RowFiles) -> None:
    database.many("DELETE FROM block", [()])
    before = (0, 0)
    for start, block in rows.blocks():
        vectors = block.astype(rows.dtype)
        owners = rows.owners[start : start + len(block)]
        files.write(start, vectors, owners)
        sums = block_checksums(start, vectors, owners, before)
        before = sums[-1][1:]
        database.many("INSERT OR REPLACE INTO block VALUES (?, ?, ?)", sums)


def _copy(source: Path, target: Path) -> None:
    with source.open("rb") as old, target.open("xb") as new:
        while chunk := old.read(folder.CHUNK):
            new.write(chunk)
        new.flush()
        os.fsync(new.fileno())


def dump(database: Database, rows: VectorRows) -> bytes:
    """All as bytes, without the index."""
    arrays = {"vectors": rows.array().astype(rows.dtype), "owners": rows.owners}
    return srsly.msgpack_dumps({"database": database.to_bytes(), "rows": pack_arrays(arrays)})


def restore(data: bytes) -> Tuple[Database, VectorRows]:
    """What ``dump`` gave, in memory."""
    try:
        parts = dict(srsly.msgpack_loads(data))
        arrays = unpack_arrays(parts["rows"])
        content = parts["database"]
    except Exception as error:  # whatever reading damaged bytes may raise
        where = "the bytes given"
        raise ValueError(Errors.E013.format(where=where, problem=error)) from error
    database = Database.from_bytes(content)
    manifest = database.manifest()
    vectors, owners = arrays["vectors"], arrays["owners"]
    if manifest.get("version") != folder.VERSION:
        raise ValueError(Errors.E008.format(where="the bytes given", found=manifest.get("version")))
    counts = (manifest["entities"], len(vectors), len(owners))
    if not manifest["rows"] == len(vectors) == len(owners):
        raise ValueError(
            Errors.E009.format(where="the bytes given", manifest=manifest, counts=counts)
        )
    database.set(files=0, index="")
    return database, VectorRows(vectors, np.asarray(owners, dtype=np.int64), manifest["dtype"])
