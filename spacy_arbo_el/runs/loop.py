"""spaCy's training loop with checkpoints for resuming."""

import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.training import Example
from spacy.training.loop import (
    DIR_MODEL_BEST,
    DIR_MODEL_LAST,
    clean_output_dir,
    create_before_to_disk_callback,
    create_train_batches,
    train_while_improving,
    update_meta,
)
from spacy.util import registry, resolve_dot_names
from thinc.api import Optimizer, fix_random_seed, set_gpu_allocator
from wasabi import Printer

from ..base.errors import Errors
from ..base.log import log
from ..base.memory import bound_caches
from ..linker import linkers_of
from ..pipelines import PIPELINE, load_pipeline, save_pipeline
from ..storage.folders import replacing_folder
from ..training.trainer import TrainingDiverged
from .checkpoint import (
    CHECKPOINT,
    Checkpoint,
    Evaluation,
    checkpoint_to_resume,
    identity_of,
    write_end,
)
from .evaluation import (
    EVAL_ENTITIES,
    LimitedSearch,
    create_evaluation,
    describe,
    divides,
    gain_of_training,
    is_chosen,
)

# What the training loop reports of a step, and whether it was evaluated
LoopStep = tuple[dict[str, Any], bool]
# Examples with the number of their epoch
Batch = tuple[int, list[Example]]


class ResumableLoop:
    """The steps and evaluations of one training.

    In a run that is resumed, the batches up to the checkpoint are empty and their evaluations are
    the recorded ones. So the loop trains nothing, and counts steps and epochs, moves its schedules
    and stops early as in the first run. Then the checkpoint is restored.

    checkpoint: The checkpoint to resume from; None for a new run.
    evaluations: All evaluations so far.
    """

    def __init__(
        self,
        nlp: Language,
        optimizer: Optimizer,
        evaluator: Callable[[], Evaluation],
        path: Path,
        checkpoint: Checkpoint | None,
    ):
        self._nlp = nlp
        self._optimizer = optimizer
        self._evaluator = evaluator
        self._path = path
        self._checkpoint = checkpoint
        self._done = -1 if checkpoint is None else checkpoint.step
        self._recorded = [] if checkpoint is None else list(checkpoint.evaluations)
        self.evaluations: list[Evaluation] = []

    def batches(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The batches of a run from its start, those up to the checkpoint without examples."""
        for step, (epoch, batch) in enumerate(batches):
            yield epoch, batch if step > self._done else []

    def evaluate(self) -> Evaluation:
        """Evaluate the pipeline, or give the recorded evaluation."""
        if self._recorded:
            evaluation = self._recorded.pop(0)
        else:
            log.info("Evaluating the pipeline as it would be saved now")
            evaluation = self._evaluator()
        self.evaluations.append(evaluation)
        return evaluation

    def steps(
        self, steps: Iterator[tuple[Any, dict[str, Any], bool | None]]
    ) -> Iterator[LoopStep]:
        """Yield the loop's reports, with a final evaluation. There is a report for each trained
        step.

        spaCy does not score the steps after the last regular evaluation, and so never keeps them
        as the best.
        """
        info: dict[str, Any] = {"step": -1}
        is_evaluated = True
        for _, info, is_best in steps:
            is_evaluated = is_best is not None
            if info["step"] > self._done:
                yield info, is_evaluated
            elif info["step"] == self._done and self._checkpoint is not None:
                self._checkpoint.restore(self._nlp.pipeline, self._optimizer)
        if info["step"] < self._done:
            raise Errors.E603(path=self._path)
        if is_evaluated:
            return
        with self._nlp.use_params(self._optimizer.averages or {}):
            score, other_scores = self.evaluate()
        info["checkpoints"].append((score, info["step"]))
        yield {**info, "score": score, "other_scores": other_scores}, True


def train(
    nlp: Language,
    output: Path,
    *,
    use_gpu: int = -1,
    resume: bool = False,
    eval_entities: int = EVAL_ENTITIES,
    stdout: IO | None = None,
    stderr: IO | None = None,
) -> None:
    """Train an initialized pipeline as ``spacy train`` does, with checkpoints.

    The last step is evaluated as well, whatever ``eval_frequency`` is.

    A checkpoint is written at each evaluation: weights, optimizer and step. A resumed run continues
    with the batch after it. Later random draws are not those that an uninterrupted run draws: the
    result is that of another seed.

    output: The folder for model-best, model-last and the checkpoint. At the end, a small file
        takes the checkpoint's place, which says that the training has ended.
    use_gpu: The number of the GPU, -1 for the CPU.
    resume: Whether to resume from the folder's checkpoint. Without a checkpoint a new run starts.
        After the end of a training nothing is done, unless settings or data are others now: then
        a new run starts.
    eval_entities: The number of names that evaluations search; 0 for all. At the end, the last and
        the best pipeline are evaluated with all, whose scores are saved. Until then, rankers and
        curves are fitted on halves of the dev set, then on fifths.
    stdout: Where the log is written; None for ``sys.stdout``.
    stderr: Where the progress bar is written; None for ``sys.stderr``.
    """
    stdout = stdout or sys.stdout
    stderr = stderr or sys.stderr
    bound_caches()
    training = _Training.of(nlp, output, use_gpu, eval_entities)
    checkpoint = (
        checkpoint_to_resume(training.path, training.identity) if resume else None
    )
    if checkpoint is not None and not checkpoint.arrays:
        if (output / DIR_MODEL_LAST).is_dir():
            message = (
                f"The training in {output} has ended after step {checkpoint.step}: nothing is left "
                "to do"
            )
            return _say(stdout, message)
        checkpoint = None
    training.run(checkpoint, stdout, stderr)


@dataclass(frozen=True)
class _Training:
    """A training that can run.

    It saves the weights that its optimizer averages, if it does. Each folder is replaced in one
    step, so that both are whole whenever training is stopped.

    output: The folder for model-best, model-last and the checkpoint.
    config: The training settings as the config has them.
    settings: The same, resolved.
    train_corpus, dev_corpus: Functions from the pipeline to examples.
    eval_entities: The number of names that evaluations search; 0 for all.
    identity: What a checkpoint must have, to be one of this training.
    """

    nlp: Language
    output: Path
    config: dict[str, Any]
    settings: dict[str, Any]
    train_corpus: Any
    dev_corpus: Any
    eval_entities: int
    identity: str

    @classmethod
    def of(
        cls, nlp: Language, output: Path, use_gpu: int, eval_entities: int
    ) -> "_Training":
        """The training that a pipeline's config describes. Its folder is made."""
        config = nlp.config.interpolate()
        settings = _resolve_settings(config["training"], use_gpu)
        train_corpus, dev_corpus = resolve_dot_names(
            config, [settings["train_corpus"], settings["dev_corpus"]]
        )
        output.mkdir(parents=True, exist_ok=True)
        trainers = (
            linker.trainer.fingerprint() for linker in linkers_of(nlp).values()
        )
        dev = (example.reference for example in dev_corpus(nlp))
        return cls(
            nlp,
            output,
            config["training"],
            settings,
            train_corpus,
            dev_corpus,
            eval_entities,
            identity_of(config.to_str(), dev, str(eval_entities), *trainers),
        )

    @property
    def path(self) -> Path:
        return self.output / CHECKPOINT

    def run(self, checkpoint: Checkpoint | None, stdout: IO, stderr: IO) -> None:
        """Train, from a checkpoint on or from the beginning."""
        _write_encoding(self.nlp, stdout)
        limited = LimitedSearch.of(self.nlp, self.dev_corpus, self.eval_entities)
        evaluator = create_evaluation(
            self.nlp, self.dev_corpus, self.settings, rough=True
        )
        evaluate = limited.of_pipeline(self.nlp)(evaluator)
        optimizer = self.settings["optimizer"]
        loop = ResumableLoop(self.nlp, optimizer, evaluate, self.path, checkpoint)
        steps = loop.steps(self._steps(loop))
        if checkpoint is None:
            # In this order: a kill in between must not leave the end of a training without its
            # result.
            self.path.unlink(missing_ok=True)
            clean_output_dir(self.output)
        frozen = self.settings["frozen_components"]
        _write_introduction(self.nlp, frozen, checkpoint, stdout)
        with self.nlp.select_pipes(disable=frozen):
            log_step, finalize_logger = self.settings["logger"](
                self.nlp, stdout, stderr
            )
        # A run that was killed in its last evaluation has no step left, but that evaluation.
        info: dict[str, Any] = {
            "losses": {},
            "step": checkpoint.step if checkpoint else 0,
        }
        try:
            info = self._save_each(steps, loop, limited, log_step) or info
        finally:
            finalize_logger()
        is_rough = limited.among or divides(self.settings)
        if is_rough and loop.evaluations:
            self.evaluate_all(info, is_chosen(loop.evaluations))
        write_end(self.path, self.identity, info["step"])
        if loop.evaluations:
            _say(stdout, gain_of_training(loop.evaluations))
        message = f"Saved pipeline to {self.output / DIR_MODEL_LAST}"
        stdout.write(Printer(no_print=True).good(message) + "\n")

    def _steps(
        self, loop: ResumableLoop
    ) -> Iterator[tuple[Any, dict[str, Any], bool | None]]:
        settings = self.settings
        batches = create_train_batches(
            self.nlp, self.train_corpus, settings["batcher"], settings["max_epochs"]
        )
        return train_while_improving(
            self.nlp,
            settings["optimizer"],
            loop.batches(batches),
            loop.evaluate,
            dropout=settings["dropout"],
            accumulate_gradient=settings["accumulate_gradient"],
            patience=settings["patience"],
            max_steps=settings["max_steps"],
            eval_frequency=settings["eval_frequency"],
            exclude=settings["frozen_components"],
            annotating_components=settings["annotating_components"],
            before_update=settings["before_update"],
        )

    def _save_each(
        self,
        steps: Iterator[LoopStep],
        loop: ResumableLoop,
        limited: LimitedSearch,
        log_step: Callable[[dict[str, Any] | None], None],
    ) -> dict[str, Any] | None:
        """Run the steps; write pipeline and checkpoint at each evaluation and at the end.

        RETURNS: What the loop has reported last; None for no step.
        """
        is_unsaved = False
        info: dict[str, Any] | None = None
        try:
            for info, is_evaluated in steps:
                is_unsaved = not is_evaluated
                if is_evaluated:
                    with limited.of_pipeline(self.nlp):
                        self.save_evaluated(info, is_chosen(loop.evaluations))
                    Checkpoint.of(
                        self.identity,
                        info["step"],
                        loop.evaluations,
                        self.nlp.pipeline,
                        self.settings["optimizer"],
                    ).write(self.path)
                log_step(info if is_evaluated else None)
        except TrainingDiverged:
            # There is nothing worth saving.
            is_unsaved = False
            raise
        finally:
            if is_unsaved:
                with limited.of_pipeline(self.nlp):
                    self.save()
        return info

    def evaluate_all(self, info: dict[str, Any], is_last_best: bool) -> None:
        """Save model-last and model-best with all entities, fits on fifths and their scores.

        info: What the training loop has reported last.
        is_last_best: Whether model-best is model-last.
        """
        with self._as_saved():
            for linker in linkers_of(self.nlp).values():
                linker.encoder.end_training()
                linker.refresh()
            scored = self._scored(self.nlp, info)
        self.save_evaluated(scored, is_last_best)
        if is_last_best:
            return
        best = self.output / DIR_MODEL_BEST
        nlp = load_pipeline(best)
        update_meta(self.settings, nlp, self._scored(nlp, info))
        self._save(nlp, best)

    def _scored(self, nlp: Language, info: dict[str, Any]) -> dict[str, Any]:
        """What the loop has reported, with the scores of a pipeline."""
        score, scores = create_evaluation(nlp, self.dev_corpus, self.settings)()
        return {**info, "score": score, "other_scores": scores}

    def _save(self, nlp: Language, path: Path) -> None:
        before_to_disk = create_before_to_disk_callback(
            self.settings["before_to_disk"]
        )
        save_pipeline(before_to_disk(nlp), path)

    @contextmanager
    def _as_saved(self) -> Iterator[None]:
        """Use the weights that are saved, within the block."""
        with self.nlp.use_params(self.settings["optimizer"].averages or {}):
            yield

    def save(self) -> None:
        with self._as_saved():
            self._save(self.nlp, self.output / DIR_MODEL_LAST)

    def save_evaluated(self, info: dict[str, Any], is_best: bool) -> None:
        """Write model-last with scores, and a better model-best.

        info: What the training loop reports; the folder is added to it.
        """
        with self.nlp.select_pipes(disable=self.settings["frozen_components"]):
            update_meta(self.settings, self.nlp, info)
        describe(self.nlp)
        self.save()
        if is_best:
            with replacing_folder(self.output / DIR_MODEL_BEST, PIPELINE) as folder:
                shutil.copytree(
                    self.output / DIR_MODEL_LAST, folder, dirs_exist_ok=True
                )
        info["output_path"] = str(self.output / DIR_MODEL_LAST)


def _resolve_settings(training: dict[str, Any], use_gpu: int) -> dict[str, Any]:
    if training["seed"] is not None:
        fix_random_seed(training["seed"])
    if use_gpu >= 0 and training["gpu_allocator"]:
        set_gpu_allocator(training["gpu_allocator"])
    return registry.resolve(training, schema=ConfigSchemaTraining)


def _say(stdout: IO, line: str) -> None:
    stdout.write(Printer(no_print=True).info(line) + "\n")


def _write_introduction(
    nlp: Language,
    frozen: list[str],
    checkpoint: Checkpoint | None,
    stdout: IO,
) -> None:
    _say(stdout, f"Pipeline: {nlp.pipe_names}")
    if frozen:
        _say(stdout, f"Frozen components: {frozen}")
    if checkpoint is not None:
        _say(stdout, f"Resuming after step {checkpoint.step}")


def _write_encoding(nlp: Language, stdout: IO) -> None:
    """Write what each linker encodes before the first step, which can take minutes."""
    for linker in linkers_of(nlp).values():
        line = f"Encoding {len(linker.kb)} entities and {len(linker.exemplars)} training mentions"
        _say(stdout, line)
    stdout.flush()
