"""A run of training that records what a checkpoint needs, and replays one when it is resumed."""

import hashlib
import random
from itertools import islice
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Config, Optimizer

from ..errors import Errors
from ..settings import different_keys
from .checkpoint import (
    Checkpoint,
    Evaluation,
    History,
    restore_checkpoint,
    write_checkpoint,
    write_finished,
)
from .trainer import Trainer

# What the training loop reports of a step, and whether it is the best: None without an evaluation
Step = Tuple[Dict[str, Any], Optional[bool]]
Batches = Iterator[Tuple[int, Iterable[Example]]]


class RunSettings(NamedTuple):
    """What a run begins with.

    config: Its config, as spaCy writes it.
    inputs: Fingerprints of what the config does not say, by name: the content of the knowledge
        base, the documents that are evaluated on …
    """

    config: str
    inputs: Dict[str, str]

    @classmethod
    def of(cls, nlp: Language, config: str, dev: Iterable[Example]) -> "RunSettings":
        """What the run of an initialized pipeline begins with.

        config: The config.
        dev: The examples that are evaluated on.
        """
        inputs = {"the documents to evaluate on": _batch_fingerprint(dev)}
        for name, pipe in nlp.pipeline:
            trainer = getattr(pipe, "trainer", None)
            if isinstance(trainer, Trainer):
                inputs[f"the knowledge base, mentions or encoder of {name}"] = trainer.fingerprint()
        return cls(config, inputs)


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
        settings: RunSettings,
        path: Path,
        checkpoint: Optional[Checkpoint],
    ):
        """nlp: The pipeline that is trained.
        optimizer: Its optimizer.
        evaluate: Evaluates the pipeline.
        settings: What the run begins with.
        path: The checkpoint file.
        checkpoint: The checkpoint to resume from; None for a new run.
        """
        self._nlp = nlp
        self._optimizer = optimizer
        self._evaluate = evaluate
        self._settings = settings
        self._path = path
        self._checkpoint = checkpoint
        # Those of the run that is resumed.
        self._recorded = checkpoint.history.evaluations if checkpoint is not None else []
        self._history: Optional[History] = None
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
            if (
                checkpoint is not None
                and fingerprint not in checkpoint.history.batches[number:][:1]
            ):
                raise ValueError(Errors.E603.format(path=self._path))
            self._batches.append(fingerprint)
            yield epoch, batch

    def evaluate(self) -> Evaluation:
        """Evaluate the pipeline, or give the evaluation that the resumed run has recorded."""
        number = len(self._evaluations)
        is_recorded = number < len(self._recorded)
        evaluation = self._recorded[number] if is_recorded else self._evaluate()
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
        if info is None or is_best is not None:
            return
        if self._checkpoint is not None and not self._has_final_evaluation:
            return
        with self._nlp.use_params(self._optimizer.averages or {}):
            score, other_scores = self.evaluate()
        info["checkpoints"].append((score, info["step"]))
        is_best = score == max(info["checkpoints"])[0]
        yield {**info, "score": score, "other_scores": other_scores}, is_best

    @property
    def _has_final_evaluation(self) -> bool:
        """Whether an evaluation is left that the resumed run has recorded."""
        return len(self._evaluations) < len(self._recorded)

    def replay(self, info: Dict[str, Any], is_evaluated: bool) -> None:
        """Put recorded losses into the report of a replayed step; restore after the last one."""
        assert self._checkpoint is not None
        history = self._checkpoint.history
        if is_evaluated:
            self._evaluated_losses.append(history.evaluated_losses[len(self._evaluated_losses)])
            info["losses"].update(self._evaluated_losses[-1])
        # The last step comes twice where it has an evaluation after the loop.
        if info["step"] == history.step and not self._has_final_evaluation:
            del vars(self._nlp)["update"]
            restore_checkpoint(self._checkpoint, self._nlp, self._optimizer)
            if not is_evaluated:
                info["losses"].update(history.losses)
            self._history = self._checkpoint.history
            self._checkpoint = None

    def save(self, info: Dict[str, Any], is_evaluated: bool) -> None:
        """Write a checkpoint after a step."""
        losses = dict(info["losses"])
        if is_evaluated:
            # The loop starts a new sum.
            self._evaluated_losses.append(losses)
            losses = {}
        self._history = History(
            info["step"],
            losses,
            self._evaluations,
            self._evaluated_losses,
            self._batches,
            self._settings.config,
            self._settings.inputs,
        )
        write_checkpoint(self._path, self._nlp, self._optimizer, self._history)

    def finish(self) -> None:
        """Write that the training has ended, in place of the last checkpoint."""
        if self._history is not None:
            write_finished(self._path, self._history)


def check_same_settings(checkpoint: Checkpoint, settings: RunSettings) -> None:
    """Raise ValueError where the run of a checkpoint began with something else."""
    path, history = checkpoint.path, checkpoint.history
    keys = _different_keys(history.config, settings.config)
    if keys:
        raise ValueError(Errors.E602.format(path=path, keys=", ".join(keys)))
    names = [name for name in settings.inputs if history.inputs.get(name) != settings.inputs[name]]
    if names:
        raise ValueError(Errors.E606.format(path=path, names=", ".join(names)))


def has_same_start(checkpoint: Checkpoint, settings: RunSettings) -> bool:
    """Whether the run of a checkpoint began with the same."""
    history = checkpoint.history
    is_same_config = not _different_keys(history.config, settings.config)
    return history.inputs == settings.inputs and is_same_config


def is_same_run(checkpoint: Checkpoint, settings: RunSettings, batches: Batches) -> bool:
    """Whether a run would be the same as that of a checkpoint.

    batches: The batches of the run. They are read as far as the checkpoint's run has read them.
    """
    history = checkpoint.history
    if not has_same_start(checkpoint, settings):
        return False
    read = islice(_with_own_random_state(batches), len(history.batches))
    return [_batch_fingerprint(list(batch)) for _, batch in read] == history.batches


def _different_keys(saved: str, config: str) -> List[str]:
    """The settings that differ between two configs."""
    old, new = (dict(_flat_settings(Config().from_str(text))) for text in (saved, config))
    return different_keys(old, new)


def _flat_settings(settings: Dict[str, Any], prefix: str = "") -> Iterator[Tuple[str, Any]]:
    """Settings with dotted names."""
    for key, value in settings.items():
        if isinstance(value, dict) and value:
            yield from _flat_settings(value, f"{prefix}{key}.")
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


def _batch_fingerprint(batch: Iterable[Example]) -> str:
    return fingerprint_of_docs(example.reference for example in batch)


def fingerprint_of_docs(docs: Iterable[Doc]) -> str:
    """A fingerprint of the texts and annotated spans of documents."""
    digest = hashlib.blake2b(digest_size=8)
    for doc in docs:
        groups = {"": doc.ents, **doc.spans}
        spans = [
            (key, span.start_char, span.end_char, span.label_, span.kb_id_, span.id_)
            for key in sorted(groups)
            for span in groups[key]
        ]
        digest.update(repr((doc.text, spans)).encode("utf8"))
    return digest.hexdigest()
