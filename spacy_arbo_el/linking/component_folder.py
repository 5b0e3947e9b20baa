"""The folder that a component is saved in.

It has one file for each part, the knowledge base, and a manifest with the checksum of every file
and the identity of the knowledge base. It is replaced as a whole; unchanged files are linked from
the old one.
"""

import contextlib
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base.errors import Errors
from ..kb.database import DATABASE
from ..kb.folder import state_of
from ..kb.knowledge_base import ArboKB
from ..storage.files import MANIFEST, Checksum, Manifest
from ..storage.folders import (
    FolderKind,
    check_replaceable,
    link,
    locked_folder,
    replacing_folder,
    restore,
)

FORMAT = "spacy-arbo-el.linker"
VERSION = 3
KB = "kb"
# The checksums of the other files of its pipeline, which ``save_pipeline`` adds.
CHECKSUMS = "pipeline.json"
PARTS = ("vocab", "model", "exemplars", "reranker", "corrections", "new_entities")
# How often a folder is read anew that another program is writing at the same time.
TRIES = 20
# Seconds to wait for another program that is saving into the folder.
PATIENCE = 60.0

SAVED = FolderKind(
    "a saved linker",
    lambda folder: rf"manifest\.json|pipeline\.json|{KB}|{'|'.join(PARTS)}",
    nested=True,
)


@dataclass(frozen=True)
class ComponentFolder:
    """A folder that a component is saved in."""

    path: Path

    # Writing

    def write(
        self, dumps: Mapping[str, Callable[[], bytes]], kb: ArboKB | None
    ) -> None:
        """Save in one step. Parts that are not given stay as saved before.

        dumps: For each part a function that gives its bytes.
        """
        target = check_replaceable(self.path, SAVED)
        with contextlib.ExitStack() as stack:
            refusal = Errors.E050(path=self.path)
            stack.enter_context(locked_folder(target, refusal, PATIENCE))
            is_open_here = kb is not None and _is_open_in(kb, target / KB)
            if is_open_here:
                stack.enter_context(kb.guard.reading())  # type: ignore[union-attr]
            elif (target / KB / DATABASE).is_file():
                # An error where another program is editing it, whose edits would be lost.
                refusal = Errors.E018(where=target / KB)
                stack.enter_context(locked_folder(target / KB, refusal))
            folder = stack.enter_context(replacing_folder(self.path, SAVED))
            before = None
            with contextlib.suppress(ValueError, OSError):
                before = self._read_manifest()
            files = (
                {k: v for k, v in before.files.items() if k in PARTS} if before else {}
            )
            for name in set(files) - set(dumps):
                if (target / name).is_file():
                    link(target / name, folder / name)
            for name, dump in dumps.items():
                data = dump()
                files[name] = Checksum.of(data)
                (folder / name).write_bytes(data)
            identity = before.about["kb"] if before else None
            if kb is None or is_open_here:
                if (target / KB).is_dir():
                    link(target / KB, folder / KB)
            else:
                kb.to_disk(folder / KB)
            if kb is not None:
                identity = state_of(folder / KB)
            details = {"save": uuid.uuid4().hex, "kb": identity}
            (folder / MANIFEST).write_bytes(
                Manifest(files, details).to_bytes(FORMAT, VERSION)
            )

    # Reading

    def read(
        self, names: Sequence[str], open_kb: Callable[[Path], ArboKB] | None
    ) -> dict[str, bytes]:
        """The parts of one save, each checked.

        Raises ValueError that names missing or damaged files.

        open_kb: Function that opens the knowledge base of a folder; None to leave it out.
        """
        manifest = self._read_manifest()
        for tries_left in reversed(range(TRIES)):
            try:
                data_of = {name: self._read_part(name, manifest) for name in names}
                if open_kb is not None:
                    self._open_kb(manifest, open_kb)
                return data_of
            except (ValueError, OSError):
                # Another program may have saved in the meantime.
                before = manifest
                manifest = self._read_manifest()
                if manifest == before or not tries_left:
                    raise
        raise AssertionError

    def _read_manifest(self) -> Manifest:
        restore(self.path)
        path = self.path / MANIFEST
        try:
            manifest = Manifest.from_bytes(path.read_bytes(), FORMAT, VERSION)
            _check(manifest.about)
            return manifest
        except FileNotFoundError:
            raise Errors.E051(path=self.path) from None
        except ValueError as error:
            raise Errors.E052(path=path, problem=error) from None

    def _read_part(self, name: str, manifest: Manifest) -> bytes:
        path = self.path / name
        expected = manifest.files.get(name)
        if expected is None:
            raise Errors.E053(path=self.path, name=name)
        data = path.read_bytes() if path.is_file() else None
        problem = "it is missing" if data is None else expected.problem(data)
        if data is None or problem:
            raise Errors.E052(path=path, problem=problem)
        return data

    def _open_kb(self, manifest: Manifest, open_kb: Callable[[Path], ArboKB]) -> None:
        saved = manifest.about["kb"]
        path = self.path / KB
        if saved is None:
            raise Errors.E053(path=self.path, name=KB)
        _check_identity(path, state_of(path), saved)
        manifest_of_kb = open_kb(path).database.manifest()
        _check_identity(
            path,
            (manifest_of_kb.get("uuid"), manifest_of_kb.get("generation", 0)),
            saved,
        )


def _is_open_in(kb: ArboKB, path: Path) -> bool:
    """Return whether a KB is open for writing there. Every change is in the folder already."""
    place = kb.storage.open_folder
    return place is not None and path.exists() and path.samefile(place)


def _check(details: Mapping[str, Any]) -> None:
    """ValueError where a manifest of another program lacks something."""
    kb = details.get("kb")
    if not re.fullmatch("[0-9a-f]{32}", str(details.get("save"))):
        raise ValueError("it has no number")
    if kb is not None and not (
        isinstance(kb, list) and list(map(type, kb)) == [str, int]
    ):
        raise ValueError(f"kb is {kb!r:.60}")


def _check_identity(
    path: Path, identity: tuple[Any, int] | None, saved: Sequence[Any]
) -> None:
    """Raise ValueError for another KB than the saved one. An older state of it is refused too.

    identity: Its identity; None where it can't be read, of which opening it tells more.
    """
    if identity is not None and (identity[0] != saved[0] or identity[1] < saved[1]):
        raise Errors.E054(path=path)
