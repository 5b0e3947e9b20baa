"""The learning rate over a training, which is as long as its corpus makes it."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import spacy
from spacy.language import Language
from spacy.training import Example
from spacy.util import registry
from thinc.schedules import warmup_linear

from ..base.errors import Errors
from ..base.settings import check_count, check_positive, check_share
from .batchers import Batcher

Corpus = Callable[[Language], Iterable[Example]]


@registry.schedules("spacy-arbo-el.WarmupLinear.v1")
def warmup_of_run(
    initial_rate: float,
    corpus: Corpus,
    batcher: Batcher,
    max_epochs: int,
    max_steps: int,
    warmup: float = 0.1,
) -> Iterator[float]:
    """A rate that rises over a share of the steps of a training, and falls to 0 at their end.

    Use it for transformers, with ``spacy train`` and ``arbo train``. It counts the steps itself, so
    that it suits corpora of all sizes, and needs to know what they depend on::

        [training.optimizer.learn_rate]
        @schedules = "spacy-arbo-el.WarmupLinear.v1"
        initial_rate = 0.0001
        warmup = 0.1
        corpus = ${corpora.train}
        batcher = ${training.batcher}
        max_epochs = ${training.max_epochs}
        max_steps = ${training.max_steps}

    The first step has the rate 0. So the first evaluation is that of the pipeline before training.

    initial_rate: The highest rate.
    corpus: The documents to train on. It is read once more where there are epochs, to count
        batches.
    batcher: Makes batches of them.
    max_epochs: The epochs of the training. Below 1, steps alone count.
    max_steps: The steps of the training; 0 for no limit.
    warmup: The share of the steps over which the rate rises.
    """
    check_positive("learn_rate.initial_rate", initial_rate)
    check_count("learn_rate.max_epochs", max_epochs, -1)
    check_count("learn_rate.max_steps", max_steps)
    check_share("learn_rate.warmup", warmup)
    if max_epochs < 1 and not max_steps:
        raise Errors.E621()
    return _rates(initial_rate, corpus, batcher, max_epochs, max_steps, warmup)


def _rates(
    initial_rate: float,
    corpus: Corpus,
    batcher: Batcher,
    max_epochs: int,
    max_steps: int,
    warmup: float,
) -> Iterator[float]:
    # An optimizer takes the first rate when it is made: a config is read without its corpus.
    yield 0.0
    steps = steps_of_run(corpus, batcher, max_epochs, max_steps)
    rising = max(1, int(warmup * steps))
    yield from islice(warmup_linear(initial_rate, rising, steps + 1), 1, None)


def steps_of_run(
    corpus: Corpus, batcher: Batcher, max_epochs: int, max_steps: int
) -> int:
    """Count the steps of a training. The corpus is read no further than needed.

    max_epochs: Below 1, steps alone count.
    max_steps: 0 for no limit.
    """
    if max_epochs < 1:
        return max_steps
    # Ceiling: the batches of an epoch that can count.
    most = -(-max_steps // max_epochs) or None
    batches = islice(batcher(corpus(spacy.blank("xx"))), most)
    steps = max_epochs * sum(1 for _ in batches)
    if max_steps:
        return min(steps, max_steps)
    return steps
