"""``arbo evaluate``: scores on annotated documents."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple

from spacy.cli._util import Arg, Opt
from wasabi import msg

from ..errors import ArboError, Errors
from ._util import errors_for_people, visible_lines
from .arguments import CODE, DATA, GPU, LIMIT, open_model

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ..evaluation.reliability import Reliability
    from ..evaluation.wrong_links import WrongLink

# How many pairs of confused entities are printed.
N_CONFUSIONS = 10


def evaluate_command(
    # fmt: off
    models: List[Path] = Arg(..., help="One or more pipelines"),
    data: Path = DATA,
    output: Optional[Path] = Opt(None, "--output", "-o", help="JSON file for the scores"),
    folds: int = Opt(
        0, "--folds", help="Parts for cross-validation: calibrate on the others; 0 for none"
    ),
    tune: str = Opt(
        "",
        "--tune",
        help="With --folds: choose the threshold on the other parts too, by a score: arbo_acc, "
        "arbo_nil_f or nel_micro_f",
    ),
    drop: float = Opt(
        0.0,
        "--drop",
        help="Share of the data's entities to remove from the KB; their mentions are NIL",
    ),
    seed: int = Opt(0, "--seed", help="Determines which entities are removed"),
    labels: Optional[Path] = Opt(
        None,
        "--labels",
        help="The only entities to link to: a file with an id per line, or entities as JSONL, "
        "which may be new ones. Mentions of others are NIL",
    ),
    baselines: bool = Opt(False, "--baselines", help="Add a row for TF-IDF over names"),
    plots: Optional[Path] = Opt(
        None, "--plots", help="Folder for figures of recall@k and of reliability; needs matplotlib"
    ),
    report: Optional[Path] = Opt(
        None, "--report", help="HTML page with the tables and figures; needs matplotlib"
    ),
    wrong: List[Path] = Opt(
        [],
        "--errors",
        help="Where to list the wrong links of one pipeline by cause: an .html page or a .csv "
        "table; may be repeated",
    ),
    limit: int = LIMIT,
    gpu_id: int = GPU,
    code: Optional[Path] = CODE,
    # fmt: on
) -> None:
    """Score pipelines on annotated documents.

    The annotated mentions are linked. Scores are the accuracy on seen and unseen entities, recall@k
    and NIL.

    The baseline searches the knowledge base of the first pipeline by the mention's text alone, with
    TF-IDF of characters over all names.

    With --errors, wrong links are listed by cause: the correct entity is not in the knowledge base,
    was not retrieved, or was ranked lower. Each has its sentence, the correct and the linked
    entity, the candidates and the path. The most confident come first.

    \b
    Example:
      python -m spacy arbo evaluate out/model-best dev.spacy --output scores.json
      python -m spacy arbo evaluate out/model-best dev.spacy --baselines
      python -m spacy arbo evaluate untrained out/model-best dev.spacy --folds 5
      python -m spacy arbo evaluate out/model-best dev.spacy --folds 5 --tune arbo_acc
      python -m spacy arbo evaluate out/model-best dev.spacy --folds 5 --plots figures
      python -m spacy arbo evaluate out/model-best dev.spacy --folds 5 --report report.html
      python -m spacy arbo evaluate out/model-best dev.spacy --errors errors.html
    """
    from rich.console import Console

    from ..evaluation.plots import check_plots
    from ..evaluation.reliability import Reliability, reliability_of_links
    from ..evaluation.report import (
        CONFIGURED,
        ROWS,
        annotated_examples,
        as_table,
        inference_outcomes,
        score_rows,
    )
    from ..evaluation.wrong_links import summary, wrong_links
    from ..linker import find_linker

    n_labels: Optional[int] = None
    rows: Dict[str, Dict[str, Any]] = {}
    reliabilities: Dict[str, Reliability] = {}
    errors: Dict[str, str] = {}
    with errors_for_people():
        if plots is not None or report is not None:
            check_plots()
        _check_errors(models, wrong)
        for label, model in zip(_labels(models), models):
            nlp = open_model(model, data)
            examples, n_labels = _held_out(
                nlp, annotated_examples(nlp, data, limit), labels, drop, seed
            )
            if baselines and not rows:
                rows["baseline: TF-IDF"] = _tfidf(nlp, examples)
            results = inference_outcomes(nlp, examples, folds, tune)
            rows.update({f"{label}: {name}": row for name, row in score_rows(nlp, results).items()})
            reliabilities[label] = reliability_of_links(results[CONFIGURED])
            rows[f"{label}: {CONFIGURED}"]["arbo_calibration_error"] = reliabilities[label].error
            configured = results[CONFIGURED]
            total = sum(one.gold is not None for one in configured)
            linker = find_linker(nlp)
            found = wrong_links(linker, configured)
            errors[label] = summary(found, total)
            _write_errors(wrong, found, total, linker.threshold)
    title = _title(data, folds, tune, n_labels, drop)
    notes: List[str] = []
    for label, reliability in reliabilities.items():
        notes.append(f"{label}: {CONFIGURED}, expected calibration error {reliability.error:.3f}")
        notes.append(f"{label}: {CONFIGURED}, {errors[label]}")
    Console(width=160).print(as_table(rows, title))
    msg.text(ROWS)
    for note in notes:
        msg.info(note)
    if output is not None:
        _write_scores(output, rows)
    if plots is not None:
        _write_plots(plots, rows, reliabilities)
    if report is not None:
        _write_report(report, title, rows, [ROWS, *notes], reliabilities)


def _check_errors(models: Sequence[Path], paths: Sequence[Path]) -> None:
    """Raise ValueError unless the errors of one pipeline are to be written in a known format."""
    if paths and len(models) > 1:
        raise ArboError(Errors.E838.format(count=len(models)))
    for path in paths:
        if path.suffix.lower() not in (".html", ".csv"):
            raise ArboError(Errors.E835.format(path=path))


def _write_errors(
    paths: Sequence[Path], wrong: "List[WrongLink]", total: int, threshold: float
) -> None:
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


def _labels(models: Sequence[Path]) -> List[str]:
    """Labels of rows: the names of pipelines' folders. Their paths if two share a name."""
    names = [model.name for model in models]
    return [name if names.count(name) == 1 else str(model) for name, model in zip(names, models)]


def _held_out(
    nlp: "Language", examples: "List[Example]", labels: Optional[Path], drop: float, seed: int
) -> "Tuple[List[Example], Optional[int]]":
    """Remove entities from the KB. Their mentions are NIL in the examples that are returned.

    RETURNS: The examples, and the number of labels, None without a file of them.
    """
    from spacy.training import Example

    from ..corpora.docs import unlinked
    from ..evaluation.holdout import remove_entities, restrict_entities, with_removed_as_nil
    from ..linker import find_linker

    if not drop and labels is None:
        return examples, None
    linker = find_linker(nlp)
    docs = [example.reference for example in examples]
    n_labels = None if labels is None else restrict_entities(linker, labels)
    if drop:
        remove_entities(linker, docs, drop, seed)
    docs = with_removed_as_nil(docs, linker.kb)
    return [Example(unlinked(doc), doc) for doc in docs], n_labels


def _tfidf(nlp: "Language", examples: "List[Example]") -> Dict[str, Any]:
    from ..evaluation.baselines import NameTfidf, baseline_scores
    from ..evaluation.report import seen_by
    from ..linker import find_linker

    linker = find_linker(nlp)
    rank = NameTfidf.build(linker.kb.entities.items())
    return baseline_scores(linker, examples, rank, seen_by(linker))


def _title(data: Path, folds: int, tune: str, n_labels: Optional[int], drop: float) -> str:
    title = f"Links on given mentions, {data}"
    title += f", calibrated on the other parts of {folds}" if folds >= 2 else ""
    title += f", threshold by {tune}" if tune else ""
    title += f", {n_labels} labels" if n_labels is not None else ""
    return title + (f", {drop:.0%} of the entities dropped" if drop else "")


def _write_scores(path: Path, rows: Dict[str, Dict[str, Any]]) -> None:
    import srsly

    from ..storage.files import write_file

    write_file(path, srsly.json_dumps(rows, indent=2).encode("utf8"))
    msg.good(f"{path}: scores")


def _write_plots(
    folder: Path, rows: Dict[str, Dict[str, Any]], reliabilities: "Dict[str, Reliability]"
) -> None:
    from ..evaluation.plots import plot_recall, plot_reliability, save_figure

    folder.mkdir(parents=True, exist_ok=True)
    save_figure(plot_recall(rows), folder / "recall.png")
    save_figure(plot_reliability(reliabilities), folder / "reliability.png")
    msg.good(f"{folder}: recall.png and reliability.png")


def _write_report(
    path: Path,
    title: str,
    rows: Dict[str, Dict[str, Any]],
    notes: List[str],
    reliabilities: "Dict[str, Reliability]",
) -> None:
    from ..evaluation.plots import inline_svg, plot_recall, plot_reliability
    from ..evaluation.report import as_page
    from ..storage.files import write_file

    figures = {
        "Recall at k candidates": inline_svg(plot_recall(rows)),
        "How often links are right, by their probability": inline_svg(
            plot_reliability(reliabilities)
        ),
    }
    write_file(path, as_page(rows, title, notes, figures).encode("utf8", "replace"))
    msg.good(f"{path}: tables and figures")
