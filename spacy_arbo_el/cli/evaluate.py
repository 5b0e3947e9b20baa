"""``arbo evaluate``: scores on annotated documents, and wrong links by cause."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from spacy.cli._util import Arg, Opt
from wasabi import msg

from ..base.errors import ArboError, Errors
from ._util import config_overrides, errors_for_people, visible_lines
from .arguments import CODE, DATA, GPU, LIMIT, open_model

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ..evaluation.outcomes import Outcome
    from ..evaluation.reliability import Reliability

# How many pairs of confused entities are printed.
N_CONFUSIONS = 10

DROP = Opt(
    0.0,
    "--drop",
    help="Share of the data's entities to remove from the KB; their mentions are NIL",
)
SEED = Opt(0, "--seed", help="Determines which entities are removed")
PLOTS = Opt(
    None, "--plots", help="Folder for figures of recall@k and of reliability; needs matplotlib"
)
REPORT = Opt(None, "--report", help="HTML page with the tables and figures; needs matplotlib")
ERRORS = Opt(
    [],
    "--errors",
    help="Where to list the wrong links of one pipeline by cause: an .html page or a .csv table; "
    "may be repeated",
)


@dataclass
class _Results:
    """Rows of scores, reliabilities and notes of all pipelines."""

    title: str
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    reliabilities: "dict[str, Reliability]" = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def evaluate_command(
    ctx: typer.Context,
    models: list[Path] = Arg(..., help="One or more pipelines"),
    data: Path = DATA,
    output: Path | None = Opt(None, "--output", "-o", help="JSON file for the scores"),
    drop: float = DROP,
    seed: int = SEED,
    plots: Path | None = PLOTS,
    report: Path | None = REPORT,
    errors: list[Path] = ERRORS,
    limit: int = LIMIT,
    gpu_id: int = GPU,
    code: Path | None = CODE,
) -> None:
    """Score pipelines on annotated documents.

    The annotated mentions are linked. Scores are the accuracy on seen and unseen entities, recall@k
    and NIL. With --errors, wrong links are listed by cause: the correct entity is not in the
    knowledge base, was not retrieved, or was ranked lower. The most confident come first. Settings
    of the pipelines are overridden as in spacy train.

    \b
    Example:
      python -m spacy arbo evaluate out/model-best dev.spacy --output scores.json
      python -m spacy arbo evaluate untrained out/model-best dev.spacy --report report.html
      python -m spacy arbo evaluate out/model-best dev.spacy --errors errors.html
    """
    from ..evaluation.inferences import inference_outcomes
    from ..evaluation.report import annotated_examples

    results = _Results(_title(data, drop))
    overrides = config_overrides(ctx)
    with errors_for_people():
        _check(models, errors, needs_plots=plots is not None or report is not None)
        for label, model in zip(_labels(models), models):
            nlp = open_model(model, data, config=overrides)
            examples = _held_out(nlp, annotated_examples(nlp, data, limit), drop, seed)
            outcomes = inference_outcomes(nlp, examples)
            _add(results, label, nlp, outcomes, errors)
            _advise(nlp, label, outcomes)
    _print(results)
    _write(results, output, plots, report)


def _advise(nlp: "Language", label: str, outcomes: "dict[str, list[Outcome]]") -> None:
    """Advise a fit where a tenth of the mentions has no entity, unless that was done."""
    from ..linker import find_linker

    gold = [one for one in next(iter(outcomes.values()), []) if one.gold is not None]
    nil = sum(not one.gold for one in gold)
    if nil and 10 * nil >= len(gold) and find_linker(nlp).is_uncalibrated:
        msg.info(
            f"{nil:,} of {len(gold):,} mentions have no entity, and {label} has the probabilities "
            "of the package. Fit them to such documents: spacy arbo fit MODEL DOCS"
        )


def _check(models: Sequence[Path], errors: Sequence[Path], needs_plots: bool) -> None:
    """Raise an error for what can't be written, before anything is linked."""
    from ..fitting.plots import check_plots

    if needs_plots:
        check_plots()
    if errors and len(models) > 1:
        raise ArboError(Errors.E838.format(count=len(models)))
    for path in errors:
        if path.suffix.lower() not in (".html", ".csv"):
            raise ArboError(Errors.E835.format(path=path))


def _labels(models: Sequence[Path]) -> list[str]:
    """Labels of rows: the names of pipelines' folders. Their paths if two share a name."""
    names = [model.name for model in models]
    return [name if names.count(name) == 1 else str(model) for name, model in zip(names, models)]


def _held_out(
    nlp: "Language", examples: "list[Example]", drop: float, seed: int
) -> "list[Example]":
    """Remove entities from the KB. Their mentions are NIL in the examples that are returned."""
    from ..corpora.docs import unlinked_examples
    from ..evaluation.holdout import remove_entities, with_removed_as_nil
    from ..linker import find_linker

    if not drop:
        return examples
    linker = find_linker(nlp)
    docs = [example.reference for example in examples]
    remove_entities(linker, docs, drop, seed)
    return unlinked_examples(with_removed_as_nil(docs, linker.kb))


def _title(data: Path, drop: float) -> str:
    title = f"Links on given mentions, {data}"
    return title + (f", {drop:.0%} of the entities dropped" if drop else "")


def _add(
    results: _Results,
    label: str,
    nlp: "Language",
    outcomes: "dict[str, list[Outcome]]",
    errors: Sequence[Path],
) -> None:
    """Add a pipeline's scores, and write its wrong links."""
    from ..evaluation.reliability import reliability_of_links
    from ..evaluation.report import CONFIGURED, score_rows
    from ..evaluation.wrong_links import summary, wrong_links
    from ..linker import find_linker

    linker = find_linker(nlp)
    configured = outcomes[CONFIGURED]
    scores = score_rows(nlp, outcomes)
    results.rows.update({f"{label}: {name}": row for name, row in scores.items()})
    reliability = results.reliabilities[label] = reliability_of_links(configured)
    results.rows[f"{label}: {CONFIGURED}"]["arbo_calibration_error"] = reliability.error
    wrong = wrong_links(linker, configured)
    total = sum(one.gold is not None for one in configured)
    results.notes += [
        f"{label}: {CONFIGURED}, expected calibration error {reliability.error:.3f}",
        f"{label}: {CONFIGURED}, {summary(wrong, total)}",
    ]
    _write_errors(errors, wrong, total, linker.threshold)


def _write_errors(paths: Sequence[Path], wrong: list[Any], total: int, threshold: float) -> None:
    from ..evaluation.wrong_links import as_csv, confusions, to_html
    from ..storage.files import write_file

    for path in paths:
        is_page = path.suffix.lower() == ".html"
        text = to_html(wrong, total, threshold) if is_page else as_csv(wrong)
        write_file(path, text.encode("utf8", "replace"))
        msg.good(f"{path}: wrong links")
    if paths:
        for count, gold, predicted in confusions(wrong)[:N_CONFUSIONS]:
            print(visible_lines(f"{count:5d} × {gold} → {predicted}"))


def _print(results: _Results) -> None:
    from rich.console import Console

    from ..evaluation.report import ROWS, as_table

    Console(width=160).print(as_table(results.rows, results.title))
    msg.text(ROWS)
    for note in results.notes:
        msg.info(note)


def _write(results: _Results, output: Path | None, plots: Path | None, report: Path | None) -> None:
    import srsly

    from ..storage.files import write_file

    if output is not None:
        write_file(output, srsly.json_dumps(results.rows, indent=2).encode("utf8"))
        msg.good(f"{output}: scores")
    if plots is not None:
        _write_plots(results, plots)
    if report is not None:
        write_file(report, _report(results).encode("utf8", "replace"))
        msg.good(f"{report}: tables and figures")


def _write_plots(results: _Results, folder: Path) -> None:
    from ..fitting.plots import plot_recall, plot_reliability, save_figure

    folder.mkdir(parents=True, exist_ok=True)
    save_figure(plot_recall(results.rows), folder / "recall.png")
    save_figure(plot_reliability(results.reliabilities), folder / "reliability.png")
    msg.good(f"{folder}: recall.png and reliability.png")


def _report(results: _Results) -> str:
    """The results as an HTML page."""
    from ..evaluation.report import ROWS, as_page
    from ..fitting.plots import inline_svg, plot_recall, plot_reliability

    reliability = inline_svg(plot_reliability(results.reliabilities))
    figures = {
        "Recall at k candidates": inline_svg(plot_recall(results.rows)),
        "How often links are right, by their probability": reliability,
    }
    return as_page(results.rows, results.title, [ROWS, *results.notes], figures)
