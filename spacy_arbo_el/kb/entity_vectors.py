"""The vectors of a knowledge base's entities. Encoded when texts change, and stored with them."""

from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Iterator, List, Optional, Tuple

import numpy as np

from ..encoders.protocol import Text
from ..errors import Errors
from . import encoding, folder
from .editing import EntityEditor
from .manifest import index_entry
from .storage import AttachedIndex, Storage
from .texts import DistinctTexts
from .vectors import VectorFile, VectorRows
from .verbalizations import Verbalization, verbalization_identity


class EntityVectors:
    """The vectors of all texts of all entities.

    storage: The database that says whose the rows are, and the folder they are written to.
    rows: The vectors.
    index: A search index over the rows; None if there is none.
    layout: Grows whenever rows get other numbers.
    epoch: Grows whenever rows are replaced or removed, but not when some are added at the end.
    """

    def __init__(self, storage: Storage, rows: VectorRows):
        self.storage = storage
        self.rows = rows
        self.index: Optional[AttachedIndex] = None
        self.layout = 0
        self.epoch = 0
        self._invalid = False

    def replace(self, rows: VectorRows, index: Optional[AttachedIndex] = None) -> None:
        """Use other vectors from now on: those of another database."""
        self.rows, self.index, self._invalid = rows, index, False
        self.layout += 1
        self.epoch += 1

    def invalidate(self) -> None:
        """Make the next ``sync`` compare all texts again."""
        self._invalid = True

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the vectors' encoder; "" if none."""
        return self.storage.database.get("encoder") or ""

    @property
    def in_sync(self) -> bool:
        """Return whether every entity's vectors are up to date."""
        return not self._invalid and not self.storage.database.rows("SELECT 1 FROM dirty LIMIT 1")

    def owners(self) -> np.ndarray:
        """Position of each row's entity: (rows,) int64. -1 for none."""
        owners = self.rows.owners.copy()
        for first, count in self.storage.database.rows("SELECT first, count FROM dead"):
            owners[first : first + count] = -1
        return owners

    def distinct_texts(self, verbalize: Verbalization) -> DistinctTexts:
        """All texts, each once. The vectors must be in sync."""
        return DistinctTexts.read(self.storage.entities, verbalize, self.storage.database)

    def of_entity(self, entity_id: str) -> np.ndarray:
        """(width,) float32, the vector of the entity's first text.

        KeyError where there is no such entity, ValueError where its vector is not up to date.
        """
        database = self.storage.database
        position = self.storage.entities.require(entity_id)
        dirty = database.rows("SELECT 1 FROM dirty WHERE position = ?", (position,))
        row = database.value("SELECT first FROM owned WHERE position = ? AND count", (position,))
        if dirty or row is None:
            raise ValueError(Errors.E006.format(id=entity_id))
        return self.rows.take(np.array([row]))[0]

    def sync(self, verbalize: Verbalization, encode: encoding.Encode, fingerprint: str) -> int:
        """Encode what has changed since the last time.

        verbalize: The texts of an entity.
        encode: Texts -> (n, width) float32 vectors.
        fingerprint: Identifies the encoder. Where the vectors come from another one, all texts are
            encoded again.
        RETURNS: The number of texts encoded.
        """
        if self.storage.database.in_transaction:
            raise ValueError(Errors.E026)
        # Where the encoder fails, the present vectors stay.
        if self._is_of_another(fingerprint):
            return self._encode_all(verbalize, encode, fingerprint)
        identity = verbalization_identity(verbalize)
        if self._invalid:
            self._mark_changed(verbalize, identity)
        count = self._encode_dirty(verbalize, encode, fingerprint)
        self.storage.put(encoder=fingerprint, verbalization=identity)
        return count

    def to_encode(self, verbalize: Verbalization, fingerprint: str) -> Iterator[List[Text]]:
        """Texts that ``sync`` would encode, batch by batch."""
        entities = self.storage.entities
        if self._is_of_another(fingerprint):
            every = encoding.chunks(entities.items())
            yield from encoding.new_texts(entities, every, verbalize, stored=False)
            return
        if self._invalid:
            self._mark_changed(verbalize, verbalization_identity(verbalize))
        dirty = encoding.dirty_parts(entities, verbalize)
        yield from encoding.new_texts(entities, dirty, verbalize, stored=True)

    def _is_of_another(self, fingerprint: str) -> bool:
        """Return whether the vectors come from another encoder."""
        return len(self.rows) > 0 and self.fingerprint != fingerprint

    def _mark_changed(self, verbalize: Verbalization, identity: str) -> None:
        """Mark entities whose texts differ from those encoded.

        Nothing is compared where these come from the same verbalization.
        """
        # Saved ones may still name two settings that do not exist any more.
        saved = str(self.storage.database.get("verbalization"))
        same = identity and identity == saved.replace(", definition=False, qualifier=False", "")
        if not same and len(self.storage.entities):
            changed = encoding.find_changed(self.storage.entities, verbalize)
            if changed:
                with self.storage.transaction(vectors_only=True):
                    self.storage.database.many(
                        "INSERT OR IGNORE INTO dirty VALUES (?)", ((p,) for p in changed)
                    )
        self._invalid = False

    def _encode_dirty(
        self, verbalize: Verbalization, encode: encoding.Encode, fingerprint: str
    ) -> int:
        """Encode the entities that are marked, some at a time."""
        count = 0
        while dirty := encoding.next_dirty(self.storage.entities):
            encoder = encoding.TextEncoder(encode, self.rows, self.storage.entities)
            try:
                changed = encoding.changed_items(self.storage.entities, dirty, verbalize)
                part = encoding.encode_items(changed, verbalize, encoder)
            except BaseException:
                self._invalid = not self.in_sync
                raise
            with self.storage.transaction(vectors_only=True):
                EntityEditor(self.storage.entities).free_rows(part.positions.tolist())
                self._append(part)
                database = self.storage.database
                database.many("DELETE FROM dirty WHERE position = ?", [(p,) for p in dirty])
                database.set(encoder=fingerprint)
            count += encoder.count
        return count

    def _append(self, part: encoding.EntityVectorRows) -> None:
        """Add rows within a transaction. They are in ``rows`` once it is committed."""
        database, path = self.storage.database, self.storage.path
        vectors, owners = encoding.as_stored(part.vectors, self.rows.dtype), part.owners
        start = database.get("rows")
        encoding.store_layout(database, start, part)
        database.set(rows=start + len(owners), width=vectors.shape[1] or self.rows.width)
        self.layout += 1
        if not len(owners):
            return
        if path is None:
            database.after_commit(partial(self.rows.append, vectors, owners))
            return
        manifest = database.manifest()
        file = folder.vector_file(path, manifest)
        if file is None:
            file = self._new_file(path, vectors.shape[1])
        crc = file.write(start, vectors, manifest["crc"] if start else 0)
        database.set(files=file.number, crc=crc)
        everyone = np.concatenate([self.rows.owners, owners])
        database.after_commit(partial(self._map, file, everyone))

    def _map(self, file: VectorFile, owners: np.ndarray) -> None:
        self.rows = VectorRows(file.map(len(owners)), owners, file.dtype)

    def _encode_all(
        self, verbalize: Verbalization, encode: encoding.Encode, fingerprint: str
    ) -> int:
        """New vectors for all texts, from another encoder."""
        encoder = encoding.TextEncoder(encode, VectorRows(dtype=self.rows.dtype), None)
        database, file = self.storage.database, None
        if self.storage.lock is not None and self.storage.path is not None:
            file = folder.vector_file(self.storage.path, database.manifest())
        with self._removing_leftovers():
            layout, crc = self._encode_into(file, verbalize, encoder)
            rows = encoder.rows
            with self.storage.transaction(vectors_only=True):
                database = self.storage.database
                moved = encoding.replace_layout(database, layout)
                identity = verbalization_identity(verbalize)
                database.set(encoder=fingerprint, verbalization=identity, index="", crc=crc)
                database.set(rows=len(rows), width=rows.width)
                if file:
                    database.set(files=file.number + 1 if len(rows) else 0)
        if file:
            file.path.unlink(missing_ok=True)
            if self.index is not None and isinstance(self.index.source, Path):
                self.index.source.unlink(missing_ok=True)
        self.rows, self.index, self._invalid = rows, None, False
        self.storage.stop_following()
        self.layout += moved
        self.epoch += 1
        return encoder.count

    def _encode_into(
        self, file: Optional[VectorFile], verbalize: Verbalization, encoder: encoding.TextEncoder
    ) -> Tuple[encoding.EntityVectorRows, int]:
        """Encode all entities into ``encoder.rows``, some at a time.

        file: The present file, next to which a new one is written; None for rows in memory.
        RETURNS: The new rows without vectors, and the checksum of the new file.
        """
        parts: List[encoding.EntityVectorRows] = []
        new: Optional[VectorFile] = None
        crc = 0
        for chunk in encoding.chunks(self.storage.entities.items()):
            part = encoding.encode_items(chunk, verbalize, encoder)
            vectors = encoding.as_stored(part.vectors, encoder.rows.dtype)
            parts.append(part)
            if file is None:
                encoder.rows.append(vectors, part.owners)
            elif len(vectors):
                new = new or self._new_file(file.folder, vectors.shape[1], file.number + 1)
                crc = new.write(len(encoder.rows), vectors, crc)
                owners = np.concatenate([encoder.rows.owners, part.owners])
                encoder.rows = VectorRows(new.map(len(owners)), owners, new.dtype)
        return encoding.joined(parts), crc

    def keep_index(self, index: AttachedIndex) -> None:
        """Store a search index beside its rows. It replaces an older one."""
        storage = self.storage
        if storage.path is not None and storage.lock is not None:
            manifest = storage.database.manifest()
            old = index_entry(manifest)
            # No number is used twice: a reader may still refer to the older file.
            number = manifest.get("indexes", 0) + 1
            path = storage.path / f"index-{number}{index.about['suffix']}"
            with self._removing_leftovers():
                entry = index.write(path)
                with storage.transaction(vectors_only=True):
                    storage.database.set(index=entry, indexes=number)
            if old:
                (storage.path / old["file"]).unlink(missing_ok=True)
            index = AttachedIndex(index.about, path)
        self.index = index

    @contextmanager
    def _removing_leftovers(self) -> Iterator[None]:
        """Remove new files whose writing fails."""
        try:
            yield
        except BaseException:
            if self.storage.path is not None and self.storage.lock is not None:
                folder.remove_leftovers(self.storage.path, self.storage.database.manifest())
            raise

    def _new_file(self, path: Path, width: int, number: int = 1) -> VectorFile:
        uuid = self.storage.database.get("uuid")
        return VectorFile(path, number, uuid, width, self.rows.dtype).create()
