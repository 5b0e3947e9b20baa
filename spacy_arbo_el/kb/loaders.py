"""Functions that make a knowledge base, for ``[initialize.components.arbo_linker.kb_loader]``."""

from pathlib import Path
from typing import Any, Callable, Iterable

from spacy.util import ensure_path, registry
from spacy.vocab import Vocab

from ..errors import Errors
from ..io import replacing_folder
from .entity import Entity
from .folder import LOCK
from .importers import READERS, ImportReport, read_entities_jsonl
from .importers.jsonl import line_of
from .knowledge_base import ArboKB
from .store import DuplicateId


def import_into(
    kb: ArboKB,
    source: Path,
    format: str = "jsonl",
    *,
    replace: bool = False,
    watch: Callable[[Iterable[Entity]], Iterable[Entity]] = iter,
    **options: Any,
) -> ImportReport:
    """Add all entities of a file to a knowledge base, or none.

    replace: Whether they take the place of those with their ids, which are an error otherwise.
    format: One of ``READERS``. options: What its reader takes.
    watch: Function that entities pass through, such as a progress bar.
    RETURNS: What was left out. Other ids that the source has for entities lead to these.
    """
    if format not in READERS:
        raise ValueError(Errors.E024.format(value=format, choices=", ".join(READERS)))
    report = ImportReport()
    if format == "jsonl":
        options["unique"] = False  # the knowledge base finds out, without remembering all
    with kb.transaction():
        try:
            entities = watch(READERS[format](source, report, **options))
            report.count = kb.upsert(entities) if replace else kb.add(entities)
        except DuplicateId as error:
            lines = [line_of(source, error.id, nth) for nth in (1, 2)] if format == "jsonl" else [0]
            if all(lines):
                where = " in {}, lines {} and {}".format(source, *lines)
                raise DuplicateId(error.id, where) from None
            raise
        known = kb.entities.positions_of([*report.redirects, *report.redirects.values()])
        half = len(report.redirects)
        leads = zip(report.redirects.items(), known[:half], known[half:])
        kb.redirect({old: new for (old, new), there, target in leads if there < 0 <= target})
    return report


def build(
    path: Path,
    source: Path,
    format: str = "jsonl",
    *,
    dtype: str = "float32",
    finish: Callable[[ArboKB], Any] = lambda kb: None,
    **options: Any,
) -> ImportReport:
    """A folder of a knowledge base from a file, written under another name until it is whole.

    dtype: Of its vectors. finish: Function that is given the knowledge base before it is in place,
        to encode it for example.
    """
    with replacing_folder(path) as folder:
        with ArboKB.create(folder, dtype=dtype) as kb:
            with kb.database.hurrying():
                report = import_into(kb, source, format, **options)
            finish(kb)
        (folder / LOCK).unlink(missing_ok=True)
    return report


@registry.misc("spacy-arbo-el.KBFromPath.v1")
def kb_from_path(path: Path) -> Callable[[Vocab], ArboKB]:
    """A knowledge base from a folder that ``ArboKB.to_disk`` wrote, or from a JSONL of entities."""

    def load(vocab: Vocab) -> ArboKB:
        place = ensure_path(path)
        if not place.exists():
            hint = "Give the folder of a saved knowledge base, or a JSONL file of entities."
            raise ValueError(Errors.E101.format(path=place, hint=hint))
        if place.is_dir():
            return ArboKB(vocab).from_disk(place)
        return ArboKB(vocab, read_entities_jsonl(place))

    return load


@registry.misc("spacy-arbo-el.KBFromCorpus.v1")
def kb_from_corpus(path: Path) -> Callable[[Vocab], ArboKB]:
    """A knowledge base of the ids that an annotated ``.spacy`` links to, without any names.

    For linking by exemplars alone (MOLEMAN, §3), with ``NoText.v1`` as verbalization.
    """

    def load(vocab: Vocab) -> ArboKB:
        from ..corpora.reader import read_docs
        from ..mentions import gold_ids

        spans = (
            span
            for doc in read_docs(ensure_path(path), vocab)
            for group in (doc.ents, *doc.spans.values())
            for span in group
        )
        ids = dict.fromkeys(kb_id for span in spans for kb_id in gold_ids(span))
        return ArboKB(vocab, [Entity(kb_id, meta={"unnamed": True}) for kb_id in ids])

    return load


@registry.misc("spacy-arbo-el.EmptyKB.v1")
def empty_kb() -> Callable[[Vocab], ArboKB]:
    """A knowledge base without entities: every mention is new."""
    return ArboKB
