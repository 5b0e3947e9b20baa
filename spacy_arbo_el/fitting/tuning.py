"""Tune a linker's thresholds and store them in its config."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import NamedTuple

import numpy as np
from rich.table import Table
from spacy.language import Language
from spacy.tokens import Doc

from ..base.settings import check_choice
from ..evaluation.holdout import remove_entities, with_removed_as_nil
from ..evaluation.report import table_of_numbers
from ..linker import ArboLinker, find_linker, name_of_linker
from ..storage.cells import csv_text
from .calibrate import Fit, fit_calibration
from .thresholds import (
    LINKING_SCORES,
    DiscoverySweep,
    SweepRow,
    cautious_row,
    nearest_best,
    sweep_discovery,
    sweep_linking,
)

# Rows of a table. The CSV file has all rows.
TABLE_ROWS = 21


class TuningResult(NamedTuple):
    """The scores at all thresholds, and the best thresholds.

    linking: The scores of linking at each threshold.
    best_linking: The number of the best of these rows.
    discovery: The scores of discovery; None if the linker has none, or the documents show nothing.
    best_discovery: The number of the best of its rows.
    fitted: Calibration and reranker, fitted without the holdout entities; None without a holdout.
    """

    linking: list[SweepRow]
    best_linking: int
    discovery: DiscoverySweep | None
    best_discovery: int
    fitted: Fit | None

    @property
    def threshold(self) -> float:
        return self.linking[self.best_linking]["threshold"]

    @property
    def summary(self) -> str:
        text = f"threshold = {self.threshold:g}"
        if self.discovery is not None:
            text += f", discovery.threshold = {self.discovery_threshold:g}"
        return text

    @property
    def discovery_threshold(self) -> float:
        """The best threshold for new entities. There must be scores of discovery."""
        assert self.discovery is not None
        return self.discovery.rows[self.best_discovery]["threshold"]


def tune(
    linker: ArboLinker,
    docs: Sequence[Doc],
    drop: float = 0.0,
    seed: int = 0,
    score: str = "arbo_acc",
    cost: float | None = None,
) -> TuningResult:
    """Find the best thresholds for linking and discovery. Each mention is encoded once.

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
    linking = sweep_linking(linker, docs, stages=stages)
    best = cautious_row([linking], score if cost is None else cost, linker.threshold)
    discovery = linker.discovery
    sweep = None if discovery is None else sweep_discovery(linker, linking, best)
    if discovery is None or sweep is None:
        return TuningResult(linking.rows, best, None, 0, fitted)
    row = nearest_best(sweep.rows, "ari", discovery.threshold)
    return TuningResult(linking.rows, best, sweep, row, fitted)


def store(nlp: Language, result: TuningResult) -> None:
    """Store tuned settings in a linker and its config."""
    linker = find_linker(nlp)
    name = name_of_linker(nlp, linker)
    if result.fitted is not None:
        result.fitted.install(linker)
    linker.threshold = result.threshold
    if result.discovery is not None and linker.discovery is not None:
        curve = result.discovery.curve
        linker.discovery = replace(linker.discovery, threshold=result.discovery_threshold)
        linker.calibration = replace(linker.calibration, same_new_entity=curve)
        settings = {"@misc": "spacy-arbo-el.Discovery.v1", **asdict(linker.discovery)}
        nlp.get_pipe_config(name)["discovery"] = settings
    linker.cfg.write_to(nlp, name)


def as_csv(rows: Sequence[SweepRow]) -> str:
    """Rows of scores as CSV with a header."""
    return csv_text(list(rows[0]), (row.values() for row in rows))


def as_table(rows: Sequence[SweepRow], best: int, title: str) -> Table:
    """Some of the rows as a table for the terminal. The best one is marked."""
    columns = [column for column in rows[0] if column != "mentions"]
    shown = {*np.linspace(0, len(rows) - 1, TABLE_ROWS).round().astype(int).tolist(), best}
    cells = (
        ("→" if number == best else "", *(f"{rows[number][column]:.4g}" for column in columns))
        for number in sorted(shown)
    )
    return table_of_numbers(title, columns, cells)
