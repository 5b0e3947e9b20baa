"""How long training steps take."""

from typing import NamedTuple


class Times(NamedTuple):
    """Seconds of some steps: choosing positives and negatives, and encoding back and forth."""

    steps: int
    choosing: float
    encoding: float


class Clock:
    """Adds up the times of steps until somebody takes them."""

    def __init__(self) -> None:
        self._times = Times(0, 0.0, 0.0)

    def add(self, choosing: float, encoding: float) -> None:
        steps, chosen, encoded = self._times
        self._times = Times(steps + 1, chosen + choosing, encoded + encoding)

    def take(self) -> Times:
        """The times since they were last taken."""
        times, self._times = self._times, Times(0, 0.0, 0.0)
        return times
