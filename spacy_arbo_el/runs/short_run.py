"""A short training on few documents, with the defaults' settings and a schedule of its length."""

import random
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import load_config_from_str, registry
from thinc.api import fix_random_seed

from ..config_sources import complete_config
from ..corpora.docs import unlinked_examples
from ..linker import find_linker
from ..pipelines import load_pipeline, save_pipeline


def train_copy(
    nlp: Language,
    docs: Sequence[Doc],
    shares: int = 0,
    watch: Callable[[], None] = lambda: None,
) -> Language:
    """A copy of a pipeline whose linker is trained on documents. They become exemplars.

    Learning rate, batches and epochs are those of ``arbo init-config``.

    docs: Annotated documents, at least one.
    shares: How often ``watch`` is called, after equal shares of the steps.
    """
    fix_random_seed(0)
    copy = copied_pipeline(nlp)
    linker = find_linker(copy)
    linker.feedback.add_exemplars(docs)
    settings = load_config_from_str(complete_config("linker"), interpolate=False)[
        "training"
    ]
    batch = registry.resolve({"batcher": settings["batcher"]})["batcher"]
    order = random.Random(0)
    examples = unlinked_examples(docs)
    batches = []
    for _ in range(settings["max_epochs"]):
        order.shuffle(examples)
        batches += list(batch(list(examples)))
    rate = settings["optimizer"]["learn_rate"]
    settings["optimizer"]["learn_rate"] = {
        "@schedules": "warmup_linear.v1",
        "initial_rate": rate["initial_rate"],
        "warmup_steps": int(rate["warmup"] * len(batches)),
        "total_steps": len(batches) + 1,
    }
    optimizer = registry.resolve({"optimizer": settings["optimizer"]})["optimizer"]
    for number, examples_of_step in enumerate(batches):
        linker.update(examples_of_step, sgd=optimizer)
        optimizer.step_schedules()
        for _ in range(
            (number + 1) * shares // len(batches) - number * shares // len(batches)
        ):
            watch()
    linker.encoder.end_training()
    return copy


def copied_pipeline(nlp: Language) -> Language:
    """An independent copy. Its folder is removed with it."""
    folder = TemporaryDirectory()
    path = Path(folder.name) / "pipeline"
    save_pipeline(nlp, path)
    copy = load_pipeline(path)
    weakref.finalize(copy, folder.cleanup)
    return copy
