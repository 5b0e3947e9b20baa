"""The package's logger. A child of spaCy's, so that spaCy's format and level apply to it."""

import logging
import sys
import time
import warnings
from typing import Any

from tqdm.auto import tqdm

log = logging.getLogger("spacy.arbo")
# Seconds between the lines of a ``LoggedProgress``.
LOG_SECONDS = 60.0
# Seconds until people are told of a work that they did not expect.
NOTICE_SECONDS = 5.0


def progress(total: int, title: str, unit: str, notice: str = "") -> Any:
    """Progress bars on terminals, log lines elsewhere. Notebooks have bars too.

    Nothing where the logger is silent.

    total: How many steps there are.
    title: The task.
    unit: The unit of a step.
    notice: Said in the first line, after five seconds and as a warning, which scripts show too.
    """
    is_watched = "ipykernel" in sys.modules or sys.stderr.isatty()
    if not is_watched:
        return LoggedProgress(total, title, unit, notice)
    return tqdm(total=total, desc=title, unit=unit, disable=not log.isEnabledFor(logging.WARNING))


class LoggedProgress:
    """Progress as a log line each minute. It has the methods of tqdm that we use.

    total, title, unit, notice: As in ``progress``.
    """

    def __init__(self, total: int, title: str, unit: str, notice: str = ""):
        self.total = total
        self.title = title
        self.unit = unit
        self.notice = notice
        self.reset()

    def reset(self, total: int | None = None) -> None:
        """Begin anew."""
        self.total = self.total if total is None else total
        self.n = 0
        self._start = self._logged = time.monotonic()

    def update(self, n: int = 1) -> None:
        """Count ``n`` steps."""
        self.n += n
        now = time.monotonic()
        wait = NOTICE_SECONDS if self.notice else LOG_SECONDS
        if now - self._logged >= wait and self.n < self.total:
            self._logged = now
            left = (now - self._start) / self.n * (self.total - self.n)
            log.log(
                logging.WARNING if self.notice else logging.INFO,
                "%s: %d of %d %ss, about %d s left%s",
                *(
                    self.title,
                    self.n,
                    self.total,
                    self.unit,
                    left,
                    self.notice and f". {self.notice}",
                ),
            )
            self.notice = ""

    def clear(self) -> None:
        """Nothing: lines stay."""

    def close(self) -> None:
        """Nothing: lines stay."""

    def __enter__(self) -> "LoggedProgress":
        return self

    def __exit__(self, *args: Any) -> None:
        self.close()


class WarnOnce:
    """Logs a warning once per process instead of once per document."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def __call__(self, message: str, kind: str = "") -> None:
        """Warn. kind: The key of a message that is printed once, where messages differ in a
        count."""
        if (kind or message) not in self._said:
            self._said.add(kind or message)
            warnings.warn(message, stacklevel=3)

    def cache_clear(self) -> None:
        """Say everything once more."""
        self._said.clear()


warn_once = WarnOnce()
