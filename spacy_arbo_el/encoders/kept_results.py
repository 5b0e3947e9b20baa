"""Results of encoders that are kept while the same mentions are linked many times."""

from collections.abc import Callable, Hashable, Sequence

import numpy as np


class KeptResults:
    """Vectors and scores by what they were computed from. The weights must stay unchanged.

    Calibration, tuning and reports link the same mentions with many thresholds, curves and
    rankers. ``LinkingStages`` with such an object encode each mention and each context once, and
    read each pair of a cross-encoder once.
    """

    def __init__(self) -> None:
        self._rows: dict[tuple[Hashable, Hashable], np.ndarray] = {}

    def of(
        self,
        kind: Hashable,
        keys: Sequence[Hashable],
        compute: Callable[[list[int]], np.ndarray],
    ) -> np.ndarray:
        """Return the results for keys, (n, ...), and compute those that are new.

        kind: The kind of result, and the model that gives it.
        compute: Gives the results for the keys at some places, in their order.
        """
        named = [(kind, key) for key in keys]
        new = {name: place for place, name in enumerate(named) if name not in self._rows}
        if new or not named:
            results = compute(list(new.values()))
            if not named:
                return results
            self._rows.update(zip(new, results))
        return np.stack([self._rows[name] for name in named])
