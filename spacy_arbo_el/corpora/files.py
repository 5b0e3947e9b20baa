"""Files of ids."""

from typing import FrozenSet

from ..storage.lines import PathLike, read_lines


def read_ids(path: PathLike) -> FrozenSet[str]:
    """Read a file with one id per line, such as documents to leave out."""
    return frozenset(line.strip() for _, line in read_lines(path) if line.strip())
