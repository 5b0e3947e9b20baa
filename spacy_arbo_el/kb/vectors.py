"""The vectors of the entities of a knowledge base that are in use.

They are of one encoder at a time, and found by their texts, see ``vector_cache.py``.
"""

import mmap
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..base.arrays import int_array
from ..base.errors import Errors
from ..encoders.protocol import Text
from ..storage.files import write_file
from .attached_index import AttachedIndex
from .folder import Storage
from .texts import DistinctTexts, TextRows, file_of, texts_of
from .vector_cache import VectorCache
from .vector_caches import MOST_KEPT, VectorCaches, say_where
from .vector_files import VectorFolder, by_use
from .verbalizations import Verbalization, verbalization_identity

Encode = Callable[[list[Text]], np.ndarray]

NAMES = "names"
# Begins the name of vectors by several states of an encoder.
MIXED = "mixed "
# How often texts are encoded into a folder whose files other programs replace meanwhile.
PASSES = 5
# A file of so many times as many texts as there are edits is not written again for these.
FEW_EDITS = 10_000
# The number of rows prepared at a time where all are.
BLOCK = 4096


@dataclass(frozen=True, eq=False)
class VectorRows:
    """Vectors of entities' texts. They may lie in a mapped file, in another order.

    vectors: (v, width) float32 or float16, as they are stored.
    owners: (n,) int64, the position of the entity that each row is of; -1 for a row that is not
        searched.
    places: (n,) int64, where the vector of each row is, -1 for none; None for the same order.
    """

    vectors: np.ndarray = field(
        default_factory=lambda: np.zeros((0, 0), dtype=np.float32)
    )
    owners: np.ndarray = field(default_factory=int_array)
    places: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.owners)

    @property
    def width(self) -> int:
        """The length of a vector; 0 if there are none."""
        return self.vectors.shape[1]

    def stored(self, rows: np.ndarray) -> np.ndarray:
        """Stored vectors of rows (k,), in their type. (k, width)."""
        if self.places is None:
            return self.vectors[rows]
        places = self.places[rows]
        if not len(self.vectors):
            return np.zeros((len(rows), self.width), dtype=self.vectors.dtype)
        vectors = self.vectors[places]
        vectors[places < 0] = 0
        return vectors

    def take(self, rows: np.ndarray) -> np.ndarray:
        """The vectors of rows (k,), (k, width) float32."""
        vectors = self.stored(rows)
        # Torch converts several times as fast.
        return torch.from_numpy(vectors).float().numpy()

    def array(
        self, prepare: Callable[[np.ndarray], np.ndarray] = np.asarray
    ) -> np.ndarray:
        """All rows, (n, width) float32, some at a time through ``prepare``."""
        vectors = np.empty((len(self), self.width), dtype=np.float32)
        for start in range(0, len(self), BLOCK):
            rows = np.arange(start, min(start + BLOCK, len(self)))
            vectors[rows] = prepare(self.take(rows))
        self._release()
        return vectors

    def _release(self) -> None:
        """Release the pages of a mapped file. They are read again when they are needed."""
        base: Any = self.vectors
        while base is not None and not isinstance(base, mmap.mmap):
            base = getattr(base, "base", None)
        if base is not None and hasattr(mmap, "MADV_DONTNEED"):
            base.madvise(mmap.MADV_DONTNEED)


class EntityVectors:
    """The vectors of all texts of all entities.

    epoch: Grows whenever rows are replaced or removed, but not when some are added at the end.
    """

    def __init__(self, storage: Storage):
        self.storage = storage
        self.epoch = 0
        self._earlier: VectorCache | None = None
        self.caches = VectorCaches(storage)
        self._forget()

    def _forget(self) -> None:
        self.caches.clear()
        # All texts, and those that have rows.
        self._texts = self._shown = TextRows()
        self._only: np.ndarray | None = None
        self._verbalize: Verbalization | None = None
        self._cache: VectorCache | None = None
        self._rows = VectorRows()
        self._index: AttachedIndex | None = None
        # The file of texts, and the edits that it has.
        self._saved = "", -1

    def reloaded(self) -> None:
        """Note that the database was replaced. The texts of an earlier state of it are kept."""
        if not self._texts.fits(self.storage.database.manifest()):
            self._forget()

    # State

    @property
    def rows(self) -> VectorRows:
        """The vectors in use; at first those in the folder that were used last."""
        self._look()
        return self._rows

    @property
    def index(self) -> AttachedIndex | None:
        """A search index over the rows; None if there is none."""
        self._look()
        return self._index

    @index.setter
    def index(self, value: AttachedIndex | None) -> None:
        self._index = value

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the vectors' encoder; "" if none."""
        self._look()
        return "" if self._cache is None else self._cache.about.encoder

    @property
    def in_sync(self) -> bool:
        """Return whether every entity's vectors are up to date."""
        return not self._outdated()

    def count_outdated(self) -> int:
        """The number of entities without up-to-date vectors."""
        return len(self.storage.entities.at_all(self._outdated()))

    def _outdated(self) -> list[int]:
        """The entities that were edited after the texts were read."""
        self._look()
        return self.storage.entities.changed_since(self._texts.generation)

    def encoders(self) -> list[str]:
        """Fingerprints of the encoders whose vectors are in the folder, those used last first."""
        place = self.storage.folder
        kinds = [] if place is None else VectorFolder(place).kinds(NAMES)
        return [kind.encoder for kind in kinds]

    def are_of(
        self,
        verbalize: Verbalization,
        fingerprint: str,
        only: np.ndarray | None = None,
    ) -> bool:
        """Return whether the rows are up to date, of these texts and this encoder."""
        return (
            self._only is only
            and self._cache is not None
            and self._cache.about.encoder == fingerprint
            and self._gives_same(verbalize)
            and self.in_sync
        )

    def distinct_texts(self, verbalize: Verbalization) -> DistinctTexts:
        """All texts, each once. The vectors must be in sync."""
        self._look()
        return DistinctTexts(self.storage.entities, verbalize, self._shown.owners)

    def of_entity(self, entity_id: str) -> np.ndarray:
        """(width,) float32 of its first text. KeyError for no entity, ValueError if outdated."""
        position = self.storage.entities.require(entity_id)
        vector = self.of_positions([position]).get(position)
        if vector is None:
            raise Errors.E006(id=entity_id)
        return vector

    def of_positions(self, positions: Sequence[int]) -> dict[int, np.ndarray]:
        """The vectors of entities' first texts, (width,) float32 by position, if up to date."""
        wanted_positions = np.setdiff1d(positions, self._outdated())
        rows_shown = np.flatnonzero(np.isin(self._shown.owners, wanted_positions))
        positions_shown, first = np.unique(
            self._shown.owners[rows_shown], return_index=True
        )
        return dict(zip(positions_shown.tolist(), self.rows.take(rows_shown[first])))

    def _look(self) -> None:
        """Use the vectors in the folder that were used last, unless some are in use."""
        if self._cache is not None:
            return
        place = self.storage.folder
        texts = self._saved_texts(place, "texts-*")
        if place is None or texts is None:
            return
        folder = VectorFolder(place)
        for kind in folder.kinds(NAMES):
            cache = VectorCache(kind, folder)
            if cache.has(texts.keys).any():
                self._use(texts, self.caches.keep(cache))
                return

    # Encoding

    def encode_missing(
        self,
        verbalize: Verbalization,
        encode: Encode,
        fingerprint: str,
        *,
        persist: bool = True,
        keep_old: bool = False,
        only: np.ndarray | None = None,
    ) -> int:
        """Encode the texts that this encoder has no vector for.

        encode: Texts -> (n, width) float32 vectors.
        persist: Whether others may use the vectors. Those of an encoder in training are not kept.
        keep_old: Whether texts keep the vectors in use, whatever encoder they are of.
        only: (positions,) bool, the entities that have rows; None for all.
        RETURNS: The number of texts encoded.
        """
        if self.storage.database.in_transaction:
            raise Errors.E026()
        texts = self._current_texts(verbalize)
        keys = texts.keys[texts.live]
        count = 0
        self.caches.count = len(texts.keys)
        self._look()
        cache = self._cache if keep_old else None
        if cache is None:
            cache = self.caches.of(NAMES, fingerprint, persist=persist)
        if self._earlier is not None and self._earlier.about == cache.about:
            cache.take_over(self._earlier, keys)
        cache = self.caches.to_fill(cache, keys)
        chosen = texts.limited_to(only)
        lacking = chosen.live & ~cache.has(chosen.keys)
        if cache.about.encoder != fingerprint and lacking.any():
            # What joins older vectors is not stored under the name of their encoder.
            older = cache
            cache = self.caches.of(NAMES, MIXED + fingerprint, persist=False)
            cache.take_over(older, keys)
        # Again where another program has replaced the files meanwhile; in the end in memory.
        for passes_left in range(PASSES, 0, -1):
            lacking = chosen.live & ~cache.has(chosen.keys)
            if not lacking.any():
                break
            if passes_left == 1:
                cache = self.caches.keep(VectorCache(cache.about))
                lacking = chosen.live
            for new in texts_of(self.storage.entities, verbalize, chosen, lacking):
                with cache.filling():
                    keys = cache.missing(int_array(list(new)))
                    if len(keys):
                        cache.put(keys, encode([new[key] for key in keys.tolist()]))
                        count += len(keys)
        if count and cache.folder is not None and cache.folder.most_bytes:
            say_where(cache.folder)
        self._use(texts, cache, only)
        self._verbalize = verbalize
        self._earlier = None
        self._save_texts(texts)
        return count

    def reuse_vectors_of(self, earlier: "EntityVectors") -> None:
        """Use the vectors of a knowledge base that this one replaces, where texts are the same."""
        self._earlier = earlier._cache

    def _current_texts(self, verbalize: Verbalization) -> TextRows:
        texts = self._texts
        if not self._gives_same(verbalize):
            identity = verbalization_identity(verbalize)
            saved = self._saved_texts(self.storage.folder, file_of(identity))
            texts = saved or TextRows(identity=identity)
        return texts.updated(self.storage.entities, verbalize)

    def _gives_same(self, verbalize: Verbalization) -> bool:
        if self._cache is None or verbalize is self._verbalize:
            return self._cache is not None
        identity = verbalization_identity(verbalize)
        return identity != "" and identity == self._texts.identity

    def _saved_texts(self, place: Path | None, pattern: str) -> TextRows | None:
        """The texts in a folder, those used last; None without any of this database."""
        if place is None:
            return None
        manifest = self.storage.database.manifest()
        for path in by_use(place, pattern):
            with suppress(OSError, ValueError):
                texts = TextRows.from_bytes(path.read_bytes())
                if path.name == file_of(texts.identity) and texts.fits(manifest):
                    self._saved = path.name, texts.generation
                    return texts
        return None

    def _use(
        self, every_text: TextRows, cache: VectorCache, only: np.ndarray | None = None
    ) -> None:
        texts = every_text
        is_same_encoder = self._cache is not None and self._cache.about == cache.about
        is_other = self._cache is not None and not is_same_encoder
        # Without any vector, the width of rows is not known.
        if is_other or not every_text.live.any():
            texts = every_text = every_text.compacted()
        if only is not None:
            texts = every_text.limited_to(only).compacted()
        extends = is_same_encoder and texts.extends(self._shown)
        vectors, places, readable = cache.locate(texts.keys)
        owners = np.where(readable, texts.owners, -1)
        self._rows = VectorRows(vectors, owners, places)
        self._texts = every_text
        self._shown = texts
        self._cache = cache
        self._only = only
        if not extends:
            self.epoch += 1
            self._index = None
            if self.storage.folder is not None:
                self._index = AttachedIndex.read(
                    self.storage.folder, cache.about, texts.keys
                )

    # Folders and bytes

    def _save_texts(self, texts: TextRows) -> None:
        """Write the texts beside their vectors, so that they need not be read from the entities."""
        place = self.storage.folder
        if place is None or not texts.identity or not self.storage.is_unedited:
            return
        path = place / file_of(texts.identity)
        if self._saved[0] == path.name:
            since = self.storage.entities.changed_since(self._saved[1])
            # The next program takes in a few edits by itself.
            if len(since) <= len(texts.keys) // FEW_EDITS:
                return
        with suppress(OSError):
            write_file(path, texts.to_bytes())
            self._saved = path.name, texts.generation
            for old in by_use(place, "texts-*")[MOST_KEPT:]:
                old.unlink(missing_ok=True)

    def keep_index(self, index: AttachedIndex) -> None:
        """Store a search index beside its rows. It replaces an older one."""
        place = self.storage.folder
        if place is not None and self._cache is not None:
            self._saved = "", -1
            self._save_texts(self._texts)
            index = index.write(place, self._cache.about, self._shown.keys)
        self._index = index

    def write(self, path: Path, uuid: str) -> None:
        """Write the rows and the index in use into the folder of a knowledge base with a uuid."""
        self.write_rows(path, uuid)
        if self._index is not None and self._cache is not None:
            with suppress(FileNotFoundError):  # another program may have replaced it
                self._index.write(path, self._cache.about, self._shown.keys)

    def write_rows(self, path: Path, uuid: str) -> None:
        """Write the rows in use, as ``write``."""
        self._look()
        texts = self._texts
        cache = self._cache
        if cache is None:
            return
        keys = np.unique(texts.keys[texts.live])
        VectorCache(cache.about, VectorFolder(path)).take_over(cache, keys)
        (path / f"{cache.about.name}.lock").unlink(missing_ok=True)
        if texts.identity:
            data = replace(texts, uuid=uuid).to_bytes()
            write_file(path / file_of(texts.identity), data)

    def read(self, folder: Path) -> None:
        """Copy the rows that ``write_rows`` wrote into a folder, which is removed then."""
        self._forget()
        texts = self._saved_texts(folder, "texts-*")
        files = VectorFolder(folder)
        if texts is None:
            return
        for kind in files.kinds(NAMES):
            cache = self.caches.keep(VectorCache(kind))
            cache.take_over(
                VectorCache(kind, files), np.unique(texts.keys[texts.live])
            )
            self._use(texts, cache)
