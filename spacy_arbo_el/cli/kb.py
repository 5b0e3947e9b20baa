"""``arbo kb …``: build, extend, check, search and export knowledge bases."""

import io
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from spacy.cli._util import Arg, Opt
from wasabi import msg

from ..records.formats import entity_formats, names_of
from ._util import print_table, user_errors, visible
from .arguments import CODE, KB, is_pipeline, load_linker

if TYPE_CHECKING:
    from ..kb.entity import Entity
    from ..kb.importers import ImportReport
    from ..kb.knowledge_base import ArboKB
    from ..linker import ArboLinker

FORMATS = f"{', '.join(names_of(entity_formats))}, or one that --code adds"
COLUMNS = Opt([], "--column", help="table: field=column, such as title=Name")
HEADER = Opt("", "--header", help="table: names of columns, where no line has them")
# Characters of a column; wasabi would fold those of more than 30.
WIDEST = 120

kb_cli = typer.Typer(
    name="kb", help="Build and search knowledge bases.", no_args_is_help=True
)


@kb_cli.command("build")
def build_command(
    source: Path = Arg(..., help="File or folder to read entities from"),
    output: Path = Arg(..., help="Folder of the knowledge base"),
    format: str = Opt(
        "", "--format", "-f", help=f"By default by the file's name. {FORMATS}"
    ),
    columns: list[str] = COLUMNS,
    header: str = HEADER,
    skip_bad: bool = Opt(False, "--skip-bad", help="Leave out invalid lines or rows"),
    further_options: list[str] = Opt([], "--option", help="Of the format: KEY=VALUE"),
    model: Path | None = Opt(None, "--model", "-m", help="Pipeline that encodes it"),
    dtype: str = Opt("float32", "--dtype", help="Of the vectors: float32 or float16"),
    replace: bool = Opt(False, "--replace", help="Replace a knowledge base"),
    code: Path | None = CODE,
) -> None:
    """Build a knowledge base from entities.

    Options for several values may be repeated: names of several columns are joined, and rows may
    have any value that --option where names. The reference lists the options of each format.
    Without --model, a pipeline computes vectors on loading it.

    \b
    Example:
      python -m spacy arbo kb build entities.jsonl kb
      python -m spacy arbo kb build cities.txt kb --header id,name,x,aliases --option separator=,
      python -m spacy arbo kb build items.csv kb --option where=status=active
      python -m spacy arbo kb build doid.obo kb --option xrefs=MESH,OMIM
      python -m spacy arbo kb build META kb --format umls --option sources=MSH,SNOMEDCT_US
      python -m spacy arbo kb build mine.xml kb --format mine --code readers.py
    """
    from ..kb.knowledge_base import ArboKB
    from ..kb.loaders import build, parsed_options_of

    options = table_options(columns, header)
    if skip_bad:
        options["skip_bad"] = True
    with user_errors():
        options.update(parsed_options_of(source, format, further_options))
        finish = partial(encode_with, load_linker(model)) if model else None
        report = build(
            output,
            source,
            format,
            dtype=dtype,
            overwrite=replace,
            watch=progress,
            finish=finish,
            **options,
        )
        kb = ArboKB.for_reading(output)
    show_skipped(report)
    further = len(kb.entities.redirects())
    counts = f"{len(kb)} entities, {kb.entities.count_names()} names, {len(kb.rows)} vectors"
    msg.good(f"{output}: {counts}" + (f", {further} further ids" if further else ""))


def encode_with(linker: "ArboLinker", kb: "ArboKB") -> int:
    """Encode the texts of a knowledge base that have no vector yet. RETURNS: How many."""
    from ..retrieval.entity_texts import encode_texts

    encoder = linker.encoder
    encoder.require_ready(linker.name)
    verbalization = linker.datastore.settings.verbalization
    return kb.encode_missing(
        verbalization, partial(encode_texts, encoder), encoder.text_fingerprint
    )


def table_options(columns: list[str], header: str) -> dict[str, Any]:
    """Arguments of the reader of tables; none of those that were not given."""
    names = tuple(name.strip() for name in header.split(",")) if header else ()
    options = {"columns": pairs(columns), "header": names}
    return {name: value for name, value in options.items() if value}


def pairs(options: Iterable[str]) -> dict[str, list[str]]:
    """Options of the form name=value. Those of one name are joined."""
    values_of: dict[str, list[str]] = {}
    for name, _, value in (option.partition("=") for option in options):
        values_of.setdefault(name, []).append(value)
    return values_of


def progress(entities: "Iterable[Entity]") -> "Iterable[Entity]":
    from tqdm import tqdm

    return tqdm(entities, unit=" entities", leave=False)


def show_skipped(report: "ImportReport") -> None:
    """Print what an import left out and why, and what became of merged ids."""
    for reason, count in report.skipped.most_common():
        msg.info(visible(f"{count} left out: {reason}"))
    for place in report.places:
        msg.text(visible(place))
    if shared := list(report.xrefs.values()).count(""):
        msg.info(
            f"{shared} ids of other vocabularies that several entities have lead to none"
        )
    for count, what in (
        (report.merged, "kept"),
        (report.lost, "dropped: no entity of the list needs them"),
    ):
        if count:
            msg.info(f"{count} merged ids of the replaced knowledge base {what}")


@kb_cli.command("add")
def add_command(
    # fmt: off
    path: Path = KB,
    source: Path = Arg(..., help="File of entities"),
    format: str = Opt(
        "", "--format", "-f", help="Format of the file, see arbo kb build"
    ),
    columns: list[str] = COLUMNS,
    header: str = HEADER,
    replace: bool = Opt(False, "--replace", help="Replace entities with the same ids"),
    model: Path | None = Opt(
        None, "--model", "-m", help="Pipeline whose linker encodes them"
    ),
    code: Path | None = CODE,
    # fmt: on
) -> None:
    """Add the entities of a file to a knowledge base.

    All are added or, on an error, none. With --model, what has no vector yet is encoded.

    \b
    Example:
      python -m spacy arbo kb add kb more.jsonl --model out/model-best
    """
    from ..kb.knowledge_base import ArboKB
    from ..kb.loaders import import_into

    with user_errors(), ArboKB.open(path) as kb:
        linker = load_linker(model) if model else None
        options = table_options(columns, header)
        report = import_into(
            kb, source, format, replace=replace, watch=progress, **options
        )
        show_skipped(report)
        texts = encode_with(linker, kb) if linker else 0
        total = len(kb)
    msg.good(f"{path}: {report.count} added, {total} entities, {texts} texts encoded")


@kb_cli.command("info")
def info_command(
    path: Path = KB,
    is_verified: bool = Opt(
        False, "--verify", help="Read every byte, and exit with 1 for damage"
    ),
) -> None:
    """Print what a knowledge base contains.

    With --verify, it is checked for damage before, and for files of another knowledge base.

    \b
    Example:
      python -m spacy arbo kb info kb --verify
    """
    from ..kb.knowledge_base import ArboKB

    if is_verified:
        _verify(path)
    with user_errors():
        rows = _info(ArboKB.for_reading(path))
        rows["Size"] = f"{sum(f.stat().st_size for f in path.iterdir()) / 1e6:.1f} MB"
    msg.table({name: visible(value) for name, value in rows.items()}, max_col=WIDEST)


def _verify(path: Path) -> None:
    from ..kb.verification import verify

    problems = verify(path)
    for problem in problems:
        msg.fail(visible(problem))
    if problems:
        raise typer.Exit(1)
    msg.good(f"{visible(path)} is undamaged")


def _info(kb: "ArboKB") -> dict[str, Any]:
    types = [(name or "none", n) for name, n in kb.entities.type_counts().items()]
    manifest = kb.database.manifest()
    count = kb.database.value
    details = kb.vectors.index.about if kb.vectors.index else None
    index = (
        f"{details['kind']} over {details['rows']} vectors"
        if details
        else "none: exact search"
    )
    return {
        "Entities": len(kb),
        "Names": kb.entities.count_names(),
        "Names of several entities": count(
            "SELECT count(*) FROM (SELECT 1 FROM name WHERE kind = 0 GROUP BY folded "
            "HAVING count(DISTINCT position) > 1)"
        ),
        "Types": ", ".join(f"{name} ({n})" for name, n in types[:20]) or "–",
        "With description": count(
            "SELECT count(*) FROM entity WHERE description != ''"
        ),
        "Redirected ids": count("SELECT count(*) FROM redirect"),
        "Vectors": f"{len(kb.rows)}, {kb.rows.width} wide, {manifest['dtype']}",
        "Entities without up-to-date vectors": kb.vectors.count_outdated(),
        "Encoder": kb.fingerprint or "none yet",
        "Encoders with vectors": len(kb.vectors.encoders()),
        "Search index": index,
        "Edits": manifest["generation"],
    }


@kb_cli.command("search")
def search_command(
    # fmt: off
    path: Path = KB,
    query: str = Arg(..., help="An id, a name, or free text"),
    model: Path | None = Opt(
        None, "--model", "-m", help="Pipeline that encodes free text"
    ),
    types: list[str] = Opt(
        [], "--type", help="Only entities of these types; may be repeated"
    ),
    limit: int = Opt(
        10, "--limit", "-n", help="Number of entities per kind of search"
    ),
    code: Path | None = CODE,
    # fmt: on
) -> None:
    """Search entities by id, name or meaning.

    Names are searched exactly and by similarity. With --model, vectors are searched too.

    \b
    Example:
      python -m spacy arbo kb search kb "brest cancer" --model out/model-best
    """
    from ..kb.knowledge_base import ArboKB

    with user_errors():
        kb = ArboKB.for_reading(path)
        hits = list(_search(kb, query, model, limit))
        entities = kb.entities.at_all([position for _, position, _ in hits])
    shown = set()
    rows = []
    for kind, position, score in hits:
        entity = entities[position]
        if position not in shown and (not types or set(types) & set(entity.types)):
            shown.add(position)
            names = ", ".join(entity.types)
            summary = entity.description[:80]
            rows.append(
                (kind, f"{score:.2f}", entity.id, entity.title, names, summary)
            )
    print_table(("By", "Score", "Id", "Title", "Types", "Description"), rows)


def _search(
    kb: "ArboKB", query: str, model: Path | None, limit: int
) -> Iterator[tuple[str, int, float]]:
    """Entities found: (kind of search, position, score). One may occur several times."""
    from ..kb.lookup import same_name, similar_names

    if query in kb:
        yield "id", kb.entities.position(query), 1.0
    for position in same_name(kb.entities, query):
        yield "name", position, 1.0
    for position, similarity in similar_names(kb.entities, query, limit):
        yield "similar name", position, similarity
    if model is not None:
        yield from _search_by_vector(model, kb, query, limit)


def _search_by_vector(
    model: Path, kb: "ArboKB", query: str, limit: int
) -> Iterator[tuple[str, int, float]]:
    linker = load_linker(model)
    linker.set_kb(lambda vocab: kb)
    search = linker.refresh().retriever.entities
    encoder = linker.encoder
    vector = encoder.encode_texts(encoder.read_texts([(query, "")]))
    nearest = search.nearest(linker.similarity.prepare(vector), limit)
    for position, similarity in zip(
        nearest.ids[0].tolist(), nearest.scores[0].tolist()
    ):
        if position >= 0:
            yield "vector", position, similarity


@kb_cli.command("export")
def export_command(
    path: Path = Arg(
        ..., help="Folder of a knowledge base, or of a pipeline with one"
    ),
    output: Path = Arg(
        ..., help=".csv, .tsv, .jsonl or .parquet; - for JSONL on standard output"
    ),
    changed: bool = Opt(
        False, "--changed", help="A further column: which are new or changed"
    ),
) -> None:
    """Write the entities as a table, or as JSONL.

    A table has the columns of the file that they came from. JSONL has one entity per line. Merged
    ids, and others that lead to an entity, are in the column "alt_ids".

    \b
    Example:
      python -m spacy arbo kb export MODEL entities.csv --changed
      python -m spacy arbo kb export kb entities.jsonl
    """
    from ..kb.export import write_list
    from ..kb.importers.jsonl import entity_lines
    from ..kb.knowledge_base import ArboKB

    with user_errors():
        kb = ArboKB.for_reading(
            next(path.glob("*/kb"), path) if is_pipeline(path) else path
        )
        if str(output) == "-":
            # Data is UTF-8, whatever the console is.
            if isinstance(sys.stdout, io.TextIOWrapper):
                sys.stdout.reconfigure(encoding="utf8")
            for line in entity_lines(kb):
                print(line)
            return
        count = write_list(kb, output, changed)
        merged = len(kb.entities.redirects())
    also = f", {merged} ids that lead to them" if merged else ""
    msg.good(f"{output}: {count} entities{also}")
