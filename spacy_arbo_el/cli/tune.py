"""``arbo tune``: λ for linking and λ for new entities, by what annotated text says."""

from pathlib import Path
from typing import Optional

from spacy.cli._util import Arg, Opt
from wasabi import msg

from ._util import errors_for_people


def tune_command(
    # fmt: off
    model: Path = Arg(..., help="Pipeline with a linker"),
    dev: Path = Arg(..., help="Annotated .spacy that the linker was not trained on"),
    output: Optional[Path] = Opt(
        None, "--output", "-o", help="Where to write it; over the old one by default"
    ),
    drop: float = Opt(
        0.0,
        "--drop",
        help="Share of dev's entities to take out of the KB meanwhile, so that mentions are NIL",
    ),
    seed: int = Opt(0, "--seed", help="Chooses the entities dropped"),
    score: str = Opt(
        "arbo_acc", "--score", help="To tune linking by: arbo_acc, nel_micro_f, arbo_nil_f"
    ),
    discovery_score: str = Opt(
        "ari", "--discovery-score", help="To tune new entities by: ari, b3_f"
    ),
    curve: Optional[Path] = Opt(
        None,
        "--curve",
        help="CSV of the scores at each threshold: precision and recall of NIL and of links",
    ),
    # fmt: on
) -> None:
    """Tune λ for linking and λ for new entities, in one sweep; write them into the config."""
    import spacy
    from rich.console import Console

    from ..corpora.reader import read_docs
    from ..evaluation.report import find_linker
    from ..evaluation.tuning import as_csv, as_table, store, tune
    from ..io import write_file

    with errors_for_people():
        nlp = spacy.load(model)
        docs = list(read_docs(dev, nlp.vocab))
        tuned = tune(find_linker(nlp), docs, drop, seed, score, discovery_score)
        if drop:
            # The knowledge base that is saved is whole.
            nlp = spacy.load(model)
        store(nlp, tuned)
        nlp.to_disk(output or model)
        if curve is not None:
            write_file(curve, as_csv(tuned.linking).encode("utf8"))
    console = Console(width=130)
    console.print(as_table(tuned.linking, tuned.best_linking, "λ for linking"))
    if tuned.discovery is not None:
        rows = tuned.discovery.rows
        title = f"λ for new entities, {rows[0]['mentions']:g} mentions"
        console.print(as_table(rows, tuned.best_discovery, title))
    msg.good(f"{output or model}: {tuned.summary}")
