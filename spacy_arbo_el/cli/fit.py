"""``arbo fit``: fit a pipeline to annotated documents, without training."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer
from spacy.cli._util import Opt
from wasabi import msg

from ._util import errors_for_people, visible_lines
from .arguments import CODE, HELD_OUT, MODEL, OUTPUT, changed_pipeline
from .documents import DOCUMENTS, FIND, Reading, document_reader

if TYPE_CHECKING:
    from ..fitting.tuning import TuningResult

fit_cli = typer.Typer(
    name="fit", help="Fit a pipeline to annotated documents.", no_args_is_help=True
)
DROP = Opt(
    0.0,
    "--drop",
    help="Share of the data's entities to remove from the KB while tuning: they are NIL",
)
SEED = Opt(0, "--seed", help="Determines which entities are removed")
SCORE = Opt("arbo_acc", "--score", help="Score for linking: arbo_acc, nel_micro_f or arbo_nil_f")
N_EXEMPLARS = Opt(
    [], "--n-exemplars", help="Number of exemplars to try in the inference; may be repeated"
)
N_MENTIONS = Opt([], "--n-mentions", help="Number of other mentions to try there; may be repeated")
N_NEIGHBORS = Opt(
    [], "--n-neighbors", help="Number of neighbours to try in discovery; may be repeated"
)
CURVE = Opt(
    None,
    "--curve",
    help="CSV file of the scores at each threshold: precision and recall of NIL and of links",
)
PLOT = Opt(None, "--plot", help="Figure of these scores, .png, .svg or .pdf; needs matplotlib")


@fit_cli.command("calibrate")
def calibrate_command(
    model: Path = MODEL,
    data: Path = HELD_OUT,
    output: Path | None = OUTPUT,
    code: Path | None = CODE,
) -> None:
    """Fit probabilities and the reranker.

    The curves from similarity to probability are printed.

    \b
    Example:
      python -m spacy arbo fit calibrate out/model-best dev.spacy --output calibrated
    """
    from ..corpora.docbin import read_docs
    from ..fitting.calibrate import calibrate_pipeline

    with changed_pipeline(model, output, data) as nlp:
        fitted = calibrate_pipeline(nlp, list(read_docs(data, nlp.vocab)))
    for name, parts in fitted.items():
        for kind, curve in parts.calibration.to_config().items():
            msg.info(f"{name}, {kind}: sigmoid({curve[0]:.2f} * similarity {curve[1]:+.2f})")
        if parts.reranker_accuracy is not None:
            right = f"{parts.reranker_accuracy:.1%} of the held-out mentions that have a right one"
            msg.info(f"{name}, reranker: the first candidate is right for {right}")


@fit_cli.command("coverage")
def coverage_command(
    model: Path = MODEL,
    texts: Path = DOCUMENTS,
    output: Path | None = OUTPUT,
    find: str = FIND,
    code: Path | None = CODE,
) -> None:
    """Estimate how many entities the list lacks.

    Texts without labels tell, if they are like those that are linked later. The estimate is the
    linker's coverage from then on; null there undoes it.

    \b
    Example:
      python -m spacy arbo fit coverage MODEL texts/ --find names
    """
    from ..linker import find_linker

    with changed_pipeline(model, output) as nlp:
        linker = find_linker(nlp)
        with document_reader(nlp, linker, texts, Reading(find, "utf8", False)) as read:
            estimate = linker.estimate_coverage(read())
    msg.good(f"{output or model}: {visible_lines(estimate)}")


@fit_cli.command("tune")
def tune_command(
    model: Path = MODEL,
    data: Path = HELD_OUT,
    output: Path | None = OUTPUT,
    drop: float = DROP,
    seed: int = SEED,
    score: str = SCORE,
    n_exemplars: list[int] = N_EXEMPLARS,
    n_mentions: list[int] = N_MENTIONS,
    n_neighbors: list[int] = N_NEIGHBORS,
    curve: Path | None = CURVE,
    plot: Path | None = PLOT,
    code: Path | None = CODE,
) -> None:
    """Tune the thresholds on annotated documents.

    Both thresholds, for linking and for discovery, are written to the pipeline's config. So is the
    best number of exemplars, of other mentions and of neighbours, if several are tried.

    \b
    Example:
      python -m spacy arbo fit tune out/model-best dev.spacy --drop 0.1 --output tuned
      python -m spacy arbo fit tune biocom dev.spacy --n-exemplars 1 --n-exemplars 5
    """
    from ..corpora.docbin import read_docs
    from ..fitting.plots import check_figure
    from ..fitting.tuning import store, tune
    from ..linker import find_linker
    from ..pipelines import load_pipeline

    with errors_for_people():
        if plot is not None:
            check_figure(plot)
    with changed_pipeline(model, output, data) as nlp:
        # The saved knowledge base has all its entities.
        linker = find_linker(load_pipeline(model) if drop else nlp)
        docs = list(read_docs(data, linker.vocab))
        numbers = {"n_exemplars": n_exemplars, "n_mentions": n_mentions, "n_neighbors": n_neighbors}
        result = tune(linker, docs, drop, seed, score, **numbers)
        store(nlp, result)
        _write_scores(result, curve, plot)
    _print_scores(result, score)
    msg.good(f"{output or model}: {result.summary}")


def _write_scores(result: "TuningResult", curve: Path | None, plot: Path | None) -> None:
    from ..fitting.plots import plot_thresholds, save_figure
    from ..fitting.tuning import as_csv
    from ..storage.files import write_file

    if curve is not None:
        write_file(curve, as_csv(result.linking).encode("utf8"))
    if plot is not None:
        save_figure(plot_thresholds(result.linking, result.best_linking), plot)


def _print_scores(result: "TuningResult", score: str) -> None:
    from rich.console import Console

    from ..fitting.tuning import as_table

    console = Console(width=130)
    for setting, tried in result.tried.items():
        for count, value in tried.items():
            msg.info(f"{setting} = {count}: {score} {value:.4f}")
    console.print(as_table(result.linking, result.best_linking, "λ for linking"))
    if result.discovery is not None:
        rows = result.discovery.rows
        title = f"λ for new entities, {rows[0]['mentions']:g} mentions"
        console.print(as_table(rows, result.best_discovery, title))
