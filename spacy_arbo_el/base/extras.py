"""Packages that are imported where they are used."""

import importlib
import sys
from typing import Any

from .errors import Errors

# What transformers imports with its first model, 190 MB and two seconds, and encoders rarely call.
RARELY_CALLED = (
    "sklearn.metrics",
    "torch._dynamo._trace_wrapped_higher_order_op",
    "transformers.integrations.flex_attention",
)


class OnFirstUse:
    """A module whose functions import it when they are called."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **settings: Any) -> Any:
            return getattr(importlib.import_module(self._name), name)(
                *args, **settings
            )

        return call


def import_transformers() -> None:
    """Import what models of transformers share, but modules that they rarely call."""
    stand_ins: Any = {
        name: OnFirstUse(name) for name in RARELY_CALLED if name not in sys.modules
    }
    sys.modules.update(stand_ins)
    try:
        importlib.import_module("transformers.models.bert.modeling_bert")
    finally:
        for name in stand_ins:
            del sys.modules[name]


def import_pyarrow() -> Any:
    """pyarrow with its module ``parquet``. Raises ImportError that says how to install it."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(Errors.E895) from error
    return pyarrow
