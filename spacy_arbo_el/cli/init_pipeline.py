"""``arbo init``: the untrained pipeline of a config."""

from pathlib import Path
from typing import Optional

import typer
from spacy.cli._util import Arg, Opt
from wasabi import msg

from ._util import config_overrides, errors_for_people
from .arguments import CODE, ENCODER


def init_command(
    # fmt: off
    ctx: typer.Context,
    config: Path = Arg(..., help="Training config"),
    output: Path = Arg(..., help="Folder of the pipeline to write"),
    train: Path = Opt(..., "--train", help="Training corpus; its mentions become exemplars"),
    kb: Path = Opt(..., "--kb", help="Knowledge base"),
    encoder: str = ENCODER,
    code: Optional[Path] = CODE,
    # fmt: on
) -> None:
    """Write the untrained pipeline of a config.

    It has the knowledge base, and the mentions of the training corpus as exemplars. Settings of the
    config are overridden as in spacy train.

    \b
    Example:
      python -m spacy arbo init linker.cfg untrained --train train.spacy --kb kb
    """
    import spacy
    from spacy.training.initialize import init_nlp

    from ..pipelines import changing_pipeline, save_pipeline

    paths = {"train": train, "dev": train, "kb": kb, "encoder": encoder}
    overrides = {f"paths.{name}": str(path) for name, path in paths.items()}
    overrides.update(config_overrides(ctx))
    with errors_for_people(), changing_pipeline(output):
        settings = spacy.util.load_config(config, overrides=overrides, interpolate=False)
        nlp = init_nlp(settings)
        save_pipeline(nlp, output)
    msg.good(f"{output}: untrained pipeline")
