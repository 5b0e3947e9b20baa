"""Helpers of the commands."""

import re
from contextlib import contextmanager
from typing import Iterator

from wasabi import msg

# The beginning of the messages of this package and of spaCy.
_CODED = re.compile(r"\[(arbo-)?E\d+\]")


@contextmanager
def errors_for_people(only_coded: bool = False) -> Iterator[None]:
    """Print the message of an error and exit with 1, instead of a traceback.

    only_coded: Whether errors without a code, such as "[arbo-E101]", are raised. A ``KeyError``
        without a code always is.
    """
    try:
        yield
    except (ValueError, OSError, KeyError) as error:
        # str() of a KeyError has quotes.
        text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
        if (only_coded or isinstance(error, KeyError)) and not _CODED.match(text):
            raise
        msg.fail(text, exits=1)
