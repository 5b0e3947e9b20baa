"""The vectors of a knowledge base's entities: encoded when texts change, and kept with them."""

import json
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Callable, Iterable, List, Optional, Tuple

import numpy as np
from filelock import FileLock

from ..errors import Errors
from . import encoding, folder
from .database import Database
from .saving import AttachedIndex
from .spacy_view import SpacyView
from .texts import DistinctTexts
from .vectors import BLOCK, RowFiles, VectorRows, block_checksums
from .verbalizations import Verbalization


class EncodedKB(SpacyView):
    """The part of ``ArboKB`` that has to do with vectors.

    rows: The ``VectorRows``. index: A search index over them, where one is kept.
    layout: Grows whenever rows get other numbers.
    """

    database: Database
    rows: VectorRows
    path: Optional[Path]
    index: Optional[AttachedIndex]
    layout: int
    _lock: Optional[FileLock]
    _touched: bool
    _followed: Any
    _changing: Callable[..., AbstractContextManager]
    renew: Callable[[], bool]

    @property
    def fingerprint(self) -> str:
        """Names the encoder that the vectors come from; "" where there are none."""
        return self.database.get("encoder") or ""

    @property
    def entity_vector_length(self) -> int:
        return self.rows.width

    @property
    def in_sync(self) -> bool:
        """Whether every entity has the vectors of its present texts."""
        return not self._touched and not self.database.rows("SELECT 1 FROM dirty LIMIT 1")

    def owners(self) -> np.ndarray:
        """(rows,) int64, the position of the entity that owns each row, -1 where none does."""
        owners = self.rows.owners.copy()
        for first, count in self.database.rows("SELECT first, count FROM dead"):
            owners[first : first + count] = -1
        return owners

    def distinct_texts(self, verbalize: Verbalization) -> DistinctTexts:
        """All texts, each once; only where the vectors are in sync."""
        return DistinctTexts.read(self.entities, verbalize, self.database)

    def sync(self, verbalize: Verbalization, encode: encoding.Encode, fingerprint: str) -> int:
        """Encode what has changed since the last time.

        fingerprint: Names the encoder. Vectors of another encoder are all encoded again.
        RETURNS: The number of texts encoded.
        """
        if self.database.in_transaction:
            raise ValueError(Errors.E026)
        # Where the encoder fails, what was there stays.
        if len(self.rows) and self.fingerprint != fingerprint:
            return self._encode_all(verbalize, encode, fingerprint)
        identity = encoding.identity_of(verbalize)
        stored = self.database.get("verbalization")
        if self._touched and len(self) and (not identity or identity != stored):
            changed = encoding.find_changed(self.entities, verbalize)
            if changed:
                with self._changing(by_hand=False):
                    self.database.many(
                        "INSERT OR IGNORE INTO dirty VALUES (?)", ((p,) for p in changed)
                    )
        self._touched = False
        count = self._encode_dirty(verbalize, encode, fingerprint)
        self._note(encoder=fingerprint, verbalization=identity)
        return count

    def _note(self, **values: str) -> None:
        """Put into the manifest what isn't there yet."""
        if self.path is not None and self._lock is None:
            return  # not worth a copy of a large database
        manifest = self.database.manifest()
        if any(manifest.get(key) != value for key, value in values.items()):
            with self._changing(by_hand=False):
                self.database.set(**values)

    def _encode_dirty(self, verbalize, encode, fingerprint: str) -> int:
        count = 0
        while dirty := encoding.next_dirty(self.entities):
            encoder = encoding.Encoder(encode, self.rows, self.entities)
            try:
                part = encoding.encode_changed(self.entities, dirty, verbalize, encoder)
            except BaseException:
                self._touched = self._touched or not self.in_sync
                raise
            with self._changing(by_hand=False):
                self.entities.bury(part.positions.tolist())
                self._put(part)
                self.database.many("DELETE FROM dirty WHERE position = ?", [(p,) for p in dirty])
                self.database.set(encoder=fingerprint)
            count += encoder.count
        return count

    def _put(self, part: encoding.Encoded) -> None:
        """Add rows within a transaction."""
        vectors, owners = encoding.as_stored(part.vectors, self.rows.dtype), part.owners
        start = self.database.get("rows")
        encoding.store_layout(self.database, start, part)
        self.database.set(rows=start + len(owners), width=vectors.shape[1] or self.rows.width)
        self.layout += 1
        if not len(owners):
            return
        if self.path is None:
            self.database.after_commit(lambda: self.rows.append(vectors, owners))
            return
        files = self._row_files()
        if files is None:
            files = self._new_files(vectors.shape[1])
            self.database.set(files=files.number)
        files.write(start, vectors, owners)
        last = self.database.rows(
            "SELECT vectors, owners FROM block WHERE number = ?", (start // BLOCK,)
        )
        self.database.many(
            "INSERT OR REPLACE INTO block VALUES (?, ?, ?)",
            block_checksums(start, vectors, owners, last[0] if last else (0, 0)),
        )
        mapped, count = files, start + len(owners)
        self.database.after_commit(lambda: setattr(self, "rows", mapped.map(count)))

    def _encode_all(self, verbalize, encode, fingerprint: str) -> int:
        """Fresh vectors for everything, from another encoder."""
        new = VectorRows(dtype=self.rows.dtype)
        files = None if self.path is None or self._lock is None else self._row_files()
        number = files.number + 1 if files else 0
        encoder = encoding.Encoder(encode, new, None)
        parts: List[encoding.Encoded] = []
        blocks: List[Tuple[int, int, int]] = []
        target: Optional[RowFiles] = None
        for chunk in encoding.chunks(self.entities.items()):
            part = encoding.encode_chunk(chunk, verbalize, encoder)
            vectors = encoding.as_stored(part.vectors, new.dtype)
            start = len(new)
            if files:
                target = target or self._new_files(vectors.shape[1], number)
                target.write(start, vectors, part.owners)
                before = blocks[-1][1:] if blocks else (0, 0)
                blocks += block_checksums(start, vectors, part.owners, before)
                new = encoder.rows = target.map(start + len(part.owners))
            else:
                new.append(vectors, part.owners)
            parts.append(part)
        layout = encoding.joined(parts)
        with self._changing(by_hand=False):
            moved = encoding.replace_layout(self.database, layout)
            identity = encoding.identity_of(verbalize)
            self.database.set(encoder=fingerprint, verbalization=identity)
            self.database.set(rows=len(new), width=new.width, index="")
            if files:
                self.database.set(files=number)
                self.database.many("INSERT OR REPLACE INTO block VALUES (?, ?, ?)", blocks)
        if files:
            files.remove()
            if self.index is not None and isinstance(self.index.source, Path):
                self.index.source.unlink(missing_ok=True)
        self.rows, self.index, self._touched, self._followed = new, None, False, None
        self.layout += moved
        return encoder.count

    def keep_index(self, index: AttachedIndex) -> None:
        """Keep a search index over the rows beside them, in place of an older one."""
        if self.path is not None and self._lock is not None:
            manifest = self.database.manifest()
            old = json.loads(manifest["index"] or "null")
            # No number is used twice: a reader may still have the older one in mind.
            number = manifest.get("indexes", 0) + 1
            path = self.path / f"index-{number}{index.about['suffix']}"
            index.write(path)
            with self._changing(by_hand=False):
                self.database.set(index=json.dumps(index.described(path)), indexes=number)
            if old:
                (self.path / old["file"]).unlink(missing_ok=True)
            index = AttachedIndex(index.about, path)
        self.index = index

    def _row_files(self) -> Optional[RowFiles]:
        return folder.row_files(self.path, self.database.manifest()) if self.path else None

    def _new_files(self, width: int, number: int = 1) -> RowFiles:
        assert self.path is not None
        manifest = self.database.manifest()
        return RowFiles(self.path, number, manifest["uuid"], width, self.rows.dtype).create()

    def get_vector(self, entity: str) -> np.ndarray:
        """(width,) float32, the vector of the entity's first text."""
        self.renew()
        position = self.entities.require(entity)
        dirty = self.database.rows("SELECT 1 FROM dirty WHERE position = ?", (position,))
        row = self.database.value(
            "SELECT first FROM owned WHERE position = ? AND count", (position,)
        )
        if dirty or row is None:
            raise ValueError(Errors.E006.format(id=entity))
        return self.rows.take(np.array([row]))[0]

    def get_vectors(self, entities: Iterable[str]) -> List[np.ndarray]:
        return [self.get_vector(entity) for entity in entities]
