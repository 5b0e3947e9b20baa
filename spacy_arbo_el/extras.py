"""Optional packages: those of an extra of setup.cfg, imported when they are needed."""

from typing import Any

from .errors import Errors


def import_ray() -> Any:
    """Ray with its module ``data``. Raises ImportError that says how to install it."""
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise ImportError(Errors.E893) from error
    return ray


def import_pyarrow() -> Any:
    """pyarrow. Raises ImportError that says how to install it."""
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(Errors.E895) from error
    return pyarrow


def import_pyarrow_parquet() -> Any:
    """The module of pyarrow that reads Parquet files."""
    import_pyarrow()
    import pyarrow.parquet

    return pyarrow.parquet
