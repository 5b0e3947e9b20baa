"""Methods of which one thread runs at a time."""

from functools import wraps
from typing import Any, Callable, TypeVar, cast

Method = TypeVar("Method", bound=Callable[..., Any])


def locked(method: Method) -> Method:
    """The method, of which one thread runs at a time: it takes the lock ``self.lock``."""

    @wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self.lock:
            return method(self, *args, **kwargs)

    return cast(Method, run)
