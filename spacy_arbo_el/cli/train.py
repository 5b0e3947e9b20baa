"""``arbo train``: ``spacy train`` with checkpoints."""

import logging
from pathlib import Path

import typer
from spacy.cli._util import Arg, Opt
from wasabi import msg

from ._util import config_overrides, user_errors
from .arguments import GPU, RESUME, SHORT_CODE


def train_command(
    # fmt: off
    ctx: typer.Context,
    config: Path = Arg(..., help="Training config", exists=True),
    output: Path = Opt(
        ..., "--output", "-o", help="Folder for model-best and model-last"
    ),
    resume: bool = RESUME,
    code: Path | None = SHORT_CODE,
    verbose: bool = Opt(False, "--verbose", "-V", help="Show debug messages"),
    gpu_id: int = GPU,
    # fmt: on
) -> None:
    """Train as spacy train does, with checkpoints.

    Evaluations search 5,000 names of entities, or as many as training.eval_entities says, and all
    at the end. --resume continues an interrupted run. Override settings of the config as in spacy
    train, such as --paths.train corpus/train.spacy.

    \b
    Example:
      python -m spacy arbo train linker.cfg --output out --paths.train train.spacy \\
        --paths.dev dev.spacy --paths.kb kb
    """
    from spacy import util
    from spacy.cli._util import show_validation_error
    from spacy.training.initialize import init_nlp

    from ..base.settings import check_count
    from ..runs.evaluation import EVAL_ENTITIES
    from ..runs.loop import train

    util.logger.setLevel(logging.DEBUG if verbose else logging.INFO)
    overrides = config_overrides(ctx)
    with user_errors(only_coded=True):
        with show_validation_error(config):
            settings = util.load_config(config, overrides=overrides, interpolate=False)
        # spaCy's schema of this section has no such setting.
        names = settings["training"].pop("eval_entities", EVAL_ENTITIES)
        check_count("training.eval_entities", names)
        msg.divider("Initializing pipeline")
        with show_validation_error(config, hint_fill=False):
            nlp = init_nlp(settings, use_gpu=gpu_id)
        msg.good("Initialized pipeline")
        msg.divider("Training pipeline")
        train(nlp, output, use_gpu=gpu_id, resume=resume, eval_entities=names)
