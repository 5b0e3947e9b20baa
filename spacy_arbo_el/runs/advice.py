"""Advice before a training on few mentions."""

from collections.abc import Iterator

from spacy.language import Language

from ..linker import linkers_of

# With fewer mentions, exemplars alone are as good as training, or better (docs/training.md).
FEW_MENTIONS = 200


def advice_before_training(nlp: Language) -> Iterator[str]:
    """Give advice before an initialized pipeline is trained."""
    for linker in linkers_of(nlp).values():
        if linker.trainer.needs_mentions:
            yield from few_mentions(len(linker.exemplars))


def few_mentions(count: int) -> Iterator[str]:
    """Give advice on training with so many mentions. None where they are enough."""
    if count < FEW_MENTIONS:
        yield (
            f"{count} mentions to train on, fewer than {FEW_MENTIONS}: exemplars alone are often "
            "better, and cost seconds. Compare both, held out: spacy arbo fit PIPELINE DOCS "
            "--train"
        )
