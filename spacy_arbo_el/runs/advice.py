"""Advice before a training whose learning rate was planned for another run."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from spacy.language import Language
from spacy.util import registry, resolve_dot_names


def advice_before_training(nlp: Language, settings: dict[str, Any]) -> Iterator[str]:
    """Give advice on a learning rate that is planned for another number of steps.

    nlp: The initialized pipeline.
    settings: The section ``training`` of the config, interpolated.
    """
    rate = settings["optimizer"].get("learn_rate")
    if not isinstance(rate, dict):
        return
    warmup = rate.get("warmup_steps", 0)
    total = rate.get("total_steps", 0)
    if not warmup and not total:
        return
    steps = steps_of_run(nlp, settings, max(warmup, 2 * total))
    if steps <= warmup:
        yield (
            f"The warm-up of {warmup} steps is longer than the run of {steps}: the learning rate "
            f"never gets to its initial_rate. Set training.optimizer.learn_rate.warmup_steps to "
            f"{steps // 10} and total_steps to {steps + 1}, or train for more epochs"
        )
    elif 0 < 2 * total < steps:
        yield (
            f"The learning rate is 0 from step {total} on, and the run has more than {2 * total} "
            f"steps: the rest of them changes nothing. Set training.max_steps to {total}, or "
            "training.optimizer.learn_rate.total_steps to the steps of the run"
        )


def steps_of_run(nlp: Language, settings: dict[str, Any], most: int) -> int:
    """Count the steps of a training. The result is ``most + 1`` where there are more.

    The corpus is read by another reader, no further than needed.
    """
    epochs = settings["max_epochs"]
    limit = settings["max_steps"]
    steps = most + 1
    if limit > 0:
        steps = min(steps, limit)
    if epochs > 0:
        (corpus,) = resolve_dot_names(nlp.config.interpolate(), [settings["train_corpus"]])
        batcher = registry.resolve({"batcher": settings["batcher"]})["batcher"]
        needed = -(-steps // epochs)
        steps = min(steps, epochs * sum(1 for _ in islice(batcher(corpus(nlp)), needed)))
    return steps
