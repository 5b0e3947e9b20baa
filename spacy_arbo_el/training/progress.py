"""What people see of training: a line at each evaluation, and what happens between them."""

import logging
import sys
import time
from typing import IO, Any, Callable, Dict, Iterator, List, Literal, Optional, Tuple

import tqdm
from spacy.language import Language
from spacy.util import registry
from wasabi import row

from ..log import log
from .clock import Times

Setup = Callable[
    [Language, IO, IO], Tuple[Callable[[Optional[Dict[str, Any]]], None], Callable[[], None]]
]
SCORES = {
    "ACC": "arbo_acc",
    "R@1": "arbo_recall_at_1",
    "R@8": "arbo_recall_at_8",
    "R@64": "arbo_recall_at_64",
}
HEADER = ("E", "#", "LOSS", *SCORES, "SCORE", "S/STEP", "MINING", "TIME")
WIDTHS = (3, 6, 8, *(6 for _ in SCORES), 6, 6, 6, 8)
ALIGNS: List[Literal["r"]] = ["r"] * len(WIDTHS)


@registry.loggers("spacy-arbo-el.Progress.v1")
def progress_logger(progress_bar: bool = True) -> Setup:
    """A line at each evaluation on dev, in per cent where it is a score.

    LOSS: the mean of a step since the last line. SCORE: what the best model is chosen by; a star
    marks the best so far. S/STEP: seconds a training step took, refreshes and evaluations apart;
    MINING: the share of it that choosing positives and negatives took. TIME: since the start.
    In between, a line for each refresh of the vectors.

    progress_bar: Show a bar of the steps to the next evaluation, where a terminal is there.
    """

    def setup(nlp: Language, stdout: IO = sys.stdout, stderr: IO = sys.stderr):
        from ..linker import ArboLinker

        linkers = [(name, pipe) for name, pipe in nlp.pipeline if isinstance(pipe, ArboLinker)]
        every = nlp.config["training"]["eval_frequency"]
        level, start, last = log.level, time.monotonic(), -1
        log.setLevel(logging.INFO)
        stdout.write(row(HEADER, widths=WIDTHS, aligns=ALIGNS) + "\n")
        stdout.write(row(["-" * width for width in WIDTHS], widths=WIDTHS, aligns=ALIGNS) + "\n")
        shown = progress_bar and stderr.isatty()
        bar = tqdm.tqdm(total=every, file=stderr, leave=False, disable=not shown)

        def log_step(info: Optional[Dict[str, Any]]) -> None:
            nonlocal last
            bar.update(1)
            if info is None:
                return
            bar.clear()
            took = [pipe.learner.clock.take() for _, pipe in linkers]
            steps, last = info["step"] - last, info["step"]
            cells = list(_cells(info, steps, took, time.monotonic() - start))
            stdout.write(row(cells, widths=WIDTHS, aligns=ALIGNS) + "\n")
            stdout.flush()
            bar.reset(every)

        def finalize() -> None:
            bar.close()
            log.setLevel(level)

        return log_step, finalize

    return setup


def _cells(info: Dict[str, Any], steps: int, took: List[Times], seconds: float) -> Iterator[str]:
    scores, losses = info["other_scores"] or {}, info["losses"]
    yield str(info["epoch"])
    yield str(info["step"])
    yield f"{sum(losses.values()) / max(steps, 1):.4f}"
    for key in SCORES.values():
        value = scores.get(key)
        yield "-" if value is None else f"{100 * value:.2f}"
    best = info["score"] == max(info["checkpoints"])[0]
    yield f"{info['score']:.3f}" + ("*" if best else " ")
    counted = sum(times.steps for times in took)
    choosing = sum(times.choosing for times in took)
    spent = choosing + sum(times.encoding for times in took)
    yield f"{spent / counted:.2f}" if counted else "-"
    yield f"{100 * choosing / spent:.0f}%" if spent else "-"
    minutes, rest = divmod(int(seconds), 60)
    yield f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
