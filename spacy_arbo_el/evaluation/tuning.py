"""Tuning both λ of a linker on annotated text, and keeping them in its config."""

import csv
import io
from dataclasses import asdict, replace
from typing import List, NamedTuple, Optional, Sequence

import numpy as np
from rich.table import Table
from spacy.language import Language
from spacy.tokens import Doc

from ..discovery.grouping import Discovery
from ..inference.calibration import Calibration
from ..linker import ArboLinker
from .calibrate import fit_calibration
from .dropping import drop_entities, without_dropped
from .report import encoding_once, find_linker
from .thresholds import (
    DISCOVERY_SCORES,
    LINKING_SCORES,
    Grouped,
    Row,
    best_row,
    check_score,
    sweep_discovery,
    sweep_linking,
)

# What letters are tried to count for.
LETTERS = (0.0, 0.1, 0.2)
# Rows of a table; a curve in a file has them all.
SHOWN = 21


class Tuned(NamedTuple):
    """What a sweep said.

    linking: The scores at each threshold, and the best row. discovery: New entities at each λ, for
        the best way of grouping them, and the best row; None where the linker has no discovery.
    calibration: Fitted while entities were missing; None where none was dropped.
    """

    linking: List[Row]
    best_linking: int
    discovery: Optional[Grouped]
    best_discovery: int
    calibration: Optional[Calibration]

    @property
    def threshold(self) -> float:
        """λ for linking, as a chance."""
        return self.linking[self.best_linking]["threshold"]

    @property
    def summary(self) -> str:
        """Both λ in a line."""
        said = f"threshold = {self.threshold:g}"
        if self.discovery is not None:
            found = self.found()
            said += f", discovery.threshold = {found.threshold:g}, letters = {found.letters:g}"
        return said

    def found(self) -> Discovery:
        """The discovery as it was tuned."""
        assert self.discovery is not None
        threshold = self.discovery.rows[self.best_discovery]["threshold"]
        return replace(self.discovery.discovery, threshold=threshold)


def tune(
    linker: ArboLinker,
    docs: Sequence[Doc],
    drop: float = 0.0,
    seed: int = 0,
    score: str = "arbo_acc",
    discovery_score: str = "ari",
) -> Tuned:
    """Find both λ on annotated docs, encoding each mention once.

    drop: The share of the docs' entities to take out of the linker's knowledge base first. What was
        calibrated with all entities there has never seen a mention that nothing fits, so that it
        is calibrated anew. The linker is left without these entities.
    """
    check_score(score, LINKING_SCORES)
    check_score(discovery_score, DISCOVERY_SCORES)
    calibration = None
    with encoding_once(linker):
        if drop:
            drop_entities(linker, docs, drop, seed)
            docs = without_dropped(docs, linker.kb)
            linker.calibration = Calibration()
            calibration = linker.calibration = fit_calibration(linker, docs)
        swept = sweep_linking(linker, docs)
    best = best_row(swept.rows, score)
    if linker.discovery is None:
        return Tuned(swept.rows, best, None, 0, calibration)
    tried = [replace(linker.discovery, letters=letters) for letters in LETTERS]
    grouped = [sweep_discovery(one, swept, best, linker) for one in tried]
    rows = [best_row(one.rows, discovery_score) for one in grouped]
    values = [one.rows[row][discovery_score] for one, row in zip(grouped, rows)]
    which = int(np.argmax(values))
    return Tuned(swept.rows, best, grouped[which], rows[which], calibration)


def store(nlp: Language, tuned: Tuned, name: Optional[str] = None) -> None:
    """Let a pipeline's linker, and its config, have what was tuned."""
    linker = find_linker(nlp, name)
    config = nlp.get_pipe_config(linker.name)
    linker.threshold = config["threshold"] = tuned.threshold
    if tuned.calibration is not None:
        linker.calibration = tuned.calibration
    if tuned.discovery is not None:
        linker.discovery = tuned.found()
        linker.calibration = replace(linker.calibration, new=tuned.discovery.curve)
        config["discovery"] = {"@misc": "spacy-arbo-el.Discovery.v1", **asdict(linker.discovery)}
    config["calibration"] = linker.calibration.to_config()


def as_csv(rows: Sequence[Row]) -> str:
    """Rows of scores, a line each, with a head."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def as_table(rows: Sequence[Row], best: int, title: str) -> Table:
    """Some of the rows as a table for the terminal, the best one marked."""
    table = Table(title=title, title_justify="left")
    columns = [column for column in rows[0] if column != "mentions"]
    table.add_column("")
    for column in columns:
        table.add_column(column, justify="right")
    shown = {*np.linspace(0, len(rows) - 1, SHOWN).round().astype(int).tolist(), best}
    for number in sorted(shown):
        marked = "→" if number == best else ""
        table.add_row(marked, *(f"{rows[number][column]:.4g}" for column in columns))
    return table
