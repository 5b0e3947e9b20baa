"""Creation of knowledge bases from files and configs."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from spacy.kb import InMemoryLookupKB, KnowledgeBase
from spacy.util import ensure_path, registry
from spacy.vocab import Vocab

from ..base.errors import Errors, Warnings
from ..records.formats import (
    check_readable,
    entity_formats,
    format_of,
    make_reader,
    parsed_options,
)
from ..records.lines import check_exists
from ..storage.folders import restore
from .database import DATABASE
from .entity import Entity
from .folder import LOCK, replacing_kb
from .importers import ImportReport, entities_of
from .importers.common import records_by_id
from .knowledge_base import ArboKB
from .vector_cache import carry_over


def import_into(
    kb: ArboKB,
    source: Path,
    format: str = "",
    *,
    replace: bool = False,
    watch: Callable[[Iterable[Entity]], Iterable[Entity]] = iter,
    **options: Any,
) -> ImportReport:
    """Add all entities of a file, or none.

    Other ids that the source has for an entity lead to it.

    source: The file, or a folder of files.
    format: A name in ``entity_formats``; "" for that of the file's name.
    replace: Whether to replace entities with the same ids, which are an error otherwise.
    watch: Function that entities pass through, such as a progress bar.
    options: Options of the reader, such as ``skip_bad``.
    RETURNS: The number of entities, and what was left out.
    """
    format = format or known_format_of(source)
    if format == "jsonl":
        # Otherwise the knowledge base checks it, without memory for all ids.
        options["unique"] = options.get("skip_bad", False)
    reader = make_reader(entity_formats, format, options)
    report = ImportReport()
    with kb.transaction():
        entities = watch(reader.read(source, report))
        report.count = kb.upsert(entities) if replace else kb.add(entities)
        if not report.count:
            skipped = f" ({report.reasons})" if report.skipped else ""
            raise Errors.E047(path=source, skipped=skipped)
        kb.redirect(kb.entities.usable(report.all_redirects()))
        kb.entities.note_layout(report.layout)
    return report


def known_format_of(path: Path) -> str:
    """Infer the format of a file of entities, or "jsonl". ValueError for one of another kind."""
    format = format_of(entity_formats, path) or "jsonl"
    if not path.is_dir():
        check_readable(path, entity_formats.get(format))
    return format


def parsed_options_of(
    source: Path, format: str, options: Iterable[str]
) -> dict[str, Any]:
    """Options of a format, or of that of a file, as a command has them."""
    format = format or known_format_of(source)
    if format in entity_formats:
        return parsed_options(entity_formats.get(format), options)
    return {}


def build(
    path: Path,
    source: Path,
    format: str = "",
    *,
    dtype: str = "float32",
    overwrite: bool = False,
    finish: Callable[[ArboKB], Any] | None = None,
    **options: Any,
) -> ImportReport:
    """Build the folder of a knowledge base from a file. It appears when it is complete.

    Merged ids of the one that it replaces go on leading to entities that are still there, and
    its vectors are used again where they are whole.

    source: The file, or a folder of files.
    format: A name in ``entity_formats``; "" for that of the file's name.
    overwrite: Whether a knowledge base that is there is replaced. Otherwise ValueError.
    finish: Called with the knowledge base before the folder appears, to encode it for example.
    options: Further arguments of ``import_into``.
    RETURNS: The number of entities, and what was left out.
    """
    with replacing_kb(path, overwrite=overwrite) as folder:
        merged = _merged_ids(path) if (path / DATABASE).is_file() else {}
        with ArboKB.create(folder, dtype=dtype) as kb:
            with kb.database.bulk_loading():
                report = import_into(kb, source, format, **options)
            present = kb.entities.redirects()
            moved = {old: merged[old] for old in merged.keys() - present.keys()}
            report.merged = kb.redirect(kb.entities.usable(moved))
            report.lost = len(moved) - report.merged
            if finish is not None:
                carry_over(path, folder)
                finish(kb)
        (folder / LOCK).unlink(missing_ok=True)
    return report


def _merged_ids(path: Path) -> dict[str, str]:
    """Ids that lead to entities in a folder. Of a damaged one none, and a warning."""
    try:
        return ArboKB.for_reading(path).entities.redirects()
    except (ValueError, OSError) as error:
        Warnings.W108.warn(path=path, problem=error)
        return {}


def load_kb(source: Any, vocab: Vocab) -> ArboKB:
    """A knowledge base from whatever stands for one.

    source: An ``ArboKB`` or spaCy's ``InMemoryLookupKB``; a path to the folder of an ``ArboKB``, or
        to a file of entities in any format; entities, dicts or a data frame, see ``entities_from``;
        a dict with a dict or names for each id; or a function from a vocabulary to a knowledge
        base.
    """
    if isinstance(source, ArboKB):
        return source
    if isinstance(source, InMemoryLookupKB):
        return ArboKB(vocab, entities_of(source))
    if isinstance(source, (str, Path)):
        return KBFromPath(Path(source))(vocab)
    if callable(source):
        source = source(vocab)
        if isinstance(source, (ArboKB, InMemoryLookupKB)):
            return load_kb(source, vocab)
        raise Errors.E503(got=type(source).__name__)
    if isinstance(source, KnowledgeBase):
        raise Errors.E503(got=type(source).__name__)
    source = records_by_id(source) or source
    if not isinstance(source, Iterable) or isinstance(
        source, (Mapping, bytes, bytearray)
    ):
        raise Errors.E502(got=type(source).__name__)
    return ArboKB(vocab, source)


# Loaders are not dataclasses: spaCy passes the arguments of ``initialize`` through pydantic, which
# turns dataclasses into dicts.
@registry.misc("spacy-arbo-el.KBFromPath.v1")
class KBFromPath:
    """A knowledge base from a folder or JSONL file.

    The usual loader::

        [initialize.components.arbo_linker.kb_loader]
        @misc = "spacy-arbo-el.KBFromPath.v1"
        path = ${paths.kb}

    path: The folder or the file: JSONL, or what the end of its name says.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"KBFromPath(path={self.path!r})"

    def __call__(self, vocab: Vocab) -> ArboKB:
        path = ensure_path(self.path)
        restore(path)
        hint = "Give the folder of a saved knowledge base, or a file of entities."
        if check_exists(path, hint).is_dir():
            return ArboKB(vocab).from_disk(path)
        kb = ArboKB(vocab)
        report = import_into(kb, path)
        if report.skipped:
            count = report.skipped.total()
            Warnings.W106.warn(path=path, count=count, reasons=report.reasons)
        return kb
