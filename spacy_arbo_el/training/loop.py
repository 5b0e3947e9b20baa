"""spaCy's training loop with checkpoints, so that an interrupted run can be resumed."""

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Callable, Dict, List, Optional

from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.training.loop import (
    DIR_MODEL_BEST,
    DIR_MODEL_LAST,
    clean_output_dir,
    create_before_to_disk_callback,
    create_evaluation_callback,
    create_train_batches,
    train_while_improving,
    update_meta,
)
from spacy.util import registry, resolve_dot_names
from thinc.api import Optimizer, fix_random_seed, set_gpu_allocator
from wasabi import Printer

from ..errors import Errors
from ..io import PIPELINE, replacing_folder
from ..pipelines import save_pipeline
from .checkpoint import Checkpoint, Evaluation, read_checkpoint
from .resume import ResumableRun, check_same_config

CHECKPOINT = "checkpoint.safetensors"


def train(
    nlp: Language,
    output: Path,
    *,
    use_gpu: int = -1,
    resume: bool = False,
    every: int = 0,
    stdout: IO = sys.stdout,
    stderr: IO = sys.stderr,
) -> None:
    """Train an initialized pipeline as ``spacy train`` does, and write checkpoints.

    The last step is evaluated as well, whatever ``eval_frequency`` is.

    A resumed run first reads the batches that it has already trained on, without training, so that
    the order of batches, the schedules and early stopping are those of an uninterrupted run. Then
    it restores the state of the checkpoint. On one machine the result is the same bit by bit. It
    is nearly the same where an epoch brings mentions that ``initialize`` did not see.

    nlp: The pipeline.
    output: The folder for model-best, model-last and the checkpoint, which is removed at the end.
    use_gpu: The number of the GPU, -1 for the CPU.
    resume: Whether to resume from the folder's checkpoint. Without a checkpoint, as after the end
        of a training, a new run starts.
    every: Steps between checkpoints; 0 for one at each evaluation only.
    stdout: Where the log is written.
    stderr: Where the progress bar is written.
    """
    config = nlp.config.interpolate()
    output.mkdir(parents=True, exist_ok=True)
    path = output / CHECKPOINT
    checkpoint = read_checkpoint(path) if resume else None
    if checkpoint is not None:
        check_same_config(path, checkpoint.history.config, config.to_str())
    settings = _resolve_settings(config["training"], use_gpu)
    train_corpus, dev_corpus = resolve_dot_names(
        config, [settings["train_corpus"], settings["dev_corpus"]]
    )
    optimizer, frozen = settings["optimizer"], settings["frozen_components"]
    evaluate = create_evaluation_callback(nlp, dev_corpus, settings["score_weights"])
    evaluate = _calibrated_first(settings["before_to_disk"], nlp, evaluate)
    run = ResumableRun(nlp, optimizer, evaluate, config.to_str(), path, checkpoint)
    batches = create_train_batches(nlp, train_corpus, settings["batcher"], settings["max_epochs"])
    steps = train_while_improving(
        nlp,
        optimizer,
        run.read_batches(batches),
        run.evaluate,
        dropout=settings["dropout"],
        accumulate_gradient=settings["accumulate_gradient"],
        patience=settings["patience"],
        max_steps=settings["max_steps"],
        eval_frequency=settings["eval_frequency"],
        exclude=frozen,
        annotating_components=settings["annotating_components"],
        before_update=settings["before_update"],
    )
    if checkpoint is None:
        clean_output_dir(output)
        path.unlink(missing_ok=True)
    _write_introduction(nlp, optimizer, frozen, checkpoint, stdout)
    writer = _PipelineWriter(nlp, settings, output)
    with nlp.select_pipes(disable=frozen):
        log_step, finalize_logger = settings["logger"](nlp, stdout, stderr)
    is_unsaved = True
    try:
        for info, is_best in run.with_final_evaluation(steps):
            is_evaluated = is_best is not None
            if run.is_replaying:
                run.replay(info, is_evaluated)
            else:
                is_unsaved = not is_evaluated
                if is_evaluated:
                    writer.save_evaluated(info, bool(is_best))
                if is_evaluated or (every and info["step"] % every == every - 1):
                    run.save(info, is_evaluated)
            log_step(info if is_evaluated else None)
        if run.is_replaying:
            # The corpus ended before the checkpoint's last step.
            raise ValueError(Errors.E603.format(path=path))
    finally:
        finalize_logger()
        if is_unsaved and not run.is_replaying:
            writer.save()
    path.unlink(missing_ok=True)
    stdout.write(Printer(no_print=True).good(f"Saved pipeline to {output / DIR_MODEL_LAST}") + "\n")


def _resolve_settings(training: Dict[str, Any], use_gpu: int) -> Dict[str, Any]:
    """The training settings of a config with their objects, after seeding random generators."""
    if training["seed"] is not None:
        fix_random_seed(training["seed"])
    if use_gpu >= 0 and training["gpu_allocator"]:
        set_gpu_allocator(training["gpu_allocator"])
    return registry.resolve(training, schema=ConfigSchemaTraining)


def _calibrated_first(
    callback: Optional[Callable], nlp: Language, evaluate: Callable[[], Evaluation]
) -> Callable[[], Evaluation]:
    """Evaluate the pipeline as it would be saved, which means calibrated.

    callback: The callback that runs before the pipeline is saved. It also runs before each
        evaluation if it asks for that by ``before_scoring``, as ``Calibrate`` does.
    """
    if callback is None or not getattr(callback, "before_scoring", False):
        return evaluate

    def calibrate_and_evaluate() -> Evaluation:
        callback(nlp)
        return evaluate()

    return calibrate_and_evaluate


@dataclass(frozen=True)
class _PipelineWriter:
    """Saves the pipeline during training, with averaged weights where the optimizer has any.

    Each folder is replaced in one step, so that both are whole whenever training is stopped.

    nlp: The pipeline.
    settings: The training settings, resolved.
    output: The folder for model-last and model-best.
    """

    nlp: Language
    settings: Dict[str, Any]
    output: Path

    def save(self) -> None:
        """Write model-last."""
        before_to_disk = create_before_to_disk_callback(self.settings["before_to_disk"])
        with self.nlp.use_params(self.settings["optimizer"].averages):
            save_pipeline(before_to_disk(self.nlp), self.output / DIR_MODEL_LAST)

    def save_evaluated(self, info: Dict[str, Any], is_best: bool) -> None:
        """Write model-last with the scores of an evaluation, and model-best if it is the best.

        info: What the training loop reports; the folder is added to it.
        """
        with self.nlp.select_pipes(disable=self.settings["frozen_components"]):
            update_meta(self.settings, self.nlp, info)
        self.save()
        if is_best:
            with replacing_folder(self.output / DIR_MODEL_BEST, PIPELINE) as folder:
                shutil.copytree(self.output / DIR_MODEL_LAST, folder, dirs_exist_ok=True)
        info["output_path"] = str(self.output / DIR_MODEL_LAST)


def _write_introduction(
    nlp: Language,
    optimizer: Optimizer,
    frozen: List[str],
    checkpoint: Optional[Checkpoint],
    stdout: IO,
) -> None:
    """Write what is trained, before the first step."""
    lines = [f"Pipeline: {nlp.pipe_names}"]
    if frozen:
        lines.append(f"Frozen components: {frozen}")
    lines.append(f"Initial learn rate: {optimizer.learn_rate}")
    if checkpoint is not None:
        lines.append(f"Resuming after step {checkpoint.history.step}")
    for line in lines:
        stdout.write(Printer(no_print=True).info(line) + "\n")
