"""``arbo rerank``: train a cross-encoder for a trained pipeline."""

from itertools import islice
from pathlib import Path

import typer
from spacy.cli._util import Arg, Opt
from wasabi import msg

from ....cli._util import config_overrides, user_errors
from ....cli.arguments import (
    CODE,
    CONFIG,
    GPU,
    MODEL,
    check_annotated,
    open_model,
)

FOLDER = Opt(..., "--output", "-o", help="Folder for model-last")
LIMIT = Opt(0, "--limit", help="Maximum number of documents of TRAIN; 0 for no limit")


def rerank_command(
    ctx: typer.Context,
    model: Path = MODEL,
    train: Path = Arg(
        ..., help="Annotated .spacy to train on, such as the pipeline's own corpus"
    ),
    dev: Path = Arg(..., help="Annotated .spacy to fit probabilities on"),
    output: Path = FOLDER,
    config: Path | None = CONFIG,
    limit: int = LIMIT,
    gpu_id: int = GPU,
    code: Path | None = CODE,
) -> None:
    """Train a cross-encoder for a trained pipeline.

    It reads each mention together with its first candidates. Settings of the config are overridden
    as in spacy train.

    \b
    Example:
      python -m spacy arbo rerank out/model-best train.spacy dev.spacy --output reranked
      python -m spacy arbo rerank MODEL train.spacy dev.spacy -o reranked --training.max_epochs 1
    """
    from ....base.memory import bound_caches
    from ....corpora.docbin import read_docs
    from ....fitting.calibrate import calibrate_pipeline
    from ....linker import find_linker
    from ....pipelines import changing_pipeline
    from ..cross_encoder.reranker import read_config, set_reranker, train_reranker

    saved = output / "model-last"
    overrides = config_overrides(ctx)
    bound_caches()
    with user_errors():
        output.mkdir(parents=True, exist_ok=True)
    # Locked now, so that what can't be saved is not trained.
    with user_errors(only_coded=True), changing_pipeline(saved) as owner:
        for path in (train, dev):
            check_annotated(path)
        settings = read_config(config, overrides)
        nlp = open_model(model)
        linker = find_linker(nlp)
        corpus = list(islice(read_docs(train, nlp.vocab), limit or None))
        held_out = list(read_docs(dev, nlp.vocab))
        reranker = train_reranker(nlp, settings, corpus, held_out, msg.info)
        set_reranker(nlp, linker, reranker, settings["reranker"])
        calibrate_pipeline(nlp, held_out)
        owner.save(nlp)
    msg.good(f"{saved}: pipeline with a cross-encoder, calibrated on {dev}")
