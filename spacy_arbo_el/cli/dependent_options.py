"""Options that have an effect only together with others."""

from typing import Mapping

from ..errors import Errors


def check_needs(given: Mapping[str, bool], other: str, why: str) -> None:
    """Raise ValueError for an option that would have no effect.

    given: Whether each option has another value than its default.
    other: The option that they need.
    why: The reason.
    """
    for option, is_given in given.items():
        if is_given:
            raise ValueError(Errors.E896.format(option=option, other=other, why=why))
