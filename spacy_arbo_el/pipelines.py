"""Saving and loading whole pipelines in one step, by one program at a time."""

import contextlib
import json
import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import catalogue
import spacy
from filelock import FileLock
from spacy.language import Language
from spacy.util import SimpleFrozenList

from .base.devices import device_of_vectors
from .base.errors import Errors, Warnings, code_of
from .kb.database import DATABASE
from .linker import ArboLinker, find_linker
from .linking.component_folder import CHECKSUMS
from .records.lines import read_start
from .storage.files import CAN_LOCK, MANIFEST, Checksum, Manifest, remove_abandoned
from .storage.folders import (
    LOCK,
    FolderKind,
    acquire,
    check_replaceable,
    locked_folder,
    replacing_folder,
    restore,
)

# Seconds that saving waits for another program which is changing the same pipeline.
PATIENCE = 60.0
CHECKSUM_FORMAT = ("spacy-arbo-el.pipeline", 1)
# Functions of a pipeline that has been loaded and of its folder, by name. Packages register them by
# the entry points ``spacy_arbo_el_after_load``.
after_load = catalogue.create("spacy_arbo_el", "after_load", entry_points=True)
# The one that makes the decisions of a review.
REVIEW = "review"


def _names_in_pipeline(folder: Path) -> str | None:
    """The pattern of names in a pipeline: spaCy's, and the components that meta.json lists."""
    try:
        meta = json.loads(read_start(folder / "meta.json", 1 << 24))
        components = [
            *meta["components"],
            "config.cfg",
            "meta.json",
            "tokenizer",
            "vocab",
        ]
        return "|".join(re.escape(name) for name in components)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


# A folder that ``nlp.to_disk`` wrote.
PIPELINE = FolderKind("a pipeline", _names_in_pipeline, nested=True)


def pipeline_from_list(
    source: Any,
    lang: str = "en",
    config: Mapping[str, Mapping[str, Any]] | None = None,
) -> Language:
    """Make the pipeline that links raw text to a list: ``arbo_names`` and ``arbo_linker``.

    source: The entities, as for ``set_kb`` of the linker.
    lang: The language of the tokenizer.
    config: Settings of each component that differ from the default.
    """
    nlp = spacy.blank(lang)
    settings = config or {}
    for name in ("arbo_names", "arbo_linker"):
        nlp.add_pipe(name, config=dict(settings.get(name, {})))
    find_linker(nlp).set_kb(source)
    return nlp


def save_pipeline(
    nlp: Language, path: str | Path, *, exclude: Iterable[str] = SimpleFrozenList()
) -> None:
    """Save a pipeline in one step. After a kill, ``path`` is the old pipeline or the new one.

    ``nlp.to_disk`` writes over the files of an older pipeline one after the other. It is as safe
    where there is no older one.

    Raises ValueError where ``path`` holds anything else than a pipeline, or where another program
    is changing the pipeline.

    exclude: Parts to omit, as for ``nlp.to_disk``.
    """
    _prepare(nlp, Path(path))
    target = check_replaceable(path, PIPELINE)
    with (
        _changing(target, PATIENCE),
        replacing_folder(path, PIPELINE) as folder,
    ):
        _write(nlp, folder, exclude)


@contextlib.contextmanager
def edit_pipeline(path: str | Path, **settings: Any) -> Iterator[Language]:
    """Load a pipeline, and save it if the block raises nothing.

    No other program that uses this function or ``save_pipeline`` can change it in between.

    Raises ValueError where another program is changing it.

    settings: For ``spacy.load``.
    """
    with changing_pipeline(path) as owner:
        nlp = load_pipeline(owner.path, **settings)
        yield nlp
        owner.save(nlp)


class PipelineOwner:
    """The owner of a pipeline's lock. Any thread may save in its name.

    A lock of a folder belongs to the thread that took it. This one has it already, so that it takes
    none; a knowledge base in the folder that it writes is locked before others can see it.

    path: The real path of the pipeline: a link to it may lead elsewhere by the time it is saved.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._locked = _lock_of(path)
        self._saving = threading.Lock()
        self._databases: list[FileLock] = []

    def save(self, nlp: Language) -> None:
        """Save the pipeline in one step, as ``save_pipeline``.

        Raises ValueError where another folder has taken the place of the locked one.
        """
        with self._saving:
            if _lock_of(self.path) != self._locked:
                raise Errors.E044(path=self.path)
            _prepare(nlp, self.path)
            with replacing_folder(self.path, PIPELINE) as folder:
                _write(nlp, folder)
                for database in _databases_in(folder) if CAN_LOCK else ():
                    # Whatever thread saves last, or ends the command, gives it back.
                    lock = FileLock(str(database.parent / LOCK), thread_local=False)
                    acquire(lock, Errors.E018(where=database.parent), 0.0)
                    self._databases.append(lock)
            self._locked = _lock_of(self.path)

    def release(self) -> None:
        for lock in self._databases:
            lock.release()


@contextlib.contextmanager
def changing_pipeline(path: str | Path) -> Iterator[PipelineOwner]:
    """Lock a pipeline and its KBs for changes. The lock holds from loading to saving.

    Read and write it at the path of the owner, which is no link.

    Raises ValueError where another program has it, or where the folder holds other files too.
    """
    target = check_replaceable(path, PIPELINE)
    restore(target)
    with _changing(target), contextlib.ExitStack() as stack:
        remove_abandoned(target)
        owner = PipelineOwner(target)
        stack.callback(owner.release)
        yield owner


@contextlib.contextmanager
def _changing(path: Path, wait: float = 0.0) -> Iterator[None]:
    with (
        locked_folder(path, Errors.E050(path=path), wait),
        contextlib.ExitStack() as locks,
    ):
        # Other programs must not edit a knowledge base that is about to be replaced.
        for database in _databases_in(path):
            refusal = Errors.E018(where=database.parent)
            locks.enter_context(locked_folder(database.parent, refusal))
        yield


def _lock_of(path: Path) -> tuple[int, int] | None:
    """The device and the number of a folder's lock file. None where it has none."""
    try:
        status = os.lstat(path / LOCK)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _databases_in(path: Path) -> list[Path]:
    return sorted(path.glob(f"*/*/{DATABASE}"))


def load_pipeline(path: str | Path, **settings: Any) -> Language:
    """Load a pipeline, naming any unreadable file. Otherwise as ``spacy.load``.

    Then all functions of ``after_load`` are called, by name. That of a review makes the decisions
    that came after the pipeline was saved; a warning says where it is missing.

    settings: For ``spacy.load``.
    """
    restore(Path(path))
    _check_files(Path(path))
    try:
        nlp = spacy.load(path, **settings)
    except Exception as error:  # each file has its own reader, with its own errors
        if code_of(error) or isinstance(error, (ValueError, OSError, ImportError)):
            raise
        raise Errors.E056(path=path, problem=repr(error)) from error
    hooks = after_load.get_all()
    for name in sorted(hooks):
        hooks[name](nlp, Path(path))
    if REVIEW not in hooks and journal_path(Path(path)).is_file():
        Warnings.W051.warn(path=journal_path(Path(path)))
    return nlp


def journal_path(model: Path) -> Path:
    """The file of a review's decisions on a pipeline, beside its folder."""
    model = Path(os.path.realpath(model))
    return model.with_name(f"{model.name}.{REVIEW}.jsonl")


def _checksums(folder: Path) -> dict[str, Checksum]:
    """The checksums of what spaCy wrote. Linkers have their own."""
    linkers = {path.parent for path in folder.glob(f"*/{MANIFEST}")}
    return {
        path.relative_to(folder).as_posix(): Checksum.of(path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file() and linkers.isdisjoint(path.parents)
    }


def _write(nlp: Language, folder: Path, exclude: Iterable[str] = ()) -> None:
    """Write a pipeline, and the checksums of spaCy's files to the folders of linkers.

    There they are gone once ``nlp.to_disk`` writes over the pipeline.
    """
    with device_of_vectors(nlp.vocab):
        nlp.to_disk(folder, exclude=exclude)
    data = Manifest(_checksums(folder), {}).to_bytes(*CHECKSUM_FORMAT)
    for manifest in folder.glob(f"*/{MANIFEST}"):
        (manifest.parent / CHECKSUMS).write_bytes(data)


def _check_files(path: Path) -> None:
    """Raise ValueError for a file that is not as ``save_pipeline`` wrote it."""
    try:
        manifests = {
            file: file.read_bytes() for file in sorted(path.glob(f"*/{CHECKSUMS}"))
        }
        files = _checksums(path) if manifests else {}
        for file, data in manifests.items():
            try:
                expected = Manifest.from_bytes(data, *CHECKSUM_FORMAT).files
            except ValueError as error:
                raise Errors.E052(path=file, problem=error) from None
            changed = [
                name for name in sorted(expected) if files.get(name) != expected[name]
            ]
            if file.read_bytes() != data:
                raise FileNotFoundError(file)
            if changed:
                raise Errors.E061(path=path / changed[0])
    except FileNotFoundError:  # another program has saved meanwhile
        _check_files(path)


def _prepare(nlp: Language, path: Path) -> None:
    """Write the settings in force of all linkers to the pipeline's config.

    ValueError where a knowledge base that is open for writing would be replaced.
    """
    for name, pipe in nlp.components:
        if isinstance(pipe, ArboLinker):
            pipe.cfg.write_to(nlp, name)
            place = pipe.kb.storage.open_folder
            if place is not None and path.resolve() in place.resolve().parents:
                raise Errors.E055(path=place)
