"""What a run links with: the same on all machines, and after a restart."""

import hashlib
import importlib.metadata
import platform
from pathlib import Path
from typing import Any, Dict, Iterator, Tuple

import spacy

from .. import __version__
from ..errors import Errors
from ..settings import different_keys
from ..storage.files import is_temporary
from ..storage.lines import check_exists

# Packages beside this one of which another version may give other links.
PACKAGES = ("spacy", "torch")
# Files beside an open database.
OPEN_DATABASE = ("-wal", "-shm", "-journal", ".lock")
BLOCK = 1 << 22


def versions() -> Dict[str, str]:
    """The versions of the packages that links depend on, without builds such as ``+cpu``.

    Those that are not installed are left out: a pipeline without a transformer needs no torch.
    """
    return {"spacy_arbo_el": __version__, **dict(_installed())}


def _installed() -> Iterator[Tuple[str, str]]:
    for name in PACKAGES:
        try:
            yield name, importlib.metadata.version(name).split("+")[0]
        except importlib.metadata.PackageNotFoundError:
            continue


def model_folder(model: Path) -> Path:
    """The folder of a pipeline that is given as a path, or as the name of an installed package."""
    if model.is_dir():
        return model
    if not spacy.util.is_package(str(model)):
        raise ValueError(Errors.E898.format(name=str(model)))
    package = spacy.util.get_package_path(str(model))
    (config,) = package.glob("*/config.cfg")
    return config.parent


def folder_fingerprint(folder: Path) -> str:
    """A hash of the names and contents of all files of a folder, 32 hexadecimal digits."""
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(check_exists(folder).rglob("*")):
        if path.is_file() and not is_temporary(path.name) and not path.name.endswith(OPEN_DATABASE):
            _add(digest, path, path.relative_to(folder).as_posix())
    return digest.hexdigest()


def fingerprint(path: Path) -> str:
    """A hash of a file, whatever its name is, or of a folder; see ``folder_fingerprint``."""
    if check_exists(path).is_dir():
        return folder_fingerprint(path)
    digest = hashlib.blake2b(digest_size=16)
    _add(digest, path, "")
    return digest.hexdigest()


def _add(digest: "hashlib.blake2b", path: Path, name: str) -> None:
    """Add the name, size and content of a file."""
    digest.update(f"{name}\0{path.stat().st_size}\0".encode())
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)


def check_same(driver: Dict[str, Any], worker: Dict[str, Any]) -> None:
    """Raise ValueError where a worker would link with something else than the driver."""
    differences = differing(driver, worker)
    if differences:
        raise ValueError(Errors.E891.format(host=platform.node(), differences=differences))


def differing(ours: Dict[str, Any], theirs: Dict[str, Any]) -> str:
    """The settings in which two runs differ, for people; "" for none."""
    return "; ".join(
        f"{name} is {theirs.get(name)!r}, not {ours.get(name)!r}"
        for name in different_keys(ours, theirs)
    )
