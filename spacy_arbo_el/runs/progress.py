"""The logger of trainings."""

import logging
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any, Literal

from spacy.language import Language
from spacy.util import registry
from wasabi import row

from ..base.log import log, progress
from ..base.memory import resident_megabytes

LogStep = Callable[[dict[str, Any] | None], None]
# Headings of scores, in per cent.
SCORES = {"ACC": "arbo_acc", "BAL": "arbo_balanced_acc"}
SCORES.update({"R@1": "arbo_recall_at_1", "R@64": "arbo_recall_at_64"})
HEADER = ("E", "#", "LOSS", *SCORES, "SCORE", "S/STEP", "MB", "TIME")
WIDTHS = (3, 6, 8, *(6 for _ in SCORES), 6, 6, 6, 8)
ALIGNS: list[Literal["r"]] = ["r"] * len(WIDTHS)


@registry.loggers("spacy-arbo-el.Progress.v1")
@dataclass(frozen=True)
class Progress:
    """Print a line per evaluation, and the time left.

    E and #: The epoch and the step.
    LOSS: The mean loss of a step since the last line.
    ACC, BAL and R@k: Accuracy, balanced accuracy, and recall at k candidates.
    SCORE: The score that the best model is chosen by. A star marks the best so far.
    S/STEP: Seconds per step since the last line, without evaluations.
    MB: The resident memory of the process, in megabytes.
    TIME: The time since the start.

    Use it in place of spaCy's console logger::

        [training.logger]
        @loggers = "spacy-arbo-el.Progress.v1"

    In a terminal there is a bar of the steps until the next evaluation. The logger gets a line each
    minute elsewhere.
    """

    def __call__(
        self, nlp: Language, stdout: IO = sys.stdout, stderr: IO = sys.stderr
    ) -> tuple[LogStep, Callable[[], None]]:
        table = _ProgressTable(nlp.config["training"]["eval_frequency"], stdout)
        return table.log_step, table.finalize


class _ProgressTable:
    """The table of one training while it is printed."""

    def __init__(self, interval: int, stdout: IO) -> None:
        self._stdout = stdout
        self._interval = interval
        self._start = self._stepped = time.monotonic()
        self._steps = 0
        self._seconds = 0.0
        self._log_level = log.level
        log.setLevel(logging.INFO)
        self._write_row(HEADER)
        self._write_row(["-" * width for width in WIDTHS])
        # In a file or a pipe too, the head is there before the minutes until the first line.
        stdout.flush()
        log.info("The first line follows the first step, which compiles, and the first evaluation")
        self._bar = progress(interval, "Training", "step")

    def log_step(self, info: dict[str, Any] | None) -> None:
        """Count a step.

        info: What the training loop reports at an evaluation; None for steps without one.
        """
        now = time.monotonic()
        self._steps += 1
        if info is None:
            self._seconds += now - self._stepped
            self._bar.update(1)
        else:
            # Its time is that of the evaluation too: it says nothing of the steps that are left.
            self._bar.clear()
            self._write_row(list(self._cells(info, now - self._start)))
            self._stdout.flush()
            self._steps = 0
            self._seconds = 0.0
            self._bar.reset(self._interval)
        self._stepped = time.monotonic()

    def finalize(self) -> None:
        self._bar.close()
        log.setLevel(self._log_level)

    def _cells(self, info: dict[str, Any], seconds: float) -> Iterator[str]:
        scores = info["other_scores"] or {}
        yield str(info["epoch"])
        yield str(info["step"])
        yield f"{sum(info['losses'].values()) / self._steps:.4f}"
        for key in SCORES.values():
            yield "-" if scores.get(key) is None else f"{100 * scores[key]:.2f}"
        is_best = info["score"] == max(info["checkpoints"])[0]
        yield f"{info['score']:.3f}" + ("*" if is_best else " ")
        # The step before an evaluation is reported after it.
        yield f"{self._seconds / (self._steps - 1):.2f}" if self._steps > 1 else "-"
        yield str(resident_megabytes() or "-")
        minutes, rest = divmod(int(seconds), 60)
        yield f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"

    def _write_row(self, cells: Any) -> None:
        self._stdout.write(row(cells, widths=WIDTHS, aligns=ALIGNS) + "\n")
