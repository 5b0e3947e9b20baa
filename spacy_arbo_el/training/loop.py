"""spaCy's training loop, with checkpoints: a run that was killed goes on where it was."""

import hashlib
import os
import random
import shutil
import sys
from pathlib import Path
from typing import IO, Any, Callable, Dict, Iterator, List, Optional, Tuple

from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.training import Example
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
from thinc.api import Config, Optimizer, fix_random_seed, set_gpu_allocator
from wasabi import Printer

from ..errors import Errors
from .checkpoint import Checkpoint, Progress, read_checkpoint, restore, write_checkpoint

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
    """Train an initialised pipeline as ``spacy train`` does, writing checkpoints.

    Beyond that, the last step is evaluated too, whatever ``eval_frequency`` says.

    A resumed run reads the batches it has trained on once more, without training, so that order,
    schedules and early stopping are those of the unbroken run; then it takes over the
    checkpoint's state. On one machine the result is the same bit by bit (where the corpus brings
    mentions in mid-epoch that ``initialize`` did not see, nearly so).

    output: Folder for model-best, model-last and the checkpoint, which goes when training ends.
    resume: Go on from the folder's checkpoint. Without one, as after the end of a training, it
        starts anew.
    every: Steps between checkpoints, beside the one at each evaluation; 0 for only those.
    """
    config = nlp.config.interpolate()
    text = config.to_str()
    output.mkdir(parents=True, exist_ok=True)
    path = output / CHECKPOINT
    saved = read_checkpoint(path) if resume else None
    if saved is not None:
        _check_config(path, saved.progress.config, text)
    settings = config["training"]
    if settings["seed"] is not None:
        fix_random_seed(settings["seed"])
    if use_gpu >= 0 and settings["gpu_allocator"]:
        set_gpu_allocator(settings["gpu_allocator"])
    T = registry.resolve(settings, schema=ConfigSchemaTraining)  # type: ignore[arg-type]
    train_corpus, dev_corpus = resolve_dot_names(config, [T["train_corpus"], T["dev_corpus"]])
    optimizer = T["optimizer"]
    evaluate = _calibrated(
        T["before_to_disk"],
        nlp,
        create_evaluation_callback(nlp, dev_corpus, T["score_weights"]),
    )
    batches = create_train_batches(nlp, train_corpus, T["batcher"], T["max_epochs"])
    run = _Run(nlp, optimizer, evaluate, text, path, saved)
    frozen = T["frozen_components"]
    steps = train_while_improving(
        nlp,
        optimizer,
        run.read(batches),
        run.evaluate,
        dropout=T["dropout"],
        accumulate_gradient=T["accumulate_gradient"],
        patience=T["patience"],
        max_steps=T["max_steps"],
        eval_frequency=T["eval_frequency"],
        exclude=frozen,
        annotating_components=T["annotating_components"],
        before_update=T["before_update"],
    )
    before_to_disk = create_before_to_disk_callback(T["before_to_disk"])
    if saved is None:
        clean_output_dir(output)
        path.unlink(missing_ok=True)
    _introduce(nlp, optimizer, frozen, saved, stdout)

    def save_pipeline(is_best: bool) -> None:
        with nlp.use_params(optimizer.averages):
            before_to_disk(nlp).to_disk(output / DIR_MODEL_LAST)
        if is_best:
            _copy_folder(output / DIR_MODEL_LAST, output / DIR_MODEL_BEST)

    with nlp.select_pipes(disable=frozen):
        log_step, finalize_logger = T["logger"](nlp, stdout, stderr)
    finished, unsaved = False, True
    try:
        for info, is_best in run.with_last(steps):
            evaluated = is_best is not None
            if run.replaying:
                run.replayed(info, evaluated)
            else:
                unsaved = not evaluated
                if evaluated:
                    with nlp.select_pipes(disable=frozen):
                        update_meta(T, nlp, info)
                    save_pipeline(bool(is_best))
                    info["output_path"] = str(output / DIR_MODEL_LAST)
                if evaluated or (every and info["step"] % every == every - 1):
                    run.save(info, evaluated)
            log_step(info if evaluated else None)
        finished = True
    finally:
        finalize_logger()
        if run.replaying and finished:
            raise ValueError(Errors.E603.format(path=path))
        if unsaved and not run.replaying:
            save_pipeline(False)
    path.unlink(missing_ok=True)
    stdout.write(Printer(no_print=True).good(f"Saved pipeline to {output / DIR_MODEL_LAST}") + "\n")


class _Run:
    """One run of training: what is trained on, scored and saved; first what is replayed.

    replaying: Whether steps are read that the checkpoint has behind it.
    """

    def __init__(
        self,
        nlp: Language,
        optimizer: Optimizer,
        evaluate: Callable[[], Tuple[float, Dict[str, Any]]],
        config: str,
        path: Path,
        saved: Optional[Checkpoint],
    ):
        self.nlp = nlp
        self.optimizer = optimizer
        self.config = config
        self.path = path
        self.saved = saved
        self.replaying = saved is not None
        self.batches: List[str] = []
        self.evaluations: List[Tuple[float, Dict[str, Any]]] = []
        self.losses_then: List[Dict[str, float]] = []
        self._evaluate = evaluate
        if self.replaying:
            # What the loop calls for each batch, for as long as batches are only read again.
            nlp.update = _no_update  # type: ignore[method-assign]

    def read(self, batches: Iterator) -> Iterator[Tuple[int, List[Example]]]:
        """The batches as they come, checked against those of the checkpoint."""
        for epoch, batch in _by_themselves(batches):
            batch = list(batch)
            self.batches.append(_fingerprint(batch))
            at = len(self.batches) - 1
            if self.replaying and self.saved.progress.batches[at] != self.batches[at]:  # type: ignore[union-attr]
                raise ValueError(Errors.E603.format(path=self.path))
            yield epoch, batch

    def evaluate(self) -> Tuple[float, Dict[str, Any]]:
        at = len(self.evaluations)
        known = self.saved.progress.evaluations if self.saved is not None else []
        self.evaluations.append(known[at] if at < len(known) else self._evaluate())
        return self.evaluations[-1]

    def with_last(self, steps: Iterator) -> Iterator[Tuple[Dict[str, Any], Optional[bool]]]:
        """What the loop says of each step; the last one is evaluated even out of turn.

        spaCy leaves the steps after the last evaluation unscored, and never keeps them as best.
        """
        info, is_best = None, None
        for _, info, is_best in steps:
            yield info, is_best
        if info is not None and is_best is None and not self.replaying:
            with self.nlp.use_params(self.optimizer.averages or {}):
                score, others = self.evaluate()
            info["checkpoints"].append((score, info["step"]))
            is_best = score == max(info["checkpoints"])[0]
            yield {**info, "score": score, "other_scores": others}, is_best

    def replayed(self, info: Dict[str, Any], evaluated: bool) -> None:
        """Take over the checkpoint's state once its last step has been read."""
        assert self.saved is not None
        known = self.saved.progress
        if evaluated:
            self.losses_then.append(known.losses_then[len(self.losses_then)])
            info["losses"].update(self.losses_then[-1])
        if info["step"] == known.step:
            del self.nlp.update
            restore(self.saved, self.nlp, self.optimizer)
            info["losses"].update(known.losses)
            self.replaying = False

    def save(self, info: Dict[str, Any], evaluated: bool) -> None:
        losses = dict(info["losses"])
        if evaluated:
            # The loop starts to sum up anew.
            self.losses_then.append(losses)
            losses = {}
        done = (self.evaluations, self.losses_then, self.batches)
        progress = Progress(info["step"], losses, *done, self.config)
        write_checkpoint(self.path, self.nlp, self.optimizer, progress)


def _calibrated(callback: Optional[Callable], nlp: Language, evaluate: Callable) -> Callable:
    """Evaluation of what would be saved: what calibrates before saving does so before scoring."""
    if not getattr(callback, "before_scoring", False):
        return evaluate

    def evaluate_calibrated() -> Tuple[float, Dict[str, Any]]:
        callback(nlp)  # type: ignore[misc]
        return evaluate()

    return evaluate_calibrated


def _by_themselves(batches: Iterator) -> Iterator:
    """Batches shuffled by a random state of their own, which no component's training moves.

    spaCy's parser and NER draw from the global one in every update.
    """
    own, end = random.getstate(), object()
    while True:
        outer = random.getstate()
        random.setstate(own)
        try:
            batch = next(batches, end)
        finally:
            own = random.getstate()
            random.setstate(outer)
        if batch is end:
            return
        yield batch


def _no_update(*args, **kwargs) -> None:
    """In place of ``nlp.update`` where a batch has been trained on before."""


def _fingerprint(batch: List[Example]) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for example in batch:
        digest.update(example.reference.text.encode("utf8") + b"\0")
    return digest.hexdigest()


def _introduce(nlp, optimizer, frozen, saved: Optional[Checkpoint], stdout: IO) -> None:
    msg = Printer(no_print=True)
    stdout.write(msg.info(f"Pipeline: {nlp.pipe_names}") + "\n")
    if frozen:
        stdout.write(msg.info(f"Frozen components: {frozen}") + "\n")
    stdout.write(msg.info(f"Initial learn rate: {optimizer.learn_rate}") + "\n")
    if saved is not None:
        stdout.write(msg.info(f"Going on after step {saved.progress.step}") + "\n")


def _copy_folder(source: Path, target: Path) -> None:
    """Copy a folder under a temporary name, then put it in the target's place."""
    new = target.with_name(f".{target.name}.new")
    old = target.with_name(f".{target.name}.old")
    shutil.rmtree(new, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)
    shutil.copytree(source, new)
    if target.exists():
        os.replace(target, old)
    os.replace(new, target)
    shutil.rmtree(old, ignore_errors=True)


def _check_config(path: Path, before: str, now: str) -> None:
    a, b = (dict(_flat(Config().from_str(text))) for text in (before, now))
    keys = [key for key in {**a, **b} if a.get(key) != b.get(key)]
    if keys:
        raise ValueError(Errors.E602.format(path=path, keys=", ".join(keys)))


def _flat(settings: Dict[str, Any], prefix: str = "") -> Iterator[Tuple[str, Any]]:
    for key, value in settings.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value
