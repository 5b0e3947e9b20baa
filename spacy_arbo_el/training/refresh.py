"""How old the vectors may get that positives and negatives are chosen on."""

from typing import NamedTuple

from spacy.util import registry

from ..errors import Errors

NEVER = -1


class Refresh(NamedTuple):
    """When all texts and mentions are encoded anew in training.

    every: Mentions trained on between two refreshes; 0 for as many as there are with a gold id,
        an epoch; -1 for never.
    on_the_fly: Whether the vectors that a batch computes on its way take the place of older ones.
    """

    every: int
    on_the_fly: bool

    def is_due(self, seen: int, in_epoch: int) -> bool:
        """Whether to refresh after ``seen`` mentions, if an epoch has ``in_epoch``."""
        return self.every != NEVER and seen >= (self.every or in_epoch)


@registry.misc("spacy-arbo-el.CacheRefresh.v1")
def cache_refresh(every: int = 0, on_the_fly: bool = True) -> Refresh:
    """A schedule for the embedding cache, see ``Refresh``."""
    if every < NEVER:
        raise ValueError(Errors.E508.format(value=every))
    return Refresh(every, on_the_fly)
