"""The command ``arbo pretrain``: train an encoder on entity names."""

from pathlib import Path
from typing import Optional

import typer
from spacy.cli._util import Arg, Opt
from wasabi import msg

from ._util import config_overrides, errors_for_people
from .arguments import CODE, CONFIG, ENCODER, GPU, RESUME


def pretrain_command(
    # fmt: off
    ctx: typer.Context,
    kb: Path = Arg(..., help="Knowledge base, or file of entities", exists=True),
    output: Path = Opt(..., "--output", "-o", help="Folder for the encoder"),
    config: Optional[Path] = CONFIG,
    encoder: str = ENCODER,
    resume: bool = RESUME,
    gpu_id: int = GPU,
    code: Optional[Path] = CODE,
    # fmt: on
) -> None:
    """Pretrain an encoder on names of entities.

    Names of one entity become similar, those of different ones dissimilar. The result is a Hugging
    Face model: train with --paths.encoder OUTPUT. Settings of the config are overridden as in spacy
    train.

    \b
    Example:
      python -m spacy arbo pretrain kb --output encoder
      python -m spacy arbo pretrain HumanDO.obo --output encoder --training.max_steps 500
    """
    from spacy.cli._util import show_validation_error
    from spacy.training.initialize import init_nlp
    from spacy.training.loop import DIR_MODEL_LAST

    from ..linker import find_linker
    from ..pipelines import load_pipeline
    from ..storage.folders import check_replaceable
    from ..training.loop import train
    from ..training.pretraining import (
        ENCODER,
        check_one_encoder,
        pretraining_config,
        save_encoder,
    )

    overrides = {"paths.encoder": encoder, **config_overrides(ctx)}
    # For the checkpoints.
    work = output.with_name(f"{output.name}.work")
    with errors_for_people(only_coded=True):
        check_replaceable(output, ENCODER)
        with show_validation_error(config):
            settings = pretraining_config(config, kb, overrides)
        msg.divider("Reading names")
        with show_validation_error(config, hint_fill=False):
            nlp = init_nlp(settings, use_gpu=gpu_id)
        linker = find_linker(nlp)
        check_one_encoder(linker)
        msg.divider("Pretraining encoder")
        train(nlp, work, use_gpu=gpu_id, resume=resume)
        # The training may have ended before.
        trained = load_pipeline(work / DIR_MODEL_LAST)
        save_encoder(find_linker(trained), output)
    msg.good(f"{output}: train with --paths.encoder {output}")
