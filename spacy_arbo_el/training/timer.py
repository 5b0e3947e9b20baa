"""Timing of training steps."""

from typing import NamedTuple


class StepTimes(NamedTuple):
    """The time that a number of training steps took.

    steps: The number of steps.
    choosing: Seconds spent on choosing positives and negatives.
    encoding: Seconds spent on the forward and backward passes of the encoders.
    """

    steps: int
    choosing: float
    encoding: float


class StepTimer:
    """Sums the times of training steps until they are read."""

    def __init__(self) -> None:
        self._times = StepTimes(0, 0.0, 0.0)

    def add(self, choosing: float, encoding: float) -> None:
        """Count one step and the seconds it took."""
        times = self._times
        self._times = StepTimes(
            times.steps + 1, times.choosing + choosing, times.encoding + encoding
        )

    def take(self) -> StepTimes:
        """The times since the last call."""
        times, self._times = self._times, StepTimes(0, 0.0, 0.0)
        return times
