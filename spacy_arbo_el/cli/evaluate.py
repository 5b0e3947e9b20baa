"""``arbo evaluate``: scores on annotated documents, and wrong links by cause."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from spacy.cli._util import Arg, Opt
from wasabi import msg

from ..base.errors import Errors
from ._util import config_overrides, user_errors
from .arguments import CODE, DATA, GPU, LIMIT, open_model

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ..evaluation.outcomes import Outcome

DROP = Opt(
    0.0,
    "--drop",
    help="Share of the data's entities to remove from the KB; their mentions are NIL",
)
SEED = Opt(0, "--seed", help="Determines which entities are removed")
ERRORS = Opt(
    None, "--errors", help="CSV table of the wrong links of one pipeline, by cause"
)


@dataclass
class _Results:
    title: str
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def evaluate_command(
    ctx: typer.Context,
    models: list[Path] = Arg(..., help="One or more pipelines"),
    data: Path = DATA,
    output: Path | None = Opt(None, "--output", "-o", help="JSON file for the scores"),
    drop: float = DROP,
    seed: int = SEED,
    errors: Path | None = ERRORS,
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
      python -m spacy arbo evaluate untrained out/model-best dev.spacy
      python -m spacy arbo evaluate out/model-best dev.spacy --errors errors.csv
    """
    from ..evaluation.report import annotated_examples, inference_outcomes
    from ..storage.files import write_json

    title = f"Links on given mentions, {data}"
    if drop:
        title += f", {drop:.0%} of the entities dropped"
    results = _Results(title)
    overrides = config_overrides(ctx)
    with user_errors():
        _check(models, errors)
        for label, model in zip(_labels(models), models):
            nlp = open_model(model, data, config=overrides)
            examples = _held_out(nlp, annotated_examples(nlp, data, limit), drop, seed)
            outcomes = inference_outcomes(nlp, examples)
            _add(results, label, nlp, outcomes, errors)
    _print(results)
    if output is not None:
        write_json(output, results.rows, indent=2)
        msg.good(f"{output}: scores")


def _check(models: Sequence[Path], errors: Path | None) -> None:
    if errors is not None and len(models) > 1:
        raise Errors.E838(count=len(models))
    if errors is not None and errors.suffix.lower() != ".csv":
        raise Errors.E835(path=errors, suffixes=".csv")


def _labels(models: Sequence[Path]) -> list[str]:
    """Labels of rows: the names of pipelines' folders. Their paths if two share a name."""
    names = [model.name for model in models]
    return [
        name if names.count(name) == 1 else str(model)
        for name, model in zip(names, models)
    ]


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


def _add(
    results: _Results,
    label: str,
    nlp: "Language",
    outcomes: "dict[str, list[Outcome]]",
    errors: Path | None,
) -> None:
    from ..evaluation.reliability import error_of_links
    from ..evaluation.report import CONFIGURED, score_rows
    from ..evaluation.wrong_links import as_csv, summary, wrong_links
    from ..linker import find_linker
    from ..storage.files import write_file

    linker = find_linker(nlp)
    configured = outcomes[CONFIGURED]
    scores = score_rows(nlp, outcomes)
    results.rows.update({f"{label}: {name}": row for name, row in scores.items()})
    error = error_of_links(configured)
    results.rows[f"{label}: {CONFIGURED}"]["arbo_calibration_error"] = error
    wrong = wrong_links(linker, configured)
    total = sum(outcome.gold is not None for outcome in configured)
    results.notes += [
        f"{label}: {CONFIGURED}, expected calibration error {error:.3f}",
        f"{label}: {CONFIGURED}, {summary(wrong, total)}",
    ]
    if errors is not None:
        write_file(errors, as_csv(wrong).encode("utf8", "replace"))
        msg.good(f"{errors}: wrong links")


def _print(results: _Results) -> None:
    from rich.console import Console

    from ..evaluation.report import ROWS, as_table

    Console(width=160).print(as_table(results.rows, results.title))
    msg.text(ROWS)
    for note in results.notes:
        msg.info(note)
