"""The package's logger. A child of spaCy's, so that spaCy's format and level apply to it."""

import logging
import sys
import warnings

from tqdm.auto import tqdm

log = logging.getLogger("spacy.arbo")
# Seconds until a bar that nobody watches is shown, and from then on until it is shown again.
SECONDS = 30.0


def progress(total: int, title: str, unit: str) -> tqdm:
    """A bar of steps on standard error; in files twice a minute, and none for a silent logger."""
    is_watched = "ipykernel" in sys.modules or sys.stderr.isatty()
    seconds = 0.0 if is_watched else SECONDS
    return tqdm(
        total=total,
        desc=title,
        unit=f" {unit}s",
        delay=seconds,
        mininterval=max(seconds, 0.1),
        maxinterval=max(seconds, 10.0),
        disable=not log.isEnabledFor(logging.WARNING),
    )


def start_clock(bar: tqdm, title: str) -> None:
    """Count the first step of a bar as done and begin to measure time behind it.

    How long that step took says nothing of the other ones.

    title: That of the bar from now on.
    """
    bar.n = bar.initial = 1
    bar.unpause()
    bar.set_description(title)


class WarnOnce:
    """Logs a warning once per process instead of once per document."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def __call__(self, message: str, kind: str = "") -> None:
        """Warn. kind: The key of messages that differ in a count, of which one is enough."""
        if (kind or message) not in self._said:
            self._said.add(kind or message)
            warnings.warn(message, stacklevel=3)

    def cache_clear(self) -> None:
        """Forget which warnings were given."""
        self._said.clear()


warn_once = WarnOnce()
