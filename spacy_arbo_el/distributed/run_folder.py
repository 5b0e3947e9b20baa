"""The folder of a run: whose it is, and whether a run that is continued is the same."""

import json
from pathlib import Path
from typing import Any, Dict, Sequence

from ..errors import Errors
from ..storage.files import is_temporary, write_file
from .identity import differing

JOB = "job.json"


def check_folder(folder: Path, before: Sequence[str] = ()) -> None:
    """Raise ValueError where a folder holds anything but a run.

    before: Names that are written before ``JOB``.
    """
    names = {path.name for path in folder.glob("*") if not is_temporary(path.name)}
    others = sorted(names - set(before))
    if others and JOB not in names:
        raise ValueError(Errors.E902.format(path=folder, names=", ".join(others[:3])))


def write_settings(folder: Path, settings: Dict[str, Any]) -> None:
    """Write what must stay the same."""
    write_file(folder / JOB, json.dumps(settings, indent=2).encode("utf8"))


def changed_settings(folder: Path, settings: Dict[str, Any]) -> str:
    """How a run differs from the one that is in the folder, for people; "" if it doesn't."""
    return differing(settings, json.loads((folder / JOB).read_text(encoding="utf8")))


def begin_beside(folder: Path, settings: Dict[str, Any]) -> None:
    """Begin or continue a run whose folder is beside its result, and is removed at the end.

    ValueError where the folder holds anything else, or a run with other settings.
    """
    check_folder(folder)
    if not (folder / JOB).is_file():
        write_settings(folder, settings)
    differences = changed_settings(folder, settings)
    if differences:
        raise ValueError(Errors.E903.format(path=folder, differences=differences))
