"""Learning rates that pretrained encoders do not bear."""

import warnings
from typing import Set

from thinc.api import Model, Optimizer

from ..encoders.dual import TOWERS
from ..errors import Warnings

# Transformers are fine-tuned with 1e-5 to 2e-4. spaCy's default is 1e-3.
LIMIT = 5e-4
# The identities of optimizers: they can be neither hashed by content nor referred to weakly.
_warned_of: Set[int] = set()


def warn_of_high_rate(name: str, model: Model, optimizer: Optimizer) -> None:
    """Warn of learning rates too high for pretrained encoders.

    An optimizer is warned of once.

    name: Of the component.
    model: The dual encoder.
    """
    rate = getattr(optimizer, "learn_rate", 0.0)
    is_high = isinstance(rate, (int, float)) and rate > LIMIT
    if not is_high or not any(model.get_ref(tower).attrs.get("pretrained") for tower in TOWERS):
        return
    if id(optimizer) not in _warned_of:
        _warned_of.add(id(optimizer))
        warnings.warn(Warnings.W530.format(name=name, rate=rate, limit=LIMIT))
