"""The steps of a long work, and the time that is left."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

# Seconds between two lines. The first line comes where more than these are left.
EVERY = 5.0


@dataclass
class Steps:
    """Says which step runs, and about how long the rest takes.

    planned: By the name of a step, how many there are, and how long one probably takes, in units of
        the first step. Once one of them is done, its own time counts.
    say: Takes the lines.
    clock: Seconds.
    """

    planned: Mapping[str, tuple[int, float]]
    say: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    _spent: dict[str, float] = field(default_factory=dict, init=False)
    _done: dict[str, int] = field(default_factory=dict, init=False)
    _last: float = field(default=0.0, init=False)
    _said: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._last = self.clock()
        self._said = float("-inf")

    def done(self, name: str) -> None:
        """Note that a step has ended now, and that the next one begins."""
        now = self.clock()
        self._spent[name] = self._spent.get(name, 0.0) + now - self._last
        self._done[name] = self._done.get(name, 0) + 1
        self._last = now
        left = self.left
        if left >= EVERY and now - self._said >= EVERY:
            self._said = now
            count = self.planned[name][0]
            number = f" {self._done[name]} of {count}" if count > 1 else ""
            self.say(f"{name}{number} done, about {_shown(left)} left")

    @property
    def left(self) -> float:
        """Seconds that the rest takes."""
        first = next(iter(self.planned))
        unit = self._spent[first] / self._done[first]
        seconds = 0.0
        for name, (count, weight) in self.planned.items():
            done = self._done.get(name, 0)
            of_one = self._spent[name] / done if done else weight * unit
            seconds += (count - done) * of_one
        return seconds


def _shown(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
