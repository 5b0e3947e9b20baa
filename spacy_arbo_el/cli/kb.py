"""``arbo kb …``: build and look at knowledge bases. ``kb_edit.py`` has what changes them."""

from pathlib import Path
from typing import Any, Dict, List, Optional

import typer
from spacy.cli._util import Arg, Opt
from wasabi import msg

from ._util import errors_for_people
from .kb_edit import (
    add_command,
    encode_command,
    export_command,
    merge_command,
    progress,
    remove_command,
    show_skipped,
)

FORMATS = "jsonl, table, obo, umls, wikidata, medic, medic-half, medic-2012, spacy"

kb_cli = typer.Typer(
    name="kb", help="Build, search and edit knowledge bases.", no_args_is_help=True
)
kb_cli.command("add")(add_command)
kb_cli.command("remove")(remove_command)
kb_cli.command("merge")(merge_command)
kb_cli.command("encode")(encode_command)
kb_cli.command("export")(export_command)


@kb_cli.command("build")
def build_command(
    # fmt: off
    source: Path = Arg(..., help="File or folder to read entities from"),
    output: Path = Arg(..., help="Folder of the knowledge base"),
    format: str = Opt("jsonl", "--format", "-f", help=f"One of: {FORMATS}"),
    columns: List[str] = Opt([], "--column", help="table: field=column, such as title=Name"),
    separator: Optional[str] = Opt(None, "--separator", help="table: between aliases or types"),
    languages: List[str] = Opt([], "--language", help="umls, wikidata: of names"),
    sources: List[str] = Opt([], "--source", help="umls: vocabularies of names"),
    types: List[str] = Opt([], "--type", help="wikidata: only instances of these"),
    scopes: List[str] = Opt([], "--scope", help="obo: synonyms that become aliases"),
    model: Optional[Path] = Opt(None, "--model", "-m", help="Pipeline whose linker encodes it"),
    dtype: str = Opt("float32", "--dtype", help="Of the vectors: float32 or float16"),
    # fmt: on
) -> None:
    """Build a knowledge base of entities. Options may be repeated where several make sense.

    Without --model, vectors are made when a pipeline gets the knowledge base.
    """
    from ..kb.knowledge_base import ArboKB
    from ..kb.loaders import build

    options: Dict[str, Any] = {
        "separator": separator,
        "columns": dict(column.partition("=")[::2] for column in columns),
        "languages": tuple(languages),
        "sources": tuple(sources),
        "types": tuple(types),
        "scopes": tuple(scopes),
    }
    with errors_for_people():
        report = build(
            output,
            source,
            format,
            dtype=dtype,
            finish=_encode_with(model) if model else lambda kb: None,
            watch=progress,
            **{name: value for name, value in options.items() if value},
        )
        kb = ArboKB.for_reading(output)
    show_skipped(report)
    names = kb.get_size_aliases()
    msg.good(f"{output}: {len(kb)} entities, {names} names, {len(kb.rows)} vectors")


def _encode_with(model: Path):
    from .kb_edit import encode_with, load_linker

    linker = load_linker(model)
    return lambda kb: encode_with(linker, kb)


@kb_cli.command("info")
def info_command(path: Path = Arg(..., help="Folder of a knowledge base")) -> None:
    """Say what a knowledge base holds."""
    from ..kb.knowledge_base import ArboKB

    with errors_for_people():
        kb = ArboKB.for_reading(path)
        types = [(kind or "none", n) for kind, n in kb.entities.type_counts().items()]
        manifest = kb.database.manifest()
        count = kb.database.value
        rows = {
            "Entities": len(kb),
            "Names": kb.get_size_aliases(),
            "Names of several entities": count(
                "SELECT count(*) FROM (SELECT 1 FROM name GROUP BY folded "
                "HAVING count(DISTINCT position) > 1)"
            ),
            "Types": ", ".join(f"{kind} ({n})" for kind, n in types[:20]) or "–",
            "With description": count("SELECT count(*) FROM entity WHERE description != ''"),
            "Other ids that lead here": count("SELECT count(*) FROM redirect"),
            "Vectors": f"{len(kb.rows)}, {kb.rows.width} wide, {manifest['dtype']}",
            "Entities without up-to-date vectors": count("SELECT count(*) FROM dirty"),
            "Encoder": kb.fingerprint or "none yet",
            "Search index": _index_text(kb.index.about) if kb.index else "none: exact search",
            "Edits": manifest["generation"],
            "Size": f"{sum(f.stat().st_size for f in path.iterdir()) / 1e6:.1f} MB",
        }
    msg.table(rows)


def _index_text(about: Dict[str, Any]) -> str:
    return f"{about['kind']} over {about['rows']} vectors"


@kb_cli.command("verify")
def verify_command(path: Path = Arg(..., help="Folder of a knowledge base")) -> None:
    """Read every byte of a knowledge base and name what is damaged or doesn't belong."""
    from ..kb.folder import verify

    problems = verify(path)
    for problem in problems:
        msg.fail(problem)
    if problems:
        raise typer.Exit(1)
    msg.good(f"{path} is whole")


@kb_cli.command("search")
def search_command(
    # fmt: off
    path: Path = Arg(..., help="Folder of a knowledge base"),
    query: str = Arg(..., help="An id, a name, or free text"),
    model: Optional[Path] = Opt(None, "--model", "-m", help="Pipeline that reads free text"),
    types: List[str] = Opt([], "--type", help="Only entities of these types; may be repeated"),
    limit: int = Opt(10, "--limit", "-n", help="Entities to show"),
    # fmt: on
) -> None:
    """Find entities by id, by name (as it is, then alike), and with --model by meaning."""
    from rich.console import Console
    from rich.table import Table

    from ..kb.knowledge_base import ArboKB
    from ..kb.lookup import alike

    with errors_for_people():
        kb = ArboKB.for_reading(path)
        found = []
        if query in kb:
            found.append(("id", kb.entities.position(query), 1.0))
        found += [("name", p, 1.0) for p in kb.entities.named(query.casefold())]
        found += [("alike", p, score) for p, score in alike(kb.entities, query, limit)]
        if model is not None:
            found += [("meaning", p, score) for p, score in _by_meaning(model, kb, query, limit)]
        entities = kb.entities.at_all([position for _, position, _ in found])
    table = Table("By", "Score", "Id", "Title", "Types", "Description")
    shown = set()
    for how, position, score in found:
        entity = entities[position]
        if position not in shown and (not types or set(types) & set(entity.types)):
            shown.add(position)
            kinds = ", ".join(entity.types)
            about = entity.description[:80]
            table.add_row(how, f"{score:.2f}", entity.id, entity.title, kinds, about)
    Console(width=130).print(table)


def _by_meaning(model: Path, kb, query: str, limit: int):
    from .kb_edit import load_linker

    linker = load_linker(model)
    linker.set_kb(lambda vocab: kb)
    retriever = linker.refresh()
    vector = linker.similarity.prepare(linker.encoding.encode_texts([(query, "")]))
    entities, similarities = retriever.entities.nearest(vector, limit)
    return [(int(p), float(s)) for p, s in zip(entities[0], similarities[0]) if p >= 0]
