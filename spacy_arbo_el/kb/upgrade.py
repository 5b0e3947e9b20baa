"""Upgrade of version 2, which kept owners in a file. The owners of vectors."""

from pathlib import Path
from typing import List

import numpy as np

from ..errors import Errors
from ..storage.folders import link
from .database import OWNER, Database
from .folder import DATABASE, check_files, find, replacing_kb, seal, vector_file
from .manifest import VERSION, Manifest, index_entry, manifest_problems
from .vectors import HEADER

MANIFEST = "manifest.json"


def outdated(path: Path) -> List[Path]:
    """The folders of version 2. Of a knowledge base, or of those in a pipeline."""
    path = find(path)
    folders = [path] if (path / DATABASE).is_file() else sorted(path.glob("*/kb"))
    return [folder for folder in folders if (folder / MANIFEST).is_file()]


def upgrade(path: Path) -> None:
    """Replace a KB of version 2 by one of today. It keeps its identity.

    Its vectors and its index are linked. ValueError where it is damaged.
    """
    check_files(path)
    with replacing_kb(path) as target:
        old = Database(path / DATABASE, writable=False)
        new = old.copy(target / DATABASE)
        old.close()
        try:
            manifest = {**new.manifest(), "crc": 0}
            if manifest.get("version") != 2 or list(manifest_problems(manifest)):
                raise ValueError(Errors.E008.format(where=path, found=manifest.get("version")))
            with new.transaction():
                new.rows("DROP TABLE block")
                new.rows(OWNER)
                _move_vectors(path, target, new, manifest)
                new.set(version=VERSION)
        finally:
            new.close()
        seal(target / DATABASE)


def _move_vectors(path: Path, target: Path, database: Database, manifest: Manifest) -> None:
    index, file = index_entry(manifest), vector_file(path, manifest)
    if index is not None:
        link(path / index["file"], target / index["file"])
    crc = 0
    if file is not None:
        link(file.path, target / file.path.name)
        owners = np.fromfile(path / f"owners-{file.number}.bin", dtype=np.int64, offset=HEADER)
        if len(owners) < manifest["rows"]:
            problem = f"owners-{file.number}.bin is cut off"
            raise ValueError(Errors.E019.format(where=path, problems=problem))
        if manifest["rows"]:
            row = (0, owners[: manifest["rows"]].tobytes())
            database.many("INSERT INTO owner VALUES (?, ?)", [row])
        problems = list(file.problems(manifest["rows"]))
        if problems:
            raise ValueError(Errors.E019.format(where=path, problems="; ".join(problems)))
        crc = file.checksum(manifest["rows"])
    database.set(crc=crc)
