"""Functions that are compiled by Numba, with a cache of the machine code where one can be kept."""

from typing import Any, Callable, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])


def numba_jit(**options: Any) -> Callable[[F], F]:
    """Compile a function when it is first called, without Python's global lock.

    Numba keeps the machine code beside the source or in the user's cache folder. Where it can write
    to neither (a read-only system, a user without a home), it refuses the function. Then nothing is
    kept, and each process compiles anew.

    options: Further options of ``numba.njit``.
    """

    def decorate(function: F) -> F:
        try:
            return numba.njit(cache=True, nogil=True, **options)(function)
        except RuntimeError as error:
            if "cannot cache" not in str(error):
                raise
            return numba.njit(nogil=True, **options)(function)

    return decorate
