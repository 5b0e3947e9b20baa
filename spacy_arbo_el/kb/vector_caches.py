"""Where the vectors of each kind are: in the folder, in the user's cache, or in memory."""

from functools import lru_cache

import numpy as np

from ..base.log import log
from ..storage.locks import ForkableLock
from .folder import Storage
from .vector_cache import VectorCache
from .vector_files import CACHE, VectorFolder, VectorKind, user_cache

# So few texts are encoded anew where there is no folder to keep their vectors in.
FEW = 1000
# Vectors in use of each kind.
MOST_KEPT = 4


class VectorCaches:
    """Vectors in use by kind: in the folder, in the user's cache, or in memory.

    storage: The entities, and their folder.
    count: How many texts they have. Without a folder, vectors of few are kept in memory.
    """

    def __init__(self, storage: Storage):
        self.storage = storage
        self.count = 0
        self._caches: dict[tuple[VectorKind, bool], VectorCache] = {}
        self._user_caches: dict[VectorKind, VectorCache] = {}
        self._making = ForkableLock()

    def clear(self) -> None:
        """Forget all vectors."""
        self._caches.clear()
        self._user_caches.clear()

    def keep(self, cache: VectorCache) -> VectorCache:
        """Use vectors from now on for their kind."""
        self._caches[cache.about, True] = cache
        return cache

    def of(self, kind: str, encoder: str, *, persist: bool = True) -> VectorCache:
        """The vectors of some kind of texts, to look them up and to add some.

        kind: What the texts are, such as "descriptions": lowercase letters.
        persist: Whether others may use the vectors. Those of an encoder in training are not.
        """
        vector_kind = VectorKind(encoder, kind, self.storage.dtype)
        with self._making:
            # An encoder in training has the vectors of another where its weights are the same.
            persist = persist or (vector_kind, True) in self._caches
            key = vector_kind, persist
            if key not in self._caches:
                same = [
                    k for k in self._caches if (k[0].kind, k[1]) == (kind, persist)
                ]
                for old in same[::-1][MOST_KEPT - 1 if persist else 0 :]:
                    del self._caches[old]
                folder = self._place(vector_kind) if persist else None
                self._caches[key] = VectorCache(vector_kind, folder)
            return self._caches[key]

    def _place(self, vector_kind: VectorKind) -> VectorFolder | None:
        place = self.storage.folder
        if place is not None:
            folder = VectorFolder(place)
            if folder.is_writable or folder.has(vector_kind):
                return folder
        return user_cache() if self.count > FEW else None

    def to_fill(self, cache: VectorCache, keys: np.ndarray) -> VectorCache:
        """Vectors of the same kind that texts can be added to, with those of the user's cache.

        keys: (n,) int64, those of all texts.
        """
        missing = cache.missing(keys)
        shared = self._shared(cache) if len(missing) else None
        if shared is not None and cache.folder is not None:
            if cache.folder.is_writable:
                cache.take_over(shared, missing)
            elif len(missing) > FEW:
                shared.take_over(cache, keys)
                cache = self.keep(shared)
        cache.used()
        return cache

    def _shared(self, cache: VectorCache) -> VectorCache | None:
        """Vectors of the same kind in the user's cache; None where that is their place."""
        place = user_cache()
        if cache.folder is None or place is None or cache.folder.path == place.path:
            return None
        if cache.about not in self._user_caches:
            self._user_caches[cache.about] = VectorCache(cache.about, place)
        return self._user_caches[cache.about]


@lru_cache(maxsize=8)
def say_where(folder: VectorFolder) -> None:
    """Log once where vectors are stored."""
    message = "Vectors are kept in %s, at most %d MB. The environment variable %s moves it, or "
    message += "switches it off where it is empty"
    log.info(message, folder.path, folder.most_bytes >> 20, CACHE)
