"""The command ``arbo tune``: choose thresholds on annotated documents."""

from pathlib import Path
from typing import List, Optional

from spacy.cli._util import Opt
from wasabi import msg

from ._util import errors_for_people
from .arguments import CODE, HELD_OUT, MODEL, OUTPUT, changed_pipeline


def tune_command(
    # fmt: off
    model: Path = MODEL,
    data: Path = HELD_OUT,
    output: Optional[Path] = OUTPUT,
    drop: float = Opt(
        0.0,
        "--drop",
        help="Share of the data's entities to remove from the KB while tuning: they are NIL",
    ),
    seed: int = Opt(0, "--seed", help="Determines which entities are removed"),
    score: str = Opt(
        "arbo_acc", "--score", help="Score for linking: arbo_acc, nel_micro_f or arbo_nil_f"
    ),
    n_exemplars: List[int] = Opt(
        [], "--n-exemplars", help="Number of exemplars to try in the inference; may be repeated"
    ),
    n_mentions: List[int] = Opt(
        [], "--n-mentions", help="Number of other mentions to try there; may be repeated"
    ),
    n_neighbors: List[int] = Opt(
        [], "--n-neighbors", help="Number of neighbours to try in discovery; may be repeated"
    ),
    curve: Optional[Path] = Opt(
        None,
        "--curve",
        help="CSV file of the scores at each threshold: precision and recall of NIL and of links",
    ),
    plot: Optional[Path] = Opt(
        None, "--plot", help="Figure of these scores, .png, .svg or .pdf; needs matplotlib"
    ),
    code: Optional[Path] = CODE,
    # fmt: on
) -> None:
    """Tune the thresholds on annotated documents.

    Both thresholds, for linking and for discovery, are written to the pipeline's config. So is the
    best number of exemplars, of other mentions and of neighbours, if several are tried.

    \b
    Example:
      python -m spacy arbo tune out/model-best dev.spacy --drop 0.1 --output tuned
      python -m spacy arbo tune biocom dev.spacy --n-exemplars 1 --n-exemplars 5 --n-exemplars 15
    """
    from rich.console import Console

    from ..corpora.docbin import read_docs
    from ..evaluation.plots import check_figure, plot_thresholds, save_figure
    from ..evaluation.tuning import as_csv, as_table, store, tune
    from ..linker import find_linker
    from ..pipelines import load_pipeline
    from ..storage.files import write_file

    with errors_for_people():
        if plot is not None:
            check_figure(plot)
    with changed_pipeline(model, output, data) as nlp:
        # The saved knowledge base has all its entities.
        trial = load_pipeline(model) if drop else nlp
        docs = list(read_docs(data, trial.vocab))
        counts = {"n_exemplars": n_exemplars, "n_mentions": n_mentions}
        result = tune(
            find_linker(trial), docs, drop, seed, score, **counts, n_neighbors=n_neighbors
        )
        store(nlp, result)
        if curve is not None:
            write_file(curve, as_csv(result.linking).encode("utf8"))
        if plot is not None:
            save_figure(plot_thresholds(result.linking, result.best_linking), plot)
    console = Console(width=130)
    for setting, tried in result.tried.items():
        for count, value in tried.items():
            msg.info(f"{setting} = {count}: {score} {value:.4f}")
    console.print(as_table(result.linking, result.best_linking, "λ for linking"))
    if result.discovery is not None:
        rows = result.discovery.rows
        title = f"λ for new entities, {rows[0]['mentions']:g} mentions"
        console.print(as_table(rows, result.best_discovery, title))
    msg.good(f"{output or model}: {result.summary}")
