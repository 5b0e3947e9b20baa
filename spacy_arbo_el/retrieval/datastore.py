"""The encoded entities and exemplars, searched for mentions."""

import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import numpy as np
from spacy.vocab import Vocab

from ..base.errors import Warnings
from ..base.log import log
from ..encoders.dual import DualEncoder
from ..kb.knowledge_base import ArboKB
from ..kb.loaders import load_kb
from ..kb.respelling import respelled
from ..mentions.normalization.text import Normalizer
from ..names.spellings import folded
from ..storage.locks import RevisionCache
from .entity_texts import MIN_LOGGED, encode_texts
from .exemplars import ExemplarStore
from .settings import RetrieverBuilder, RetrieverSettings
from .snapshot import Revision, Snapshot

T = TypeVar("T")


class Datastore:
    """A knowledge base and exemplars with vectors of the current encoder.

    ``snapshot`` gives a state that is up to date and does not change while it is used: edits by
    other threads wait, and reading threads do not wait for each other. Edits happen in ``editing``.
    Both use the ``guard`` of the knowledge base, so that ``kb.add`` and the like wait too.

    ``refresh`` brings the vectors up to date. It costs a hash of the weights where nothing has
    changed, and encodes only what it must.

    encoder: Encodes entities and exemplars. It may be replaced.
    settings: The texts, the similarity and the search.
    normalizer: Normalizes surface forms; None to keep them.
    kb: The knowledge base.
    exemplars: The exemplar store.
    """

    def __init__(
        self,
        vocab: Vocab,
        encoder: DualEncoder,
        settings: RetrieverSettings,
        normalizer: Normalizer | None = None,
    ):
        self.vocab = vocab
        self.encoder = encoder
        self.settings = settings
        self.normalizer = normalizer
        self.kb = ArboKB(vocab)
        self.exemplars = ExemplarStore()
        self._derived = RevisionCache()
        self._builder = RetrieverBuilder(settings)
        self._snapshot: Snapshot | None = None
        # (positions,) bool, the entities that are searched; None for all.
        self.only: np.ndarray | None = None

    @property
    def revision(self) -> Revision:
        """The present state. It is another one whenever an entity or an exemplar is."""
        exemplars = self.exemplars
        return Revision(self.kb, self.kb.edits, exemplars, exemplars.version)

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """Hold the present state, with up-to-date vectors.

        Edits in the block are an error. A block within the block gives the same.
        """
        guard = self.kb.guard
        if self._snapshot and guard.is_reading and not guard.is_writing:
            # It stays, even if a file changes.
            yield self._snapshot
            return
        while True:
            kb = self.kb
            # Most often nothing has changed, and other readers need not be kept out.
            with kb.guard.reading():
                if self._snapshot and kb is self.kb and self._is_fresh:
                    yield self._snapshot
                    return
            with kb.guard.reading_after(partial(self._refresh, kb)) as snapshot:
                if snapshot is not None:
                    yield snapshot
                    return

    @contextmanager
    def editing(self) -> Iterator[None]:
        """Hold the datastore for changes, without readers."""
        while True:
            kb = self.kb
            with kb.guard.writing():
                if kb is self.kb:
                    yield
                    return

    def derived(self, name: Hashable, build: Callable[[], T]) -> T:
        """A cached value of entities and exemplars. It does not depend on vectors, and is made when
        they change.

        name: What the value is, and all settings that it depends on.
        build: Makes the value.
        """
        return self._derived.get(name, self.revision, build)

    def has_type(self, name: str) -> bool:
        """Return whether an entity has this type."""
        return name in self.derived(
            "types", lambda: frozenset(self.kb.entities.type_counts())
        )

    def named(self, strings: Iterable[str]) -> dict[str, int]:
        """Find the strings that are names of entities.

        RETURNS: For each of them the most words of another name that such an entity has.
        """
        kb = self.kb
        with kb.guard.reading():
            positions_of = kb.entities.with_names(strings)
            named = kb.entities.at_all(
                {position for places in positions_of.values() for position in places}
            )
        words = {}
        for string, places in positions_of.items():
            names = (name for place in places for name in named[place].names)
            word_counts = (
                len(name.split()) for name in names if folded(name) != folded(string)
            )
            words[string] = max(word_counts, default=0)
        return words

    def respelled(self, strings: Sequence[str], written: Sequence[str]) -> list[str]:
        """Names of the knowledge base that mentions are in another spelling; see ``respelled``."""
        return respelled(self.kb.entities, strings, written)

    # Edits

    def set_kb(self, source: Any) -> None:
        """Replace the knowledge base. source: See ``kb.loaders.load_kb``."""
        kb = load_kb(source, self.vocab)
        with self.editing():
            kb.vectors.reuse_vectors_of(self.kb.vectors)
            self.kb = kb

    # Vectors

    @property
    def _is_fresh(self) -> bool:
        return (
            self._snapshot is not None
            and self._snapshot.revision == self.revision
            and self.exemplars.fingerprint == self.encoder.fingerprint
            and not self.kb.has_changed_outside
            and self._is_encoded
        )

    @property
    def _is_encoded(self) -> bool:
        texts = self.settings.verbalization, self.encoder.text_fingerprint
        return self.kb.vectors.are_of(*texts, self.only)

    def refresh(self) -> Snapshot:
        """Encode what lacks current vectors. RETURNS: The present state."""
        with self.snapshot() as snapshot:
            return snapshot

    def _refresh(self, kb: ArboKB) -> Snapshot | None:
        """The present state; None where another knowledge base has taken the place of one."""
        if kb is not self.kb:
            return None
        start = time.perf_counter()
        self.kb.reload_if_changed()
        if self._snapshot and self._snapshot.revision != self.revision:
            self._snapshot = None
        encoder = self.encoder
        n_texts = 0
        if not self._is_encoded:
            n_texts = self._encode_entities()
        n_mentions = self.exemplars.sync(encoder.encode_mentions, encoder.fingerprint)
        if n_mentions:
            self._snapshot = None
        if n_texts + n_mentions > MIN_LOGGED:
            seconds = time.perf_counter() - start
            message = "Encoded %d entity texts and %d exemplars in %.1f s"
            log.info(message, n_texts, n_mentions, seconds)
        if self._snapshot is None:
            self._snapshot = Snapshot(
                self.revision,
                self._builder.build(self.kb, self.exemplars),
                encoder,
                self.settings,
                self.normalizer,
                self._derived,
            )
        return self._snapshot

    def _encode_entities(self, keep_old: bool = False) -> int:
        """Encode the entities that lack vectors. RETURNS: The number of texts encoded."""
        self._snapshot = None
        encoder = self.encoder
        return self.kb.encode_missing(
            self.settings.verbalization,
            partial(encode_texts, encoder),
            encoder.text_fingerprint,
            persist=not encoder.is_trained,
            keep_old=keep_old,
            only=self.only,
        )

    def encode_exemplars(self) -> None:
        """Encode the exemplars that lack vectors; those of entities stay as they are."""
        with self.editing():
            self.exemplars.sync(self.encoder.encode_mentions, self.encoder.fingerprint)
            self._snapshot = None

    def encode_missing(self) -> None:
        """Encode what has no vector, and keep older vectors. Training uses this."""
        with self.editing():
            encoder = self.encoder
            self._encode_entities(keep_old=True)
            self.exemplars.sync(
                encoder.encode_mentions, encoder.fingerprint, keep_old=True
            )

    @contextmanager
    def limited_to(self, positions: np.ndarray | None) -> Iterator[None]:
        """Encode and search some entities alone, as evaluations in a training do.

        positions: (positions,) bool; None for all. No entities may be added in the block.
        """
        before = self.only
        self.only = positions
        try:
            yield
        finally:
            self.only = before

    def warn_of_unknown_ids(self) -> None:
        """Warn of gold ids of exemplars that no entity has."""
        records = self.exemplars.records
        ids = {kb_id: None for record in records for kb_id in record.kb_ids}
        positions = self.kb.entities.positions_of(list(ids))
        unknown = [kb_id for kb_id, position in zip(ids, positions) if position < 0]
        if unknown and not self.kb.is_empty():
            examples = ", ".join(unknown[:5]) + (", …" if len(unknown) > 5 else "")
            Warnings.W501.warn(count=len(unknown), some=examples)
