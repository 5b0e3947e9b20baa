"""Functions that Numba compiles once there is enough to do."""

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core.errors import NumbaIRAssumptionWarning
from numba.extending import register_jitable

# Numba warns of assumptions about its own representation of a program where it compiles anew.
warnings.filterwarnings("ignore", category=NumbaIRAssumptionWarning)

F = TypeVar("F", bound=Callable[..., Any])

# Compiling takes about a second per algorithm where no cache can be kept, such as in a read-only
# container; interpreting arrays of this size in all takes milliseconds.
WORTH_COMPILING = 1 << 13
# Interpreting arrays of this size, one after the other, takes about as long as compiling.
WORTH_COMPILING_IN_ALL = 1 << 16

# For functions that only compiled ones call: plain Python where these are interpreted.
jit_helper = register_jitable


class Compiled:
    """A function that is compiled once it gets large arrays, or many. It is interpreted until then.

    Both give equal results. A process that links few small documents compiles no graph algorithm.

    compiled: The function as Numba compiles it, which compiled functions call too.
    """

    def __init__(self, compiled: Any):
        self.compiled = compiled
        # The size of all arrays that it was given.
        self.size = 0
        self.__doc__ = compiled.__doc__

    def __call__(self, *args: Any) -> Any:
        # Once it is compiled for some types, calling is faster than interpreting.
        if self.compiled.overloads:
            return self.compiled(*args)
        size = sum(map(np.size, args))
        self.size += size
        if size > WORTH_COMPILING or self.size > WORTH_COMPILING_IN_ALL:
            return self.compiled(*args)
        return self.compiled.py_func(*args)

    def __getattr__(self, name: str) -> Any:
        # By these attributes, Numba recognizes a function that compiled code may call.
        return getattr(self.compiled, name)


def numba_jit(*, interpret: bool = True, **options: Any) -> Callable[[F], F]:
    """Compile a function at its first call with large arrays. The compiled function does not hold
    Python's global lock.

    Numba keeps the machine code beside the source or in the user's cache folder. Where it can write
    to neither (a read-only system, a user without a home), it refuses the function. Then nothing is
    kept, and each process compiles anew.

    interpret: Interpret small arrays, see ``Compiled``. False for functions that are too slow
        interpreted, or that would round differently.
    options: Further options of ``numba.njit``.
    """

    def decorate(function: F) -> Any:
        try:
            compiled = numba.njit(cache=True, nogil=True, **options)(function)
        except RuntimeError as error:
            if "cannot cache" not in str(error):
                raise
            compiled = numba.njit(nogil=True, **options)(function)
        if interpret:
            return Compiled(compiled)
        return compiled

    return decorate
