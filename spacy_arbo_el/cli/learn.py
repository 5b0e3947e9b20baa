"""``arbo learn``: what to do with a few annotated documents."""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacy.cli._util import Opt
from wasabi import msg

from ._util import errors_for_people
from .arguments import CODE, DATA, GPU, MODEL, open_model

if TYPE_CHECKING:
    from rich.table import Table
    from spacy.tokens import Doc

    from ..fitting.learning import LearningWay
    from ..linker import ArboLinker

SAVED = Opt(
    None, "--output", "-o", help="Where to save the pipeline that has learned; None for nowhere"
)
FOLDS = Opt(5, "--folds", help="Parts of the documents; each is linked after the others")


def learn_command(
    # fmt: off
    model: Path = MODEL,
    data: Path = DATA,
    output: Path | None = SAVED,
    folds: int = FOLDS,
    train: bool = Opt(False, "--train", help="Train too, once for each part: takes minutes"),
    take: str = Opt("", "--take", help="The way to save, whatever the table says: a name of it"),
    gpu_id: int = GPU,
    code: Path | None = CODE,
    # fmt: on
) -> None:
    """Compare uses of annotated documents.

    A pipeline can stay as it is, be calibrated, store the mentions as exemplars, or be trained.
    Each is scored on documents that it has not used. The simplest that is within one standard error
    of the best is taken, and applied to all documents.

    \b
    Example:
      python -m spacy arbo learn my_pipeline docs.spacy --output learned
      python -m spacy arbo learn my_pipeline docs.spacy --train --output learned
      python -m spacy arbo learn my_pipeline docs.spacy --take exemplars --output learned
    """
    from rich.console import Console

    from ..corpora.docbin import read_docs
    from ..fitting.calibrate import annotated_docs
    from ..fitting.learning import best_way, compare_ways, use_way
    from ..linker import find_linker
    from ..mentions.labels import check_some_annotated
    from ..pipelines import changing_pipeline, save_pipeline
    from ..runs.advice import few_mentions

    lock: Any = nullcontext() if output is None else changing_pipeline(output)
    with errors_for_people(), lock:
        nlp = open_model(model, data)
        linker, docs = find_linker(nlp), list(read_docs(data, nlp.vocab))
        check_some_annotated(docs, linker.mentions.getter, data)
        docs = annotated_docs(linker, docs)
        for line in few_mentions(_count(linker, docs)) if train else ():
            msg.warn(line)
        ways = compare_ways(nlp, docs, folds=folds, train=train)
        best = best_way(ways)
        title = f"Links on given mentions, {data}, held out: {folds} parts"
        Console(width=130).print(_table(ways, title))
        msg.info(_advice(ways, best))
        if output is not None:
            save_pipeline(use_way(nlp, docs, take or best.name), output)
            msg.good(f"{output}: {take or best.name}, with all {len(docs)} documents")


def _count(linker: "ArboLinker", docs: "list[Doc]") -> int:
    """The number of annotated mentions."""
    return sum(bool(span.kb_id) for doc in docs for span in linker.mentions.getter(doc))


def _table(ways: "list[LearningWay]", title: str) -> "Table":
    from ..evaluation.report import table_of_numbers
    from ..fitting.learning import gain

    rows = []
    for way in ways:
        low, high = way.interval or (float("nan"), float("nan"))
        more, least, most = gain(way, ways[0])
        recall = way.recall_at_1
        rows.append(
            (
                way.name,
                str(len(way.outcomes)),
                f"{way.accuracy:.1%}",
                f"{low:.1%} to {high:.1%}",
                ""
                if way is ways[0]
                else f"{100 * more:+.1f} ({100 * least:+.1f} to {100 * most:+.1f})",
                "–" if recall is None else f"{recall:.1%}",
                f"{100 * way.calibration_error:.1f}",
                f"{way.seconds:.1f}",
            )
        )
    columns = ("mentions", "accuracy", "95 %", f"gain on {ways[0].name} (95 %)", "R@1", "ECE", "s")
    return table_of_numbers(title, columns, rows)


def _advice(ways: "list[LearningWay]", best: "LearningWay") -> str:
    highest = max(ways, key=lambda way: way.accuracy)
    if highest is best:
        return (
            f"Take: {best.name}. It has the highest accuracy, and no simpler way is within a "
            "standard error of it"
        )
    return (
        f"Take: {best.name}. It is simpler than {highest.name}, which has the highest accuracy, by "
        "less than a standard error"
    )
