"""``arbo fit``: what labelled mentions, or texts without labels, can be used for."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacy.cli._util import Arg, Opt
from wasabi import msg

from ..base.errors import Errors
from ..base.settings import check_choice
from ._util import user_errors, visible_lines, warn_of_lacking
from .arguments import CODE, GPU, MODEL, check_needs, open_model
from .documents import FIND, Reading, document_reader

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

    from ..fitting.strategies import FitComparison
    from ..linker import ArboLinker

DOCS = Arg(
    ...,
    help="Annotated .spacy file, or a folder of them; with --no-labels, any documents",
)
SAVED = Opt(
    None, "--output", "-o", help="Where to save the fitted pipeline; None for nowhere"
)
STRATEGY = Opt(
    "",
    "--strategy",
    help="Use the documents by this strategy of the table, without comparing",
)
BY = Opt(
    "accuracy",
    "--by",
    help="What strategies and thresholds are chosen by: accuracy (with NIL), f1",
)
FOLDS = Opt(
    5, "--folds", min=2, help="Parts of the documents; each is linked after the others"
)
TRAIN = Opt(
    False, "--train", help="Compare training too, once for each part: takes minutes"
)
THRESHOLDS = Opt(
    False, "--thresholds", help="Choose the threshold of links, nothing else"
)
COST = Opt(
    None,
    "--cost",
    min=0.0,
    help="How many missed links cost as much as a wrong one, not --by",
)
DROP = Opt(
    0.0, "--drop", help="Share of the entities to remove meanwhile: they are NIL"
)
SEED = Opt(0, "--seed", help="Determines which entities are removed")
CURVE = Opt(None, "--curve", help="CSV file of the scores at each threshold")
NO_LABELS = Opt(
    False,
    "--no-labels",
    help="Estimate how many entities the list lacks, without labels",
)
NOT_SAVED = "Nothing is saved. Give --output to save the fitted pipeline"


def fit_command(
    # fmt: off
    model: Path = MODEL,
    docs: Path = DOCS,
    output: Path | None = SAVED,
    strategy: str = STRATEGY,
    by: str = BY,
    folds: int = FOLDS,
    train: bool = TRAIN,
    thresholds: bool = THRESHOLDS,
    cost: float | None = COST,
    drop: float = DROP,
    seed: int = SEED,
    curve: Path | None = CURVE,
    no_labels: bool = NO_LABELS,
    find: str = FIND,
    gpu_id: int = GPU,
    code: Path | None = CODE,
    # fmt: on
) -> None:
    """Use labelled mentions in the best way.

    A pipeline can stay as it is, be calibrated, store the mentions as exemplars, do both, or be
    trained. Each strategy is scored on documents that it has not used. The simplest that is within
    one standard error of the best is taken, and applied to all documents.

    \b
    Example:
      python -m spacy arbo fit my_pipeline docs.spacy --output fitted
      python -m spacy arbo fit my_pipeline docs.spacy --train --by f1 --output fitted
      python -m spacy arbo fit my_pipeline docs.spacy --strategy calibrated --output fitted
      python -m spacy arbo fit my_pipeline docs.spacy --thresholds --cost 3 --output fitted
      python -m spacy arbo fit my_pipeline texts/ --no-labels --find names --output fitted
    """
    with user_errors():
        tunes = cost is not None or drop > 0 or curve is not None
        _check_options(thresholds, no_labels, tunes, bool(find))
        if no_labels:
            _estimate(model, docs, output, find)
        elif thresholds:
            _tune(model, docs, output, by, cost, drop, seed, curve)
        else:
            _fit(model, docs, output, strategy, by, folds, train)


def _check_options(
    thresholds: bool, no_labels: bool, tunes: bool, finds: bool
) -> None:
    if thresholds and no_labels:
        raise Errors.E831()
    if not thresholds:
        options = {"--cost, --drop or --curve": tunes}
        check_needs(options, "--thresholds", "only there are all thresholds tried")
    if not no_labels:
        check_needs(
            {"--find": finds}, "--no-labels", "labelled documents have their mentions"
        )


@contextmanager
def _saving(output: Path | None) -> Iterator[list["Language"]]:
    """Lock the output. The pipeline that is put into the list is saved at the end of the block."""
    from ..pipelines import changing_pipeline

    lock: Any = nullcontext() if output is None else changing_pipeline(output)
    fitted: list[Language] = []
    with lock as owner:
        yield fitted
        if output is None:
            msg.info(NOT_SAVED)
        else:
            owner.save(fitted[0])
            msg.good(f"{output}: saved")


def _annotated(nlp: "Language", path: Path) -> "list[Doc]":
    """The documents of a path. Raises ValueError where none has a labelled mention."""
    from ..corpora.docbin import read_docs
    from ..linker import find_linker
    from ..mentions.labels import check_some_annotated
    from ..mentions.record import gold_ids

    docs = list(read_docs(path, nlp.vocab))
    linker = find_linker(nlp)
    check_some_annotated(docs, linker.mentions.getter, path)
    spans = (span for doc in docs for span in linker.mentions.getter(doc))
    warn_of_lacking(
        Counter(kb_id for span in spans for kb_id in gold_ids(span)), linker.kb
    )
    return docs


def _fit(
    model: Path,
    path: Path,
    output: Path | None,
    strategy: str,
    by: str,
    folds: int,
    is_trained: bool,
) -> None:
    from ..fitting.fit import choose_strategy
    from ..fitting.strategies import (
        SHARES,
        STRATEGIES,
        TRAINED,
        apply,
        check_documents,
        trained_on,
    )
    from ..linker import find_linker
    from ..runs.short_run import train_copy

    if strategy:
        check_choice("strategy", strategy, STRATEGIES)
    with _saving(output) as fitted:
        nlp = open_model(model, path)
        linker = find_linker(nlp)
        docs = check_documents(linker, _annotated(nlp, path), by)

        def train(
            train_docs: Sequence["Doc"], watch: Callable[[], None]
        ) -> "Language":
            return train_copy(nlp, train_docs, SHARES, watch)

        compared = train if is_trained else None
        chosen = choose_strategy(linker, docs, strategy, by, folds, compared)
        if chosen.comparison is not None:
            _print_ways(chosen.comparison, linker, docs, path)
        if output is None:
            return
        if chosen.strategy == TRAINED:
            nlp = trained_on(docs, by, lambda train_docs: train_copy(nlp, train_docs))
        else:
            apply(linker, docs, chosen.strategy, chosen.fit)
        msg.good(f"{chosen.strategy}, with all {len(docs)} documents")
        fitted.append(nlp)


def _print_ways(
    comparison: "FitComparison", linker: "ArboLinker", docs: "list[Doc]", path: Path
) -> None:
    from rich.console import Console

    mentions = sum(
        bool(span.kb_id) for doc in docs for span in linker.mentions.getter(doc)
    )
    title = f"{mentions} mentions of {path}, held out: {comparison.folds} parts"
    Console(width=130).print(comparison.table(title))
    msg.info(comparison.advice)


def _estimate(model: Path, texts: Path, output: Path | None, find: str) -> None:
    from ..linker import find_linker

    with _saving(output) as fitted:
        nlp = open_model(model)
        linker = find_linker(nlp)
        with document_reader(nlp, linker, texts, Reading(find, "utf8", False)) as read:
            estimate = linker.estimate_coverage(read())
        msg.good(visible_lines(estimate))
        fitted.append(nlp)


def _tune(
    model: Path,
    path: Path,
    output: Path | None,
    by: str,
    cost: float | None,
    drop: float,
    seed: int,
    curve: Path | None,
) -> None:
    from rich.console import Console

    from ..fitting.strategies import criterion
    from ..fitting.tuning import as_csv, as_table, store, tune
    from ..linker import find_linker
    from ..storage.files import write_file

    with _saving(output) as fitted:
        nlp = open_model(model, path)
        # The saved knowledge base has all its entities.
        linker = find_linker(open_model(model) if drop else nlp)
        docs = _annotated(nlp, path)
        result = tune(linker, docs, drop, seed, criterion(by), cost)
        store(nlp, result)
        Console(width=130).print(as_table(result.rows, result.best))
        msg.good(f"threshold = {result.threshold:g}")
        fitted.append(nlp)
    if curve is not None:
        write_file(curve, as_csv(result.rows).encode("utf8"))
