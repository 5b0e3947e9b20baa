"""What the commands share."""

from contextlib import contextmanager
from typing import Iterator

from wasabi import msg


@contextmanager
def errors_for_people() -> Iterator[None]:
    """Print an error's message and exit with 1, without the traceback of a bad input."""
    try:
        yield
    except (ValueError, OSError) as error:
        msg.fail(str(error), exits=1)
