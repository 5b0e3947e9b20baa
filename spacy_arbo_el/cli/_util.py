"""What the commands share."""

import re
from contextlib import contextmanager
from typing import Iterator

from wasabi import msg

# What our errors and spaCy's begin with.
_CODED = re.compile(r"\[(arbo-)?E\d+\]")


@contextmanager
def errors_for_people(only_coded: bool = False) -> Iterator[None]:
    """Print an error's message and exit with 1, without the traceback of a bad input.

    only_coded: Do so for errors that were written for people, and raise all others.
    """
    try:
        yield
    except (ValueError, OSError, KeyError) as error:
        # A KeyError puts its message into quotes.
        text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
        if (only_coded or isinstance(error, KeyError)) and not _CODED.match(text):
            raise
        msg.fail(text, exits=1)
