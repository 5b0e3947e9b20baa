"""The age limit of cached vectors in training. Positives and negatives are chosen on them."""

from dataclasses import dataclass

from spacy.util import registry

from ..errors import Errors

NEVER = -1


@registry.misc("spacy-arbo-el.CacheRefresh.v1")
@dataclass(frozen=True)
class CacheRefresh:
    """Times at which training encodes all texts and mentions again.

    The default is once per epoch. A smaller interval keeps the vectors closer to the present
    encoder. It costs time, since each refresh encodes the knowledge base and all mentions::

        [components.arbo_linker.objective.refresh]
        @misc = "spacy-arbo-el.CacheRefresh.v1"
        every = 20000

    every: The number of mentions to train on between two refreshes. 0 for an epoch, which is as
        many as have a gold id; -1 for never.
    on_the_fly: Whether the vectors that a training step computes replace the cached ones.
    """

    every: int = 0
    on_the_fly: bool = True

    def __post_init__(self) -> None:
        if self.every < NEVER:
            raise ValueError(Errors.E604.format(value=self.every))

    def is_due(self, seen: int, epoch_size: int) -> bool:
        """Return whether to refresh now.

        seen: The number of mentions trained on since the last refresh.
        epoch_size: The number of mentions in an epoch.
        """
        return self.every != NEVER and seen >= (self.every or epoch_size)
