"""Trains the dual encoder: a batch gives queries, targets, a loss and gradients."""

import hashlib
import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import (
    Any,
)

import numpy as np
from thinc.api import Model, Optimizer

from ..base.arrays import int_array
from ..base.errors import ArboError, Errors, Warnings
from ..base.log import log
from ..base.memory import release_memory
from ..encoders.dual import TOWERS
from ..encoders.inputs import SpanInputs
from ..kb.texts import DistinctTexts
from ..retrieval.datastore import Datastore
from ..retrieval.snapshot import Revision
from .cache import EmbeddingCache
from .held_out import HeldOut
from .losses import LearnsScale
from .objective import TrainingObjective
from .refresh import CacheRefresh, refresh_texts
from .step import Term, train_step
from .table import GoldTable


@dataclass(frozen=True)
class _TrainingData:
    """Data that training derives from the datastore.

    revision: The state of the datastore that it belongs to.
    entities: The state of the knowledge base that it belongs to.
    texts: The distinct texts of the knowledge base.
    text_inputs: The same, tokenized.
    table: The gold labels of the exemplars.
    cache: The vectors of texts and exemplars on which positives and negatives are chosen.
    """

    revision: Revision
    entities: Hashable
    texts: DistinctTexts
    text_inputs: SpanInputs
    table: GoldTable
    cache: EmbeddingCache


class TrainingDiverged(ArboError):
    """The loss is no number any more."""


class Trainer:
    """Trains the dual encoder on the datastore's exemplars.

    Entities and exemplars may be added in the middle of training. The cached vectors of the
    others stay unchanged until the next refresh.

    name: The name of the component, for errors.
    model: The dual encoder.
    datastore: The knowledge base and the exemplars.
    objective: How queries, positives and negatives are chosen, the loss, and when texts and
        mentions are encoded again.
    seen: The number of queries trained on since the last refresh, of the first objective.
    total: The number of mentions trained on.
    """

    def __init__(
        self,
        name: str,
        model: Model,
        datastore: Datastore,
        objective: TrainingObjective,
    ):
        for number, term in enumerate(objective.terms):
            if isinstance(term.loss, LearnsScale):
                term.loss.attach(model, number)
        self.name = name
        self.model = model
        self.datastore = datastore
        self.objective = objective
        self.seen = 0
        self.total = 0
        self._data: _TrainingData | None = None

    @property
    def refresh(self) -> CacheRefresh:
        """Refreshes, in which texts and mentions are encoded again."""
        return self.objective.refresh or CacheRefresh()

    @property
    def held_out(self) -> HeldOut:
        """The exemplars that the encoder is not trained on."""
        share = max(term.held_out for term in self.objective.terms)
        return HeldOut.of(self.datastore.exemplars.records, share)

    @property
    def needs_mentions(self) -> bool:
        """Return whether steps without mentions train nothing."""
        return all(term.chosen_queries.needs_mentions for term in self.objective.terms)

    def step(self, rows: np.ndarray) -> tuple[float, int]:
        """Compute the gradients of a batch of mentions.

        rows: (b,) int64, their rows in the exemplar store. There may be none where the queries are
            names.
        RETURNS: The loss, and the number of queries that had a positive.
        """
        if not self.datastore.encoder.is_ready:
            raise Errors.E504(name=self.name)
        data = self._current_data()
        mentions = np.unique(rows[data.table.cluster[rows] >= 0])
        terms = self._terms(mentions, data)
        if not terms:
            return 0.0, 0
        loss, encoded = train_step(
            self.model,
            terms,
            data.text_inputs,
            self.datastore.exemplars.inputs,
            data.cache.similarity,
        )
        if not np.isfinite(loss):
            raise TrainingDiverged(Errors.E607.format(name=self.name, loss=loss))
        if self.refresh.on_the_fly:
            data.cache.update_texts(encoded.texts, encoded.text_vectors)
            data.cache.update_mentions(encoded.mentions, encoded.mention_vectors)
        self.total += len(mentions)
        return loss, sum(len(term.batch.queries) for term in terms)

    def _current_data(self) -> _TrainingData:
        """Data of the present datastore, refreshed if due."""
        datastore = self.datastore
        data = self._data
        if data is None:
            datastore.refresh()
            self.seen, self._data = 0, self._read_datastore()
            return self._data
        data = self._extended(data)
        if self.refresh.is_due(self.seen):
            self.seen = 0
            self._encode_again(data)
        return data

    def _encode_again(self, data: _TrainingData) -> None:
        """Encode what may be a candidate or a negative with the present encoder."""
        datastore = self.datastore
        start = time.perf_counter()
        release_memory()
        datastore.encode_exemplars()

        def encode(rows: np.ndarray) -> np.ndarray:
            return datastore.encoder.encode_texts(data.text_inputs.take(rows))

        arguments = data.cache, data.table, datastore.exemplars.vectors, encode
        if self.needs_mentions:
            # Not the global generator: a resumed run draws the same numbers from that.
            count = refresh_texts(
                *arguments, np.random.default_rng(data.cache.refreshes)
            )
        else:
            # Any text may be a query.
            count = data.table.n_texts
            data.cache.load(encode(np.arange(count)), datastore.exemplars.vectors)
        data.cache.refreshes += 1
        seconds = time.perf_counter() - start
        message = "Encoded %d of %d texts and all mentions again in %.1f s"
        log.info(message, count, data.table.n_texts, seconds)
        release_memory()

    def _terms(self, mentions: np.ndarray, data: _TrainingData) -> list[Term]:
        """The objectives that have queries in this step."""
        table = data.table
        terms = []
        for number, objective in enumerate(self.objective.terms):
            queries = objective.chosen_queries(mentions, table)
            self.seen += len(queries) if number == 0 else 0
            batch = objective.targets(queries, table, data.cache)
            if len(batch.queries):
                terms.append(Term(batch, objective.loss, objective.weight, number))
        return terms

    def _extended(self, data: _TrainingData) -> _TrainingData:
        """Data of the present datastore, keeping older cached vectors."""
        datastore = self.datastore
        if data.revision != datastore.revision:
            datastore.encode_missing()
            data = self._data = self._read_datastore(data, keep=True)
        return data

    def _read_datastore(
        self, earlier: _TrainingData | None = None, keep: bool = False
    ) -> _TrainingData:
        """The data of the present datastore.

        earlier: Its texts are reused for unchanged entities.
        keep: Whether vectors of ``earlier`` stay as they were cached.
        """
        datastore = self.datastore
        kb = datastore.kb
        exemplars = datastore.exemplars
        settings = datastore.settings
        entities = kb, kb.edits, kb.vectors.epoch, settings.verbalization
        if earlier is not None and earlier.entities == entities:
            texts = earlier.texts
            inputs = earlier.text_inputs
        else:
            texts = kb.vectors.distinct_texts(settings.verbalization)
            inputs = datastore.encoder.read_texts(texts.texts)
        # What is held out is no target either.
        held_out = self.held_out.keys
        records = [
            replace(record, kb_ids=()) if record.key in held_out else record
            for record in exemplars.records
        ]
        table = GoldTable(records, kb, texts, inputs.lengths[inputs.passage])
        cache = EmbeddingCache(
            settings.similarity, kb.rows.take(texts.rows), exemplars.vectors
        )
        if earlier is not None:
            rows = _rows_of(earlier.texts.texts, texts.texts)
            cache.follow(
                earlier.cache,
                rows,
                _rows_of(earlier.table.records, table.records),
                keep,
            )
        return _TrainingData(datastore.revision, entities, texts, inputs, table, cache)

    # Checkpoints

    def fingerprint(self) -> str:
        """A hash of what training depends on: the entities, the exemplars and the encoder."""
        datastore = self.datastore
        digest = hashlib.blake2b(digest_size=16)
        digest.update(datastore.encoder.fingerprint.encode("utf8"))
        # An entity's own ``repr`` is shortened.
        entities = (entity.to_dict() for entity in datastore.kb)
        for value in chain(entities, datastore.exemplars.records):
            digest.update(repr(value).encode("utf8", "surrogatepass"))
        return digest.hexdigest()

    def state(self) -> dict[str, int]:
        """State of training, for a checkpoint."""
        refreshes = self._data.cache.refreshes if self._data is not None else 0
        return {"seen": self.seen, "total": self.total, "refreshes": refreshes}

    def restore(self, state: Mapping[str, int]) -> None:
        """Continue from there with weights that were loaded. Cached vectors are rebuilt."""
        self._data = None
        encoder: Any = self.datastore.encoder
        encoder.weights_changed(trained=True)
        if state["total"]:
            self.datastore.refresh()
            self._data = self._read_datastore()
            self._data.cache.refreshes = state["refreshes"]
        self.seen = state["seen"]
        self.total = state["total"]


def _rows_of(old: Sequence[Hashable], new: Sequence[Hashable]) -> np.ndarray:
    """The place of each value in ``old``: (len(new),) int64, -1 for nowhere."""
    if list(new[: len(old)]) == list(old):
        # Most often, values were only added.
        rows = np.arange(len(new))
        return np.where(rows < len(old), rows, -1)
    place = {value: row for row, value in enumerate(old)}
    return int_array([place.get(value, -1) for value in new])


# Transformers are fine-tuned with 1e-5 to 2e-4. spaCy's default is 1e-3.
LIMIT = 5e-4
# The identities of optimizers: they can be neither hashed by content nor referred to weakly.
_warned_of: set[int] = set()


def warn_of_high_rate(name: str, model: Model, optimizer: Optimizer) -> None:
    """Warn, once for an optimizer, of learning rates too high for pretrained encoders."""
    rate = getattr(optimizer, "learn_rate", 0.0)
    is_high = isinstance(rate, (int, float)) and rate > LIMIT
    if not is_high or not any(
        model.get_ref(tower).attrs.get("pretrained") for tower in TOWERS
    ):
        return
    if id(optimizer) not in _warned_of:
        _warned_of.add(id(optimizer))
        Warnings.W530.warn(name=name, rate=rate, limit=LIMIT)
