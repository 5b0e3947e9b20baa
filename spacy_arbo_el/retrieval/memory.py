"""What mentions are compared with: the knowledge base and the exemplars, encoded."""

import time
import warnings
from dataclasses import replace
from typing import Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np
from spacy.vocab import Vocab

from ..encoders.encoding import DualEncoding
from ..encoders.sequences import Sequences
from ..errors import Errors, Warnings
from ..kb.knowledge_base import ArboKB
from ..kb.lookup import Lookup
from ..kb.vectors import VectorRows
from ..kb.verbalizations import Verbalization
from ..log import log
from ..rewriting.text import Rewrite
from .candidates import Strings, gather_candidates
from .corrections import Asked, Corrections
from .entities import EntitySearch, Types
from .exemplars import ExemplarStore, Labelled
from .index import BuildIndex, Index
from .lexical import BuildLexicon
from .neighbours import Neighbours, Retriever
from .representatives import representatives
from .similarity import Similarity

# Fewer vectors than these are encoded without a word.
WORTH_A_LINE = 1000


class Memory:
    """A knowledge base and an exemplar store whose vectors are those of the present encoder.

    ``refresh`` brings the vectors up to date; it costs a hash of the weights where nothing has
    changed, and encodes only what it must.

    structure: A number that grows whenever entities or exemplars come, change or go.
    """

    def __init__(
        self,
        vocab: Vocab,
        encoding: DualEncoding,
        verbalization: Verbalization,
        similarity: Similarity,
        index: BuildIndex,
        lexicon: Optional[BuildLexicon] = None,
        rewrite: Optional[Rewrite] = None,
        lookup: Optional[Lookup] = None,
        max_exemplars: int = 0,
    ):
        self.vocab = vocab
        self.encoding = encoding
        self.verbalization = verbalization
        self.similarity = similarity
        self.index = index
        self.kb = ArboKB(vocab)
        self.exemplars = ExemplarStore()
        self.corrections = Corrections()
        self.build_lexicon = lexicon
        self.rewrite = rewrite
        self.lookup = lookup
        self.max_exemplars = max_exemplars
        self.structure = 0
        self._edits = self.kb.edits
        self._strings: Optional[Tuple[int, Strings]] = None
        self._types: Optional[Tuple[int, Dict[str, np.ndarray]]] = None
        self._exemplars: Optional[Tuple[np.ndarray, np.ndarray, Index]] = None
        self._retriever: Optional[Retriever] = None

    def set_kb(self, kb_loader: Callable[[Vocab], ArboKB], *, reencode: bool) -> None:
        """Take over a knowledge base; foreign vectors are an error unless ``reencode``."""
        if not callable(kb_loader):
            raise ValueError(Errors.E502.format(got=type(kb_loader).__name__))
        kb = kb_loader(self.vocab)
        if not isinstance(kb, ArboKB):
            raise ValueError(Errors.E503.format(got=type(kb).__name__))
        if not reencode:
            self._check_fingerprint(kb)
        self.kb = kb
        # Its texts may have been made by another verbalization.
        self.kb.touch()
        self.changed()

    def store(
        self,
        items: Sequence[Labelled],
        windows: Sequences,
        vectors: Optional[np.ndarray] = None,
    ) -> np.ndarray:
        """Keep labelled mentions as exemplars; their rows in the store.

        vectors: (len(items), width) float32 of the present encoder, where they are known.
        """
        version = self.exemplars.version
        rows = self.exemplars.extend(items, windows, vectors)
        if self.exemplars.version != version:
            self.changed()
        return rows

    @property
    def is_current(self) -> bool:
        """Whether the knowledge base is as it was when it was last looked at."""
        return self.kb.in_sync and self.kb.edits == self._edits

    def changed(self) -> None:
        """Entities or exemplars have come, changed or gone."""
        self.structure += 1
        self._retriever = None

    def loaded(self) -> None:
        """Everything was read anew: check that it belongs together."""
        self.encoding.changed()
        self.changed()
        self._check_fingerprint(self.kb)
        if self.encoding.is_ready:
            # The config given on loading may verbalize otherwise; texts that stay are not encoded.
            self.kb.touch()
            self.refresh()

    def _check_fingerprint(self, kb: ArboKB) -> None:
        if kb.fingerprint and self.encoding.is_ready:
            found, expected = kb.fingerprint, self.encoding.fingerprint
            if found != expected:
                raise ValueError(Errors.E011.format(found=found, expected=expected))

    def refresh(self) -> Retriever:
        """Encode entities and exemplars whose vectors are not those of the present encoder.

        RETURNS: The search over them.
        """
        fingerprint = self.encoding.fingerprint
        start, texts = time.perf_counter(), 0
        if self.kb.renew():
            self._check_fingerprint(self.kb)
        if not self.is_current:
            self.changed()
        if not self.kb.in_sync or self.kb.fingerprint != fingerprint:
            layout = self.kb.layout
            texts = self.kb.sync(self.verbalization, self.encoding.encode_texts, fingerprint)
            self.structure += self.kb.layout != layout
            self._retriever = None
        self._edits = self.kb.edits
        mentions = self.exemplars.sync(self.encoding.encode_windows, fingerprint)
        if mentions:
            self._retriever = None
        if texts + mentions > WORTH_A_LINE:
            seconds = time.perf_counter() - start
            message = "Encoded %d entity texts and %d stored mentions in %.1f s"
            log.info(message, texts, mentions, seconds)
        if self._retriever is None:
            self._retriever = self._build_retriever()
        return self._retriever

    def complete(self) -> None:
        """Encode what has no vector yet, and leave older vectors as they are: for training."""
        encode = self.encoding
        self.kb.sync(self.verbalization, encode.encode_texts, self.kb.fingerprint)
        self.exemplars.sync(encode.encode_windows, self.exemplars.fingerprint)
        self._edits = self.kb.edits
        self._retriever = None

    def _build_retriever(self) -> Retriever:
        entity = self.exemplars.entities(self.kb.entities.positions_of)
        usable = np.flatnonzero(representatives(self.exemplars.vectors, entity, self.max_exemplars))
        texts = self.index(self.kb.rows, self.similarity, self.kb.index)
        self.kb.index = texts.attached
        return Retriever(
            EntitySearch(self.kb.rows, self.kb.owners(), texts, self.similarity),
            self._exemplar_index(usable),
            usable,
            entity[usable],
            self.similarity,
        )

    def _exemplar_index(self, usable: np.ndarray) -> Index:
        """The index over exemplars; the one there is where nothing has changed for them."""
        vectors, before = self.exemplars.vectors, self._exemplars
        if before is None or before[0] is not vectors or not np.array_equal(before[1], usable):
            rows = VectorRows(vectors[usable], usable)
            before = self._exemplars = (vectors, usable, self.index(rows, self.similarity, None))
        return before[2]

    def types(self, labels: Sequence[str]) -> Types:
        """Which entities mentions with these labels may be linked to: those of a type of the same
        name, and those without a type."""
        if self._types is None or self._types[0] != self.structure:
            self._types = (self.structure, {})
        masks = self._types[1]
        distinct = {label: number for number, label in enumerate(dict.fromkeys(labels))}
        for label in distinct:
            if label not in masks:
                masks[label] = np.zeros(self.kb.entities.positions, dtype=bool)
                masks[label][self.kb.entities.of_types([label])] = True
        number = np.array([distinct[label] for label in labels], dtype=np.int64)
        allowed = np.zeros((len(distinct), self.kb.entities.positions), dtype=bool)
        for label, row in distinct.items():
            allowed[row] = masks[label]
        return Types(number, allowed)

    def named(self, strings: Sequence[str]) -> Optional[np.ndarray]:
        """Entities that go by mentions' strings, where a lookup was asked for."""
        return None if self.lookup is None else self.lookup(self.kb.entities, strings)

    def weigh_up(
        self, neighbours: Neighbours, forms: Sequence[str], types: Optional[Types] = None
    ) -> Neighbours:
        """Add all that speaks for the likeliest entities; see ``candidates.py``.

        forms: What is read for each of the mentions. types: Which entities each may be linked to.
        """
        if self.build_lexicon is None or not len(neighbours) or not len(self.kb):
            return neighbours
        if self._strings is None or self._strings[0] != self.structure:
            # Strings do not change with the encoder's weights.
            self._strings = (self.structure, self._read_strings(self.build_lexicon))
        candidates = gather_candidates(neighbours, forms, self._strings[1], types)
        return replace(neighbours, candidates=candidates)

    def correct(self, neighbours: Neighbours, asked: Asked) -> Neighbours:
        """Neighbours that leave corrected mentions no other choice."""
        return self.corrections.apply(
            neighbours, asked, self.exemplars, self.kb.entities.positions_of
        )

    def _read_strings(self, build: BuildLexicon) -> Strings:
        count = self.kb.entities.positions
        forms: List[List[str]] = [[] for _ in range(count)]
        owner = self.exemplars.entities(self.kb.entities.positions_of)
        for entity, item in zip(owner.tolist(), self.exemplars.items):
            if entity >= 0:
                # As it stands in the text, and as it is read.
                forms[entity] += [item.text, item.form or item.text]
        names: List[List[str]] = [[] for _ in range(count)]
        nameless = np.zeros(count, dtype=bool)
        for position, known in self.kb.entities.items():
            names[position] = [*known.names, *self._as_read(known.names)]
            if known.names == [known.id] and forms[position]:
                nameless[position] = True
                names[position] += forms[position]
        return Strings(build(names, forms), np.array([bool(some) for some in forms]), nameless)

    def _as_read(self, names: Sequence[str]) -> List[str]:
        """Names in the words that mentions are read in, so that they stay alike."""
        if self.rewrite is None:
            return []
        whole = (np.array([[0, len(name)]], dtype=np.int64) for name in names)
        return [self.rewrite(name, offsets)[0] for name, offsets in zip(names, whole)]

    def warn_of_unknown_ids(self) -> None:
        """Say which gold ids of exemplars no entity has."""
        ids = [kb_id for item in self.exemplars.items for kb_id in item.kb_ids]
        ids = list(dict.fromkeys(ids))
        places = self.kb.entities.positions_of(ids)
        unknown = [kb_id for kb_id, place in zip(ids, places) if place < 0]
        if unknown and not self.kb.is_empty():
            some = ", ".join(unknown[:5]) + (", …" if len(unknown) > 5 else "")
            warnings.warn(Warnings.W501.format(count=len(unknown), some=some))
