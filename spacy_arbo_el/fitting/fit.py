"""``linker.fit``: annotated documents, used in the way that is best on documents held out."""

from collections.abc import Iterable
from dataclasses import dataclass
from io import StringIO

from rich.console import Console
from spacy.tokens import Doc

from ..base.log import log
from ..linker import ArboLinker
from .held_out import fit_held_out
from .ways import (
    FOLDS,
    FitComparison,
    check_documents,
    check_way,
    compare_ways,
    criterion,
    use_way,
)

WIDTH = 110


@dataclass(frozen=True)
class FitResult:
    """How annotated documents were used.

    way: The name of the way.
    comparison: All ways on documents held out; None where the way was given.
    """

    way: str
    comparison: FitComparison | None

    def __str__(self) -> str:
        if self.comparison is None:
            return self.way
        console = Console(width=WIDTH, file=StringIO())
        console.print(self.comparison.table(f"Held out: {self.comparison.folds} parts"))
        return f"{console.file.getvalue()}{self.comparison.advice}"  # type: ignore[attr-defined]


def fit_linker(
    linker: ArboLinker,
    docs: Iterable[Doc],
    way: str | None = None,
    by: str = "accuracy",
    folds: int = FOLDS,
) -> FitResult:
    """Use annotated documents. See ``ArboLinker.fit``."""
    annotated = check_documents(linker, list(docs), by)
    if way is not None:
        check_way(way, is_trained=False)
        fit = fit_held_out(linker, annotated, folds, criterion(by))
        use_way(linker, annotated, way, fit)
        return FitResult(way, None)
    comparison = compare_ways(linker, annotated, by=by, folds=folds, say=log.info)
    taken = comparison.best.name
    use_way(linker, annotated, taken, comparison.fit)
    return FitResult(taken, comparison)
