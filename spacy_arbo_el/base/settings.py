"""Validation of settings."""

import math
import numbers
from collections.abc import Sequence
from typing import Any

from .errors import Errors


def check_count(name: str, value: Any, least: int = 0) -> None:
    """Raise ValueError unless a value is a whole number of at least ``least``."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        _refuse(name, f"a whole number of at least {least}", value)


def check_share(name: str, value: Any) -> None:
    """Raise ValueError unless a number lies from 0 to 1."""
    if not is_number(value) or not 0.0 <= value <= 1.0:
        _refuse(name, "a number from 0 to 1", value)


def check_part(name: str, value: Any) -> None:
    """Raise ValueError unless a number lies strictly within (0, 1)."""
    if not is_number(value) or not 0.0 < value < 1.0:
        _refuse(name, "a number above 0 and below 1", value)


def check_positive(name: str, value: Any) -> None:
    """Raise ValueError unless a number is finite and positive."""
    if not is_number(value) or not 0.0 < value < math.inf:
        _refuse(name, "a finite number above 0", value)


def check_number(name: str, value: Any) -> None:
    """Raise ValueError unless the value is a finite number."""
    if not is_number(value) or not math.isfinite(value):
        _refuse(name, "a finite number", value)


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> None:
    """Raise ValueError unless the value is one of some choices."""
    if value not in choices:
        _refuse(name, f"one of {', '.join(map(repr, choices))}", value)


def check_strings(name: str, value: Any) -> None:
    """Raise ValueError unless the value is a list of strings. A single string is none."""
    if isinstance(value, str) or not all(isinstance(item, str) for item in value):
        _refuse(name, "a list of strings", value)


def is_number(value: Any) -> bool:
    """Return whether a value is a number, also one of NumPy. True and False are none."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _refuse(name: str, kind: str, value: Any) -> None:
    raise Errors.E751(name=name, kind=kind, value=value)
