"""``arbo kb add``, ``remove``, ``merge`` and ``encode``: each one transaction on the folder."""

from pathlib import Path
from typing import List, Optional

from spacy.cli._util import Arg, Opt
from wasabi import msg

from ._util import errors_for_people


def load_linker(model: Path):
    """The linker of a saved pipeline."""
    import spacy

    from ..evaluation.report import find_linker

    return find_linker(spacy.load(model))


def encode_with(linker, kb) -> int:
    """Encode what of a knowledge base has changed; how many texts that were."""
    encoding = linker.encoding
    return kb.sync(linker.memory.verbalization, encoding.encode_texts, encoding.fingerprint)


def _check_encoder(linker, kb) -> None:
    from ..errors import Errors

    if kb.fingerprint and kb.fingerprint != linker.encoding.fingerprint:
        expected = linker.encoding.fingerprint
        raise ValueError(Errors.E025.format(found=kb.fingerprint, expected=expected))


def add_command(
    # fmt: off
    path: Path = Arg(..., help="Folder of a knowledge base"),
    source: Optional[Path] = Arg(None, help="File of entities; or give --id"),
    format: str = Opt("jsonl", "--format", "-f", help="As of arbo kb build"),
    replace: bool = Opt(False, "--replace", help="Replace entities of the same ids"),
    id: str = Opt("", "--id", help="Of a single entity"),
    title: str = Opt("", "--title", help="Of a single entity"),
    description: str = Opt("", "--description", help="Of a single entity"),
    aliases: List[str] = Opt([], "--alias", help="Of a single entity; may be repeated"),
    types: List[str] = Opt([], "--type", help="Of a single entity; may be repeated"),
    model: Optional[Path] = Opt(None, "--model", "-m", help="Pipeline whose linker encodes them"),
    # fmt: on
) -> None:
    """Add entities to a knowledge base, all or none, and encode just these."""
    from ..kb.entity import Entity
    from ..kb.knowledge_base import ArboKB
    from ..kb.loaders import import_into

    if (source is None) == (not id):
        msg.fail("Give either a file of entities or --id.", exits=1)
    with errors_for_people(), ArboKB.open(path) as kb:
        linker = load_linker(model) if model else None
        if linker is not None:
            _check_encoder(linker, kb)
        if source is None:
            entity = Entity(id, title, description, tuple(aliases), tuple(types))
            count = kb.upsert(entity) if replace else kb.add(entity)
        else:
            report = import_into(kb, source, format, replace=replace, watch=progress)
            count = report.count
            show_skipped(report)
        texts = encode_with(linker, kb) if linker else 0
        total = len(kb)
    msg.good(f"{path}: {count} added, {total} entities, {texts} texts encoded")


def progress(entities):
    """Entities, counted on the screen while they pass."""
    from tqdm import tqdm

    return tqdm(entities, unit=" entities", leave=False)


def show_skipped(report) -> None:
    """Say what an import left out, and why."""
    for reason, count in report.skipped.most_common():
        msg.info(f"{count} left out: {reason}")


def remove_command(
    path: Path = Arg(..., help="Folder of a knowledge base"),
    ids: List[str] = Arg(..., help="Entities to take out"),
) -> None:
    """Take entities out of a knowledge base, all or none."""
    from ..kb.knowledge_base import ArboKB

    with errors_for_people(), ArboKB.open(path) as kb:
        kb.remove(ids)
        total = len(kb)
    msg.good(f"{path}: {len(ids)} removed, {total} entities")


def merge_command(
    path: Path = Arg(..., help="Folder of a knowledge base"),
    old: str = Arg(..., help="Id that will lead to the other from now on"),
    new: str = Arg(..., help="Id that stays"),
) -> None:
    """Make one entity of two, with the names of both."""
    from ..kb.knowledge_base import ArboKB

    with errors_for_people(), ArboKB.open(path) as kb:
        entity = kb.merge(old, new)
    msg.good(f"{path}: {old} leads to {new} ({'; '.join(entity.names)})")


def encode_command(
    path: Path = Arg(..., help="Folder of a knowledge base"),
    model: Path = Arg(..., help="Pipeline whose linker encodes it"),
) -> None:
    """Bring a knowledge base's vectors up to date, or make them anew where they are another
    encoder's."""
    from ..kb.knowledge_base import ArboKB

    with errors_for_people(), ArboKB.open(path) as kb:
        count = encode_with(load_linker(model), kb)
    msg.good(f"{path}: {count} texts encoded")


def export_command(
    path: Path = Arg(..., help="Folder of a knowledge base"),
    output: Path = Arg(..., help="JSONL file to write"),
) -> None:
    """Write the entities of a knowledge base as JSONL, one a line."""
    from ..kb.importers import write_entities_jsonl
    from ..kb.knowledge_base import ArboKB

    with errors_for_people():
        count = write_entities_jsonl(ArboKB.for_reading(path), output)
    msg.good(f"{output}: {count} entities")
