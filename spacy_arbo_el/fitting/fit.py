"""``linker.fit`` and ``arbo fit``: documents used in the way that is best on documents held out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from io import StringIO

from rich.console import Console
from spacy.tokens import Doc

from ..base.settings import check_choice
from ..linker import ArboLinker
from .calibrate import HeldOutFit
from .exemplar_fit import fit_beside_exemplars, keeping, restored
from .held_out import fit_held_out
from .strategies import (
    BOTH,
    CALIBRATED,
    FOLDS,
    STRATEGIES,
    FitComparison,
    Train,
    apply,
    check_documents,
    compare_strategies,
    criterion,
)

WIDTH = 110


@dataclass(frozen=True)
class FitResult:
    """A choice of how to use annotated documents.

    strategy: One of ``STRATEGIES``.
    fit: What calibrating with the documents gives; None where it is not part of the strategy.
    comparison: All strategies on documents held out; None where the strategy was given.
    """

    strategy: str
    fit: HeldOutFit | None = field(repr=False, compare=False)
    comparison: FitComparison | None

    def __str__(self) -> str:
        if self.comparison is None:
            return self.strategy
        console = Console(width=WIDTH, file=StringIO())
        console.print(
            self.comparison.table(f"Held out: {self.comparison.folds} parts")
        )
        return f"{console.file.getvalue()}{self.comparison.advice}"  # type: ignore[attr-defined]


def choose_strategy(
    linker: ArboLinker,
    docs: Sequence[Doc],
    strategy: str | None,
    by: str,
    folds: int,
    train: Train | None = None,
) -> FitResult:
    """The strategy that was given, or that which is best on documents held out.

    docs: Documents with annotated mentions, see ``check_documents``.
    train: As in ``compare_strategies``.
    """
    if not strategy:
        comparison = compare_strategies(linker, docs, by=by, folds=folds, train=train)
        name = comparison.best.name
        return FitResult(name, comparison.fits.get(name), comparison)
    if strategy not in (CALIBRATED, BOTH):
        return FitResult(strategy, None, None)
    with keeping(linker), restored(linker, docs):
        fit = fit_held_out(linker, docs, folds, criterion(by), linker.stages)
        if strategy == BOTH:
            fit = fit_beside_exemplars(linker, docs, fit)
    return FitResult(strategy, fit, None)


def fit_linker(
    linker: ArboLinker,
    docs: Iterable[Doc],
    strategy: str | None = None,
    by: str = "accuracy",
    folds: int = FOLDS,
) -> FitResult:
    """Use annotated documents. See ``ArboLinker.fit``."""
    if strategy is not None:
        # The last one needs a training.
        check_choice("strategy", strategy, STRATEGIES[:-1])
    annotated = check_documents(linker, list(docs), by)
    chosen = choose_strategy(linker, annotated, strategy, by, folds)
    apply(linker, annotated, chosen.strategy, chosen.fit)
    return chosen
