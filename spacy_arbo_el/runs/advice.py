"""Advice before a training begins. There may be few mentions, or a warm-up longer than the run."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from spacy.language import Language
from spacy.util import registry, resolve_dot_names

from ..linker import linkers_of

# With fewer mentions, exemplars alone are as good as training, or better (docs/training.md).
FEW_MENTIONS = 200


def advice_before_training(nlp: Language, settings: dict[str, Any]) -> Iterator[str]:
    """Give advice before an initialized pipeline is trained.

    settings: The section ``training`` of the config, interpolated.
    """
    for linker in linkers_of(nlp).values():
        if linker.trainer.needs_mentions:
            yield from few_mentions(len(linker.exemplars))
    rate = settings["optimizer"].get("learn_rate")
    warmup = rate.get("warmup_steps", 0) if isinstance(rate, dict) else 0
    steps = steps_of_run(nlp, settings, warmup) if warmup else warmup + 1
    if steps <= warmup:
        yield (
            f"The warm-up of {warmup} steps is longer than the run of {steps}: the learning rate "
            f"never gets to its initial_rate. Set training.optimizer.learn_rate.warmup_steps to "
            f"{steps // 10} and total_steps to {steps + 1}, or train for more epochs"
        )


def few_mentions(count: int) -> Iterator[str]:
    """Give advice on training with so many mentions. None where they are enough."""
    if count < FEW_MENTIONS:
        yield (
            f"{count} mentions to train on, fewer than {FEW_MENTIONS}: exemplars alone are often "
            "better, and cost seconds. Compare both, held out: spacy arbo learn PIPELINE DOCS "
            "--train"
        )


def steps_of_run(nlp: Language, settings: dict[str, Any], most: int) -> int:
    """Count the steps of a training. The result is ``most + 1`` where there are more.

    The corpus is read by another reader, no further than needed.
    """
    epochs, limit, steps = settings["max_epochs"], settings["max_steps"], most + 1
    if limit > 0:
        steps = min(steps, limit)
    if epochs > 0:
        (corpus,) = resolve_dot_names(nlp.config.interpolate(), [settings["train_corpus"]])
        batcher = registry.resolve({"batcher": settings["batcher"]})["batcher"]
        steps = min(steps, epochs * sum(1 for _ in islice(batcher(corpus(nlp)), most + 1)))
    return steps
