"""The folder of a component: one file for each part, the knowledge base, and one manifest.

The manifest has the checksum of every file and the identity of the knowledge base. It is written
last, in one step, and makes what was written before count: until then the new files have other
names. So a folder that is saved over itself is the old one or the new one, at any moment::

    manifest.json        names the save that counts
    exemplars            a part
    exemplars.<save>     a part that has not got its name yet, or that was never to count
    kb, kb.<save>        the knowledge base, likewise
"""

import contextlib
import hashlib
import json
import os
import re
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import srsly

from ..errors import Errors
from ..folder_lock import locked_folder
from ..io import exchange, write_file
from ..kb import folder as kb_folder
from ..kb.knowledge_base import ArboKB
from ..temporary import remove_abandoned, restore, sync_folder

FORMAT = "spacy-arbo-el.linker"
VERSION = 2
MANIFEST = "manifest.json"
KB = "kb"
# How often a folder is read anew that another program is writing at the same time.
TRIES = 20
# Seconds to wait for another program that is saving into the folder.
PATIENCE = 60.0

_NUMBER = "[0-9a-f]{32}"


@dataclass(frozen=True)
class Checksum:
    """The length and the hash of a file."""

    size: int
    hash: str

    @classmethod
    def of(cls, data: bytes) -> "Checksum":
        return cls(len(data), hashlib.blake2b(data, digest_size=16).hexdigest())


@dataclass(frozen=True)
class Manifest:
    """What one save wrote.

    save: Identifies the save, 32 hexadecimal digits.
    files: The checksum of each part.
    kb: The uuid of the knowledge base and its number of edits; None where it was excluded.
    encoder: The fingerprint of the encoder, "" where it had no weights.
    """

    save: str
    files: Mapping[str, Checksum]
    kb: Optional[Tuple[str, int]]
    encoder: str

    def to_dict(self) -> Dict[str, Any]:
        """JSON-serialisable, with a checksum of its own."""
        content: Dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "save": self.save,
            "files": {name: [sum.size, sum.hash] for name, sum in self.files.items()},
            "kb": None if self.kb is None else list(self.kb),
            "encoder": self.encoder,
        }
        return {**content, "checksum": _checksum(content)}

    @classmethod
    def from_dict(cls, content: Any) -> "Manifest":
        """What ``to_dict`` gave; ValueError where it is something else."""
        try:
            content = dict(content)
            if (content.get("format"), content.get("version")) != (FORMAT, VERSION):
                raise ValueError(f"format version {content.get('version')!r:.20}")
            if content.pop("checksum") != _checksum(content):
                raise ValueError("its checksum is wrong")
            if not re.fullmatch(_NUMBER, content["save"]):
                raise ValueError("it has no number")
            files = {
                str(name): Checksum(int(size), str(hash))
                for name, (size, hash) in content["files"].items()
            }
            kb = None if content["kb"] is None else (str(content["kb"][0]), int(content["kb"][1]))
            return cls(content["save"], files, kb, str(content["encoder"]))
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from None


def _checksum(content: Mapping[str, Any]) -> str:
    return hashlib.blake2b(
        json.dumps(content, sort_keys=True).encode("utf8"), digest_size=16
    ).hexdigest()


@dataclass(frozen=True)
class Saved:
    """What was read of a save.

    manifest: What the save wrote.
    parts: The bytes of each part that was asked for.
    """

    manifest: Manifest
    parts: Mapping[str, bytes]


@dataclass(frozen=True)
class ComponentFolder:
    """A folder that a component is saved in."""

    path: Path

    # Writing

    def write(
        self, parts: Mapping[str, Callable[[], bytes]], kb: Optional[ArboKB], encoder: str
    ) -> None:
        """Save in one step. What is not given stays as it was saved before.

        parts: For each part a function that gives its bytes.
        kb: The knowledge base.
        encoder: The fingerprint of the encoder.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with locked_folder(self.path, Errors.E050.format(path=self.path), PATIENCE):
            before = self._settle()
            save = uuid.uuid4().hex
            files = dict(before.files) if before is not None else {}
            for name, dump in parts.items():
                data = dump()
                files[name] = Checksum.of(data)
                _write_new(self.path / f"{name}.{save}", data)
            identity = before.kb if before is not None else None
            if kb is not None:
                identity = self._write_kb(kb, save)
            sync_folder(self.path)
            manifest = Manifest(save, files, identity, encoder)
            write_file(self.path / MANIFEST, srsly.json_dumps(manifest.to_dict()).encode("utf8"))
            self._settle()

    def _write_kb(self, kb: ArboKB, save: str) -> Optional[Tuple[str, int]]:
        """Write the knowledge base beside the old one. RETURNS: Its identity."""
        old, storage = self.path / KB, kb.storage
        is_writer = storage.lock is not None and storage.path is not None
        if is_writer and old.exists() and old.samefile(storage.path):  # type: ignore[arg-type]
            return kb_folder.state(old)  # Every change is in it already.
        if (old / kb_folder.DATABASE).is_file():
            # An error where another program is editing it, whose edits would be lost.
            kb_folder.lock(old).release()
        new = self.path / f"{KB}.{save}"
        kb.to_disk(new)
        return kb_folder.state(new)

    def _settle(self) -> Optional[Manifest]:
        """Give the files of the last save their names, and remove those of unfinished saves.

        RETURNS: The manifest; None where there is none that can be read.
        """
        try:
            manifest: Optional[Manifest] = self._read_manifest()
        except (ValueError, OSError):
            manifest = None
        restore(self.path / KB)
        if manifest is not None:
            for name in manifest.files:
                pending = self.path / f"{name}.{manifest.save}"
                if pending.is_file():
                    os.replace(pending, self.path / name)
            self._settle_kb(manifest)
        for path in self._leftovers():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        for name in (MANIFEST, KB):
            remove_abandoned(self.path / name)
        return manifest

    def _settle_kb(self, manifest: Manifest) -> None:
        pending, kb = self.path / f"{KB}.{manifest.save}", self.path / KB
        if not _is_kb(pending, manifest) or _is_kb(kb, manifest):
            return
        if not kb.is_dir() or not exchange(pending, kb):
            if kb.exists():
                os.rename(kb, self.path / f"old.{manifest.save}")
            os.rename(pending, kb)

    def _leftovers(self) -> List[Path]:
        """What has a name of a save: it is not needed any more, or was never to count."""
        names = re.compile(rf"\w+\.{_NUMBER}|\.{KB}\.{_NUMBER}\.{_NUMBER}\.tmp")
        entries = os.listdir(self.path) if self.path.is_dir() else []
        return [self.path / entry for entry in sorted(entries) if names.fullmatch(entry)]

    # Reading

    def read(self, names: Sequence[str], open_kb: Optional[Callable[[Path], ArboKB]]) -> Saved:
        """The parts of one save, each checked; ValueError that names what is missing or damaged.

        names: The parts to read.
        open_kb: Function that opens the knowledge base of a folder; None to leave it out.
        """
        self._settle_if_possible()
        failed: Optional[Manifest] = None
        for tries in range(TRIES):
            manifest = self._read_manifest()
            try:
                parts = {name: self._read_part(name, manifest) for name in names}
                if open_kb is not None:
                    self._open_kb(manifest, open_kb)
                return Saved(manifest, parts)
            except (ValueError, OSError):
                # Another program may have saved in the meantime, or be moving the parts of this
                # save to their places.
                is_same = self._read_manifest() == manifest
                if (is_same and failed == manifest) or tries == TRIES - 1:
                    raise
                failed = manifest
        raise AssertionError

    def _settle_if_possible(self) -> None:
        """Finish a save that was killed, unless the program is still alive or must not write."""
        if self._leftovers():
            with contextlib.suppress(ValueError, OSError), locked_folder(self.path, ""):
                self._settle()

    def _read_manifest(self) -> Manifest:
        path = self.path / MANIFEST
        try:
            return Manifest.from_dict(srsly.json_loads(path.read_bytes().decode("utf8")))
        except FileNotFoundError:
            raise ValueError(Errors.E051.format(path=self.path)) from None
        except (ValueError, RecursionError) as error:
            raise ValueError(Errors.E052.format(path=path, problem=error)) from None

    def _read_part(self, name: str, manifest: Manifest) -> bytes:
        path, expected = self.path / name, manifest.files.get(name)
        if expected is None:
            raise ValueError(Errors.E053.format(path=self.path, name=name))
        problem = "it is missing"
        for candidate in (path, self.path / f"{name}.{manifest.save}"):
            if not candidate.is_file():
                continue
            data = candidate.read_bytes()
            if Checksum.of(data) == expected:
                return data
            if len(data) != expected.size:
                problem = f"it has {len(data)} bytes instead of {expected.size}"
            else:
                problem = "its checksum is wrong"
        raise ValueError(Errors.E052.format(path=path, problem=problem))

    def _open_kb(self, manifest: Manifest, open_kb: Callable[[Path], ArboKB]) -> None:
        if manifest.kb is None:
            raise ValueError(Errors.E053.format(path=self.path, name=KB))
        pending, path = self.path / f"{KB}.{manifest.save}", self.path / KB
        if _is_kb(pending, manifest) and not _is_kb(path, manifest):
            path = pending
        _check_identity(path, kb_folder.state(path), manifest.kb)
        found = open_kb(path).database.manifest()
        _check_identity(path, (found.get("uuid"), found.get("generation", 0)), manifest.kb)


def _check_identity(path: Path, found: Optional[Tuple[Any, int]], saved: Tuple[str, int]) -> None:
    """ValueError where a knowledge base is another than the saved one, or an older state of it.

    found: Its identity; None where it can't be read, of which opening it tells more.
    """
    if found is not None and (found[0] != saved[0] or found[1] < saved[1]):
        raise ValueError(Errors.E054.format(path=path))


def _is_kb(path: Path, manifest: Manifest) -> bool:
    """Whether a folder is the knowledge base that a manifest names."""
    state = kb_folder.state(path) if path.is_dir() else None
    return state is not None and manifest.kb is not None and state[0] == manifest.kb[0]


def _write_new(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
