"""A training run that resumes from a checkpoint."""

import hashlib
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import dict_to_dot
from thinc.api import Config, Optimizer

from ..errors import ArboError, Errors
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


class RunSettings(NamedTuple):
    """Settings that a run begins with.

    config: Its config, as spaCy writes it.
    inputs: Fingerprints of what the config does not say, by name: the content of the knowledge
        base, the documents that are evaluated on …
    """

    config: str
    inputs: Dict[str, str]

    @classmethod
    def of(cls, nlp: Language, config: str, dev: Iterable[Example]) -> "RunSettings":
        """Settings of an initialized pipeline's run.

        config: The config.
        dev: The examples that are evaluated on.
        """
        docs = (example.reference for example in dev)
        inputs = {"the documents to evaluate on": fingerprint_of_docs(docs)}
        for name, pipe in nlp.pipeline:
            trainer = getattr(pipe, "trainer", None)
            if isinstance(trainer, Trainer):
                inputs[f"the knowledge base, mentions or encoder of {name}"] = trainer.fingerprint()
        return cls(config, inputs)


class ResumableRun:
    """One run of spaCy's training loop, with a checkpoint file.

    A run that is resumed starts by replaying: the loop reads the batches up to the checkpoint
    without training on them, and gets the recorded evaluations. So the order of batches, the
    schedules and early stopping are those of the first run. Then the checkpoint is restored.

    nlp: The pipeline that is trained.
    optimizer: Its optimizer.
    evaluator: Evaluates the pipeline.
    settings: What the run begins with.
    path: The checkpoint file.
    checkpoint: The checkpoint to resume from; None for a new run.
    """

    def __init__(
        self,
        nlp: Language,
        optimizer: Optimizer,
        evaluator: Callable[[], Evaluation],
        settings: RunSettings,
        path: Path,
        checkpoint: Optional[Checkpoint],
    ):
        self._nlp = nlp
        self._optimizer = optimizer
        self._evaluator = evaluator
        self._path = path
        self._checkpoint = checkpoint
        self._recorded = list(checkpoint.history.evaluations) if checkpoint is not None else []
        self._history = History(-1, [], *settings)

    def evaluate(self) -> Evaluation:
        """Evaluate the pipeline, or replay the recorded evaluation."""
        evaluation = self._recorded.pop(0) if self._recorded else self._evaluator()
        self._history.evaluations.append(evaluation)
        return evaluation

    def steps(self, steps: Iterator[Tuple[Any, Dict[str, Any], Optional[bool]]]) -> Iterator[Step]:
        """Yield the loop's reports, with a final evaluation. There is a report for each trained
        step.

        spaCy does not score the steps after the last regular evaluation, and so never keeps them
        as the best.
        """
        info: Dict[str, Any] = {}
        is_best: Optional[bool] = True
        if self._checkpoint is not None:
            info, is_best = self._replay(self._checkpoint, steps)
        for _, info, is_best in steps:
            yield info, is_best
        if is_best is not None:
            return
        with self._nlp.use_params(self._optimizer.averages or {}):
            score, other_scores = self.evaluate()
        info["checkpoints"].append((score, info["step"]))
        is_best = score == max(info["checkpoints"])[0]
        yield {**info, "score": score, "other_scores": other_scores}, is_best

    def _replay(self, checkpoint: Checkpoint, steps: Iterator[Tuple[Any, Any, Any]]) -> Step:
        """Skip to a checkpoint's step without training; restore it."""
        # Hides the method, which the loop calls with each batch.
        vars(self._nlp)["update"] = _skip_update
        try:
            reached = ((i, best) for _, i, best in steps if i["step"] == checkpoint.history.step)
            step = next(reached, None)
        finally:
            del vars(self._nlp)["update"]
        if step is None:
            raise ArboError(Errors.E603.format(path=self._path))
        restore_checkpoint(checkpoint, self._nlp.pipeline, self._optimizer)
        self._history = self._history._replace(step=checkpoint.history.step)
        return step

    def save(self, step: int) -> None:
        """Write a checkpoint after a step."""
        self._history = self._history._replace(step=step)
        write_checkpoint(self._path, self._nlp.pipeline, self._optimizer, self._history)

    def finish(self) -> None:
        """Mark the training as finished, replacing its checkpoint. The last one."""
        write_finished(self._path, self._history)


def check_same_settings(checkpoint: Checkpoint, settings: RunSettings) -> None:
    """Raise ValueError if a checkpoint's run began differently."""
    path, history = checkpoint.path, checkpoint.history
    keys = _different_keys(history.config, settings.config)
    if keys:
        raise ArboError(Errors.E602.format(path=path, keys=", ".join(keys)))
    names = [name for name in settings.inputs if history.inputs.get(name) != settings.inputs[name]]
    if names:
        raise ArboError(Errors.E606.format(path=path, names=", ".join(names)))


def has_same_start(checkpoint: Checkpoint, settings: RunSettings) -> bool:
    """Return whether a checkpoint's run began with the same."""
    history = checkpoint.history
    is_same_config = not _different_keys(history.config, settings.config)
    return history.inputs == settings.inputs and is_same_config


def _different_keys(saved: str, config: str) -> List[str]:
    """The settings that differ between two configs."""
    old, new = (dict_to_dot(Config().from_str(text)) for text in (saved, config))
    return different_keys(old, new)


def _skip_update(*args: Any, **kwargs: Any) -> None:
    """Takes the place of ``nlp.update`` while batches are replayed."""


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
