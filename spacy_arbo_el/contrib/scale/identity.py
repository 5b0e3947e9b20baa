"""The identity of a run: pipeline, packages and settings.

It is the same on all machines and after a restart.
"""

import hashlib
import importlib.metadata
import platform
from contextlib import suppress
from pathlib import Path
from typing import Any

import spacy

from ... import __version__
from ...kb.folder import is_derived
from ...records.lines import check_exists
from ...storage.files import is_temporary
from .errors import ScaleMessages

# Packages beside this one of which another version may give other links.
PACKAGES = ("spacy", "torch")
# Files beside an open database.
OPEN_DATABASE = ("-wal", "-shm", "-journal", ".lock")
BLOCK = 1 << 22


def versions() -> dict[str, str]:
    """Versions of packages that links depend on. Builds such as ``+cpu`` are left out.

    Those that are not installed are left out.
    """
    version_of = {"spacy_arbo_el": __version__}
    for name in PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            version_of[name] = importlib.metadata.version(name).split("+")[0]
    return version_of


def model_folder(model: Path) -> Path:
    """Find a pipeline's folder by path or package name."""
    if model.is_dir():
        return model
    if not spacy.util.is_package(str(model)):
        raise ScaleMessages.E898(name=str(model))
    package = spacy.util.get_package_path(str(model))
    (config,) = package.glob("*/config.cfg")
    return config.parent


def fingerprint(path: Path) -> str:
    """Hash the names and contents of a folder, without what follows from the rest.

    RETURNS: 32 hexadecimal digits.
    """
    digest = hashlib.blake2b(digest_size=16)
    for file in sorted(check_exists(path).rglob("*")):
        if not file.is_file() or is_temporary(file.name):
            continue
        if file.name.endswith(OPEN_DATABASE) or is_derived(file):
            continue
        name = file.relative_to(path).as_posix()
        digest.update(f"{name}\0{file.stat().st_size}\0".encode())
        with file.open("rb") as content:
            while block := content.read(BLOCK):
                digest.update(block)
    return digest.hexdigest()


def check_same(driver: dict[str, Any], worker: dict[str, Any]) -> None:
    """Raise ValueError if worker and driver would link differently."""
    differences = differing(driver, worker)
    if differences:
        raise ScaleMessages.E891(host=platform.node(), differences=differences)


def differing(ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    """The settings in which two runs differ, as text; "" for none."""
    return "; ".join(
        f"{name} is {theirs.get(name)!r}, not {ours.get(name)!r}"
        for name in {**ours, **theirs}
        if ours.get(name) != theirs.get(name)
    )
