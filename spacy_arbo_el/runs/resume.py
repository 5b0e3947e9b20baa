"""spaCy's training loop, from the start or from a checkpoint."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from spacy.language import Language
from thinc.api import Optimizer

from ..base.errors import ArboError, Errors
from ..base.log import log
from .checkpoint import Checkpoint, Evaluation

# What the training loop reports of a step, and whether it was evaluated
LoopStep = tuple[dict[str, Any], bool]


class ResumableLoop:
    """The steps and evaluations of one training.

    A run that is resumed starts by replaying: the loop reads the batches up to the checkpoint
    without training on them, and gets the recorded evaluations. So the order of batches, the
    schedules and early stopping are those of the first run. Then the checkpoint is restored.

    nlp: The pipeline that is trained.
    optimizer: Its optimizer.
    evaluator: Evaluates the pipeline.
    path: The checkpoint file.
    checkpoint: The checkpoint to resume from; None for a new run.
    evaluations: All evaluations so far.
    """

    def __init__(
        self,
        nlp: Language,
        optimizer: Optimizer,
        evaluator: Callable[[], Evaluation],
        path: Path,
        checkpoint: Checkpoint | None,
    ):
        self._nlp, self._optimizer, self._evaluator = nlp, optimizer, evaluator
        self._path, self._checkpoint = path, checkpoint
        self._recorded = list(checkpoint.evaluations) if checkpoint is not None else []
        self.evaluations: list[Evaluation] = []

    def evaluate(self) -> Evaluation:
        """Evaluate the pipeline, or replay the recorded evaluation."""
        if self._recorded:
            evaluation = self._recorded.pop(0)
        else:
            log.info("Evaluating the pipeline as it would be saved now")
            evaluation = self._evaluator()
        self.evaluations.append(evaluation)
        return evaluation

    def steps(self, steps: Iterator[tuple[Any, dict[str, Any], bool | None]]) -> Iterator[LoopStep]:
        """Yield the loop's reports, with a final evaluation. There is a report for each trained
        step.

        spaCy does not score the steps after the last regular evaluation, and so never keeps them
        as the best.
        """
        info: dict[str, Any] = {}
        is_evaluated = True
        if self._checkpoint is not None:
            info, is_evaluated = self._replay(self._checkpoint, steps)
        for _, info, is_best in steps:
            is_evaluated = is_best is not None
            yield info, is_evaluated
        if is_evaluated:
            return
        with self._nlp.use_params(self._optimizer.averages or {}):
            score, other_scores = self.evaluate()
        info["checkpoints"].append((score, info["step"]))
        yield {**info, "score": score, "other_scores": other_scores}, True

    def _replay(self, checkpoint: Checkpoint, steps: Iterator[tuple[Any, Any, Any]]) -> LoopStep:
        """Skip to a checkpoint's step without training; restore it."""
        # Hides the method, which the loop calls with each batch.
        vars(self._nlp)["update"] = lambda *args, **kwargs: None
        try:
            reached = ((i, best) for _, i, best in steps if i["step"] == checkpoint.step)
            step = next(reached, None)
        finally:
            del vars(self._nlp)["update"]
        if step is None:
            raise ArboError(Errors.E603.format(path=self._path))
        checkpoint.restore(self._nlp.pipeline, self._optimizer)
        info, is_best = step
        return info, is_best is not None
