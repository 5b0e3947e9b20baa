"""``linker.fit`` and ``arbo fit``: documents used in the way that is best on documents held out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from io import StringIO

from rich.console import Console
from spacy.tokens import Doc

from ..base.settings import check_choice
from ..linker import ArboLinker
from .exemplar_fit import fit_beside_exemplars, keeping, restored
from .held_out import HeldOutFit, fit_held_out
from .ways import (
    BOTH,
    CALIBRATED,
    FOLDS,
    WAYS,
    FitComparison,
    Train,
    check_documents,
    compare_ways,
    criterion,
    use_way,
)

WIDTH = 110


@dataclass(frozen=True)
class FitResult:
    """How annotated documents are used.

    way: One of ``WAYS``.
    fit: What calibrating with the documents gives; None where it is not part of the way.
    comparison: All ways on documents held out; None where the way was given.
    """

    way: str
    fit: HeldOutFit | None = field(repr=False, compare=False)
    comparison: FitComparison | None

    def __str__(self) -> str:
        if self.comparison is None:
            return self.way
        console = Console(width=WIDTH, file=StringIO())
        console.print(self.comparison.table(f"Held out: {self.comparison.folds} parts"))
        return f"{console.file.getvalue()}{self.comparison.advice}"  # type: ignore[attr-defined]


def choose_way(
    linker: ArboLinker,
    docs: Sequence[Doc],
    way: str | None,
    by: str,
    folds: int,
    train: Train | None = None,
) -> FitResult:
    """The way that was given, or that which is best on documents held out.

    docs: Documents with annotated mentions, see ``check_documents``.
    train: As in ``compare_ways``.
    """
    if not way:
        comparison = compare_ways(linker, docs, by=by, folds=folds, train=train)
        name = comparison.best.name
        return FitResult(name, comparison.fits.get(name), comparison)
    if way not in (CALIBRATED, BOTH):
        return FitResult(way, None, None)
    with keeping(linker), restored(linker, docs):
        fit = fit_held_out(linker, docs, folds, criterion(by), linker.stages)
        if way == BOTH:
            fit = fit_beside_exemplars(linker, docs, fit)
    return FitResult(way, fit, None)


def fit_linker(
    linker: ArboLinker,
    docs: Iterable[Doc],
    way: str | None = None,
    by: str = "accuracy",
    folds: int = FOLDS,
) -> FitResult:
    """Use annotated documents. See ``ArboLinker.fit``."""
    if way is not None:
        # The last one needs a training.
        check_choice("way", way, WAYS[:-1])
    annotated = check_documents(linker, list(docs), by)
    chosen = choose_way(linker, annotated, way, by, folds)
    use_way(linker, annotated, chosen.way, chosen.fit)
    return chosen
