"""A run of training that records what a checkpoint needs, and replays one when it is resumed."""

import hashlib
import random
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

from spacy.language import Language
from spacy.training import Example
from thinc.api import Config, Optimizer

from ..errors import Errors
from .checkpoint import Checkpoint, Evaluation, History, restore_checkpoint, write_checkpoint

# What the training loop reports of a step, and whether it is the best: None without an evaluation
Step = Tuple[Dict[str, Any], Optional[bool]]
Batches = Iterator[Tuple[int, Iterable[Example]]]


class ResumableRun:
    """One run of spaCy's training loop, with a checkpoint file.

    A run that is resumed starts by replaying: the loop reads the batches up to the checkpoint
    without training on them, and gets the recorded evaluations. After that the state of the
    checkpoint is restored.
    """

    def __init__(
        self,
        nlp: Language,
        optimizer: Optimizer,
        evaluate: Callable[[], Evaluation],
        config: str,
        path: Path,
        checkpoint: Optional[Checkpoint],
    ):
        """nlp: The pipeline that is trained.
        optimizer: Its optimizer.
        evaluate: Evaluates the pipeline.
        config: The config of the run, as spaCy writes it.
        path: The checkpoint file.
        checkpoint: The checkpoint to resume from; None for a new run.
        """
        self._nlp = nlp
        self._optimizer = optimizer
        self._evaluate = evaluate
        self._config = config
        self._path = path
        self._checkpoint = checkpoint
        self._batches: List[str] = []
        self._evaluations: List[Evaluation] = []
        self._evaluated_losses: List[Dict[str, float]] = []
        if checkpoint is not None:
            # Hides the method, which the loop calls with each batch.
            vars(nlp)["update"] = _skip_update

    @property
    def is_replaying(self) -> bool:
        """Whether the run has not reached its checkpoint yet."""
        return self._checkpoint is not None

    def read_batches(self, batches: Batches) -> Iterator[Tuple[int, List[Example]]]:
        """The batches with their epochs, checked against those of the checkpoint."""
        for epoch, examples in _with_own_random_state(batches):
            batch = list(examples)
            fingerprint, number = _batch_fingerprint(batch), len(self._batches)
            checkpoint = self._checkpoint
            if checkpoint is not None and checkpoint.history.batches[number] != fingerprint:
                raise ValueError(Errors.E603.format(path=self._path))
            self._batches.append(fingerprint)
            yield epoch, batch

    def evaluate(self) -> Evaluation:
        """Evaluate the pipeline, or give the recorded evaluation while replaying."""
        recorded = self._checkpoint.history.evaluations if self._checkpoint is not None else []
        number = len(self._evaluations)
        evaluation = recorded[number] if number < len(recorded) else self._evaluate()
        self._evaluations.append(evaluation)
        return evaluation

    def with_final_evaluation(self, steps: Iterable[Tuple[Any, Any, Any]]) -> Iterator[Step]:
        """What the loop reports of each step, with an evaluation after the last one.

        spaCy does not score the steps after the last regular evaluation, and so never keeps them
        as the best.
        """
        info, is_best = None, None
        for _, info, is_best in steps:
            yield info, is_best
        if info is not None and is_best is None and not self.is_replaying:
            with self._nlp.use_params(self._optimizer.averages or {}):
                score, other_scores = self.evaluate()
            info["checkpoints"].append((score, info["step"]))
            is_best = score == max(info["checkpoints"])[0]
            yield {**info, "score": score, "other_scores": other_scores}, is_best

    def replay(self, info: Dict[str, Any], is_evaluated: bool) -> None:
        """Put recorded losses into the report of a replayed step; restore after the last one."""
        assert self._checkpoint is not None
        history = self._checkpoint.history
        if is_evaluated:
            self._evaluated_losses.append(history.evaluated_losses[len(self._evaluated_losses)])
            info["losses"].update(self._evaluated_losses[-1])
        if info["step"] == history.step:
            del vars(self._nlp)["update"]
            restore_checkpoint(self._checkpoint, self._nlp, self._optimizer)
            info["losses"].update(history.losses)
            self._checkpoint = None

    def save(self, info: Dict[str, Any], is_evaluated: bool) -> None:
        """Write a checkpoint after a step."""
        losses = dict(info["losses"])
        if is_evaluated:
            # The loop starts a new sum.
            self._evaluated_losses.append(losses)
            losses = {}
        history = History(
            info["step"],
            losses,
            self._evaluations,
            self._evaluated_losses,
            self._batches,
            self._config,
        )
        write_checkpoint(self._path, self._nlp, self._optimizer, history)


def check_same_config(path: Path, saved: str, config: str) -> None:
    """Raise ValueError where a checkpoint's run had a config with other settings."""
    old, new = (dict(_flat(Config().from_str(text))) for text in (saved, config))
    keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    if keys:
        raise ValueError(Errors.E602.format(path=path, keys=", ".join(keys)))


def _flat(settings: Dict[str, Any], prefix: str = "") -> Iterator[Tuple[str, Any]]:
    """Settings with dotted names."""
    for key, value in settings.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _with_own_random_state(batches: Batches) -> Batches:
    """Batches that are shuffled by a random state that no component's training changes.

    spaCy's parser and NER draw from the global one in every update.
    """
    own_state = random.getstate()
    while True:
        global_state = random.getstate()
        random.setstate(own_state)
        try:
            batch = next(batches, None)
        finally:
            own_state = random.getstate()
            random.setstate(global_state)
        if batch is None:
            return
        yield batch


def _skip_update(*args: Any, **kwargs: Any) -> None:
    """Takes the place of ``nlp.update`` while batches are replayed."""


def _batch_fingerprint(batch: List[Example]) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for example in batch:
        digest.update(example.reference.text.encode("utf8") + b"\0")
    return digest.hexdigest()
