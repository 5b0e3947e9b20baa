"""Tune a linker's threshold and store it in its config."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from rich.table import Table
from spacy.language import Language
from spacy.tokens import Doc

from ..base.settings import check_choice
from ..evaluation.holdout import remove_entities, with_removed_as_nil
from ..evaluation.report import table_of_numbers
from ..linker import ArboLinker, find_linker, name_of_linker
from ..records.cells import csv_text
from .calibrate import Fit, fit_calibration
from .thresholds import (
    LINKING_SCORES,
    SweepRow,
    cautious_row,
    sweep_linking,
)

# Rows of a table. The CSV file has all rows.
TABLE_ROWS = 21


class TuningResult(NamedTuple):
    """The scores at all thresholds, and the best threshold.

    rows: The scores at each threshold.
    best: The number of the best of these rows.
    fitted: Calibration and reranker, fitted without the holdout entities; None without a holdout.
    """

    rows: list[SweepRow]
    best: int
    fitted: Fit | None

    @property
    def threshold(self) -> float:
        return self.rows[self.best]["threshold"]


def tune(
    linker: ArboLinker,
    docs: Sequence[Doc],
    drop: float = 0.0,
    seed: int = 0,
    score: str = "arbo_acc",
    cost: float | None = None,
) -> TuningResult:
    """Find the best threshold. Each mention is encoded once.

    drop: The share of their entities to remove from the linker's knowledge base first. They stay
        removed. The linker is calibrated again, because a calibration with all entities never saw
        a mention that is NIL.
    cost: How many missed links cost as much as a wrong one. Then the threshold is chosen by the
        right links less this times the wrong ones, and not by the score.
    """
    check_choice("score", score, LINKING_SCORES)
    fitted = None
    stages = linker.caching_stages()
    if drop:
        remove_entities(linker, docs, drop, seed)
        docs = with_removed_as_nil(docs, linker.kb)
        fitted = fit_calibration(linker, docs, stages=stages, from_scratch=True)
        fitted.install(linker)
        stages = fitted.within(stages)
    sweep = sweep_linking(linker, docs, stages=stages)
    best = cautious_row([sweep], score if cost is None else cost, linker.threshold)
    return TuningResult(sweep.rows, best, fitted)


def store(nlp: Language, result: TuningResult) -> None:
    """Store a tuned threshold in a linker and its config."""
    linker = find_linker(nlp)
    name = name_of_linker(nlp, linker)
    if result.fitted is not None:
        result.fitted.install(linker)
    linker.threshold = result.threshold
    linker.cfg.write_to(nlp, name)


def as_csv(rows: Sequence[SweepRow]) -> str:
    """Rows of scores as CSV with a header."""
    return csv_text(list(rows[0]), (row.values() for row in rows))


def as_table(rows: Sequence[SweepRow], best: int) -> Table:
    """Some of the rows as a table for the terminal. The best one is marked."""
    columns = list(rows[0])
    shown = {
        *np.linspace(0, len(rows) - 1, TABLE_ROWS).round().astype(int).tolist(),
        best,
    }
    cells = (
        (
            "→" if number == best else "",
            *(f"{rows[number][column]:.4g}" for column in columns),
        )
        for number in sorted(shown)
    )
    return table_of_numbers("λ for linking", columns, cells)
