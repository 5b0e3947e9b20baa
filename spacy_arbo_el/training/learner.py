"""Training as the component does it: vectors fresh when they should be, one trainer for as long."""

from typing import Dict, Mapping, NamedTuple, Optional, Tuple

import numpy as np
from thinc.api import Model

from ..retrieval.memory import Memory
from .cache import EmbeddingCache
from .clock import Clock
from .losses import Loss
from .negatives import Negatives
from .positives import Positives
from .refresh import Refresh
from .table import GoldTable
from .trainer import Trainer


class Objective(NamedTuple):
    """What training pulls together and pushes apart, and how old its vectors may get."""

    positives: Positives
    negatives: Negatives
    loss: Loss
    refresh: Refresh


class Learner:
    """Trains the dual encoder on mentions that the memory stores as exemplars.

    memory: Knowledge base and exemplars. Entities and mentions may come in the middle of
        training; the vectors that the others were chosen on are kept until the next refresh.
    clock: How long the steps take.
    """

    def __init__(self, name: str, model: Model, memory: Memory, objective: Objective):
        self.name = name
        self.model = model
        self.memory = memory
        self.objective = objective
        self.clock = Clock()
        self._trainer: Optional[Trainer] = None
        self._structure = -1

    def step(self, rows: np.ndarray) -> Tuple[float, int]:
        """Gradients for a batch of stored mentions; see ``Trainer.step``."""
        return self._ready_trainer().step(rows)

    def _ready_trainer(self) -> Trainer:
        trainer, memory = self._trainer, self.memory
        is_due = trainer is None or trainer.refresh_due
        if is_due:
            memory.refresh()
        elif not memory.is_current or self._structure != memory.structure:
            memory.complete()
            memory.changed()
        if trainer is None or self._structure != memory.structure:
            seen = 0 if trainer is None or is_due else trainer.seen
            trainer = self._build_trainer()
            trainer.seen = seen
            self._trainer, self._structure = trainer, memory.structure
        elif is_due:
            trainer.refreshed()
        return trainer

    def _build_trainer(self) -> Trainer:
        memory = self.memory
        distinct = memory.kb.distinct_texts(memory.verbalization)
        texts = memory.encoding.text_sequences(distinct.texts)
        return Trainer(
            self.model,
            GoldTable(memory.exemplars, memory.kb, distinct),
            EmbeddingCache(memory.kb, distinct, memory.exemplars, texts, memory.similarity),
            self.objective.positives,
            self.objective.negatives,
            self.objective.loss,
            self.objective.refresh,
            self.clock,
        )

    # What a checkpoint keeps of training

    def state(self) -> Tuple[Dict[str, np.ndarray], Dict[str, int]]:
        """The vectors that positives and negatives are chosen on, and how old they are."""
        trainer = self._trainer
        if trainer is None or self._structure != self.memory.structure:
            return {}, {}
        cache = {"texts": trainer.cache.texts, "mentions": trainer.cache.mentions}
        return cache, {"seen": trainer.seen}

    def restore(self, arrays: Mapping[str, np.ndarray], state: Mapping[str, int]) -> None:
        """Go on with the vectors of a checkpoint."""
        self._trainer = None
        if state:
            self.memory.refresh()
            trainer = self._trainer = self._build_trainer()
            self._structure = self.memory.structure
            trainer.cache.take_over(arrays["texts"], arrays["mentions"])
            trainer.seen = state["seen"]
