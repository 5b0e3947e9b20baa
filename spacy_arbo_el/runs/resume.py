"""spaCy's training loop, from the start or from a checkpoint."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.training import Example
from thinc.api import Optimizer

from ..base.errors import Errors
from ..base.log import log
from .checkpoint import Checkpoint, Evaluation

# What the training loop reports of a step, and whether it was evaluated
LoopStep = tuple[dict[str, Any], bool]
# Examples with the number of their epoch
Batch = tuple[int, list[Example]]


class ResumableLoop:
    """The steps and evaluations of one training.

    In a run that is resumed, the batches up to the checkpoint are empty and their evaluations are
    the recorded ones. So the loop trains nothing, and counts steps and epochs, moves its schedules
    and stops early as in the first run. Then the checkpoint is restored.

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
        self._nlp = nlp
        self._optimizer = optimizer
        self._evaluator = evaluator
        self._path = path
        self._checkpoint = checkpoint
        self._done = -1 if checkpoint is None else checkpoint.step
        self._recorded = [] if checkpoint is None else list(checkpoint.evaluations)
        self.evaluations: list[Evaluation] = []

    def batches(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The batches of a run from its start, those up to the checkpoint without examples."""
        for step, (epoch, batch) in enumerate(batches):
            yield epoch, batch if step > self._done else []

    def evaluate(self) -> Evaluation:
        """Evaluate the pipeline, or give the recorded evaluation."""
        if self._recorded:
            evaluation = self._recorded.pop(0)
        else:
            log.info("Evaluating the pipeline as it would be saved now")
            evaluation = self._evaluator()
        self.evaluations.append(evaluation)
        return evaluation

    def steps(
        self, steps: Iterator[tuple[Any, dict[str, Any], bool | None]]
    ) -> Iterator[LoopStep]:
        """Yield the loop's reports, with a final evaluation. There is a report for each trained
        step.

        spaCy does not score the steps after the last regular evaluation, and so never keeps them
        as the best.
        """
        info: dict[str, Any] = {"step": -1}
        is_evaluated = True
        for _, info, is_best in steps:
            is_evaluated = is_best is not None
            if info["step"] > self._done:
                yield info, is_evaluated
            elif info["step"] == self._done and self._checkpoint is not None:
                self._checkpoint.restore(self._nlp.pipeline, self._optimizer)
        if info["step"] < self._done:
            raise Errors.E603(path=self._path)
        if is_evaluated:
            return
        with self._nlp.use_params(self._optimizer.averages or {}):
            score, other_scores = self.evaluate()
        info["checkpoints"].append((score, info["step"]))
        yield {**info, "score": score, "other_scores": other_scores}, True
