"""The logger of a training. A line per evaluation, and a progress bar in between."""

import logging
import sys
import time
from dataclasses import dataclass
from typing import IO, Any, Callable, Dict, Iterator, List, Literal, Optional, Tuple

import tqdm
from spacy.language import Language
from spacy.util import registry
from wasabi import row

from ..log import LoggedProgress, log
from .memory import resident_megabytes
from .timer import StepTimes
from .trainer import Trainer

LogStep = Callable[[Optional[Dict[str, Any]]], None]
Finalize = Callable[[], None]
SCORES = {
    "ACC": "arbo_acc",
    "R@1": "arbo_recall_at_1",
    "R@8": "arbo_recall_at_8",
    "R@64": "arbo_recall_at_64",
}
HEADER = ("E", "#", "LOSS", *SCORES, "SCORE", "S/STEP", "MINING", "MB", "TIME")
WIDTHS = (3, 6, 8, *(6 for _ in SCORES), 6, 6, 6, 6, 8)
ALIGNS: List[Literal["r"]] = ["r"] * len(WIDTHS)


@registry.loggers("spacy-arbo-el.Progress.v1")
@dataclass(frozen=True)
class Progress:
    """Prints a line per evaluation and per refresh. Scores are in per cent.

    E and #: The epoch and the step.
    LOSS: The mean loss of a step since the last line.
    ACC and R@k: Accuracy, and recall at k candidates.
    SCORE: The score that the best model is chosen by. A star marks the best so far.
    S/STEP: Seconds per training step, without refreshes and evaluations.
    MINING: The share of these seconds that choosing positives and negatives took.
    MB: The resident memory of the process, in megabytes.
    TIME: The time since the start.

    Use it in place of spaCy's console logger::

        [training.logger]
        @loggers = "spacy-arbo-el.Progress.v1"
        progress_bar = true

    progress_bar: Whether to show a bar of the steps until the next evaluation, in a terminal. The
        logger gets a line each minute elsewhere.
    """

    progress_bar: bool = True

    def __call__(
        self, nlp: Language, stdout: IO = sys.stdout, stderr: IO = sys.stderr
    ) -> Tuple[LogStep, Finalize]:
        table = _ProgressTable(nlp, stdout, stderr, self.progress_bar and stderr.isatty())
        return table.log_step, table.finalize


class _ProgressTable:
    """The table of one training while it is printed."""

    def __init__(self, nlp: Language, stdout: IO, stderr: IO, progress_bar: bool):
        self._pipes = [pipe for _, pipe in nlp.pipeline]
        self._stdout = stdout
        self._interval = nlp.config["training"]["eval_frequency"]
        self._start, self._steps = time.monotonic(), 0
        self._log_level = log.level
        log.setLevel(logging.INFO)
        self._write_row(HEADER)
        self._write_row(["-" * width for width in WIDTHS])
        self._bar: Any = LoggedProgress(self._interval, "Training", "step")
        if progress_bar:
            self._bar = tqdm.tqdm(total=self._interval, file=stderr, leave=False)

    def log_step(self, info: Optional[Dict[str, Any]]) -> None:
        """Count a step.

        info: What the training loop reports at an evaluation; None for steps without one.
        """
        self._bar.update(1)
        self._steps += 1
        if info is None:
            return
        self._bar.clear()
        steps, self._steps = self._steps, 0
        seconds = time.monotonic() - self._start
        self._write_row(list(_cells(info, steps, self._step_times(), seconds)))
        self._stdout.flush()
        self._bar.reset(self._interval)

    def finalize(self) -> None:
        self._bar.close()
        log.setLevel(self._log_level)

    def _step_times(self) -> List[StepTimes]:
        """Step times since the last line, per linker. Of the pipeline."""
        trainers = [getattr(pipe, "trainer", None) for pipe in self._pipes]
        return [trainer.timer.take() for trainer in trainers if isinstance(trainer, Trainer)]

    def _write_row(self, cells: Any) -> None:
        self._stdout.write(row(cells, widths=WIDTHS, aligns=ALIGNS) + "\n")


def _cells(
    info: Dict[str, Any], steps: int, times: List[StepTimes], seconds: float
) -> Iterator[str]:
    """The cells of a line, in the order of ``HEADER``.

    info: What the training loop reports.
    steps: The number of steps since the last line.
    times: How long they took, for each linker.
    seconds: The time since the start.
    """
    scores, losses = info["other_scores"] or {}, info["losses"]
    yield str(info["epoch"])
    yield str(info["step"])
    yield f"{sum(losses.values()) / max(steps, 1):.4f}"
    for key in SCORES.values():
        value = scores.get(key)
        yield "-" if value is None else f"{100 * value:.2f}"
    is_best = info["score"] == max(info["checkpoints"])[0]
    yield f"{info['score']:.3f}" + ("*" if is_best else " ")
    timed_steps = sum(linker.steps for linker in times)
    choosing = sum(linker.choosing for linker in times)
    total = choosing + sum(linker.encoding for linker in times)
    yield f"{total / timed_steps:.2f}" if timed_steps else "-"
    yield f"{100 * choosing / total:.0f}%" if total else "-"
    yield str(resident_megabytes() or "-")
    minutes, rest = divmod(int(seconds), 60)
    yield f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
