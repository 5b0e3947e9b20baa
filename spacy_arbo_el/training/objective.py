"""What training optimizes."""

from dataclasses import dataclass

from spacy.util import registry

from .losses import Loss
from .negatives import Negatives
from .positives import Positives
from .refresh import CacheRefresh


@registry.misc("spacy-arbo-el.Objective.v1")
@dataclass(frozen=True)
class Objective:
    """Which targets a mention is trained on, by which loss, and how old cached vectors may get.

    The defaults of the linker are those of the arborescence paper, §2.3. A config changes single
    parts, for example::

        [components.arbo_linker.objective]
        @misc = "spacy-arbo-el.Objective.v1"

        [components.arbo_linker.objective.positives]
        @misc = "spacy-arbo-el.ArborescencePositives.v1"
        with_entity = true

    positives: Chooses the targets that a mention should become more similar to.
    negatives: Chooses the targets that a mention should become less similar to.
    loss: The loss over the similarities to these targets.
    refresh: When all texts and mentions are encoded again.
    """

    positives: Positives
    negatives: Negatives
    loss: Loss
    refresh: CacheRefresh
