"""``arbo kb …``: build, check and search knowledge bases. ``kb_edit.py`` has the edits."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from spacy.cli._util import Arg, Opt
from wasabi import msg

from ..base.errors import ArboError, Errors
from ..storage.formats import entity_formats, names_of
from ._util import errors_for_people, print_table, visible
from .arguments import CODE, KB, MODEL, OUTPUT, changed_pipeline, load_linker
from .kb_edit import (
    COLUMNS,
    HEADER,
    add_edit_commands,
    encode_with,
    pairs,
    progress,
    show_skipped,
    table_options,
)

if TYPE_CHECKING:
    from ..kb.attached_index import AttachedIndex
    from ..kb.knowledge_base import ArboKB

FORMATS = f"{', '.join(names_of(entity_formats))}, or one that --code adds"
# Characters that are hard to give in a shell.
ESCAPED = {"\\t": "\t", "\\n": "\n"}
# Characters of a column; wasabi would fold those of more than 30.
WIDEST = 120

kb_cli = typer.Typer(
    name="kb", help="Build, search and edit knowledge bases.", no_args_is_help=True
)
add_edit_commands(kb_cli)


@kb_cli.command("build")
def build_command(
    source: Path = Arg(..., help="File or folder to read entities from"),
    output: Path = Arg(..., help="Folder of the knowledge base"),
    format: str = Opt("", "--format", "-f", help=f"By default by the file's name. {FORMATS}"),
    columns: list[str] = COLUMNS,
    where: list[str] = Opt([], "--where", help="table: only rows with column=value"),
    separator: str = Opt("", "--separator", help="table: separates aliases and types"),
    delimiter: str = Opt("", "--delimiter", help="table: separates columns"),
    header: str = HEADER,
    encoding: str = Opt("", "--encoding", help="table, jsonl: such as cp1252"),
    skip_bad: bool = Opt(False, "--skip-bad", help="table, jsonl, json: leave out invalid lines"),
    others: list[str] = Opt([], "--option", help="Another of the format's, such as languages=en"),
    model: Path | None = Opt(None, "--model", "-m", help="Pipeline whose linker encodes it"),
    dtype: str = Opt("float32", "--dtype", help="Type of the vectors: float32 or float16"),
    replace: bool = Opt(False, "--replace", help="Replace a knowledge base that is there"),
    code: Path | None = CODE,
) -> None:
    """Build a knowledge base from entities.

    Options for several values may be repeated: names of several columns are joined, and rows may
    have any value that --where names. The reference lists the options of each format. Without
    --model, a pipeline computes vectors on loading it.

    \b
    Example:
      python -m spacy arbo kb build entities.jsonl kb
      python -m spacy arbo kb build cities.txt kb --header id,name,x,aliases --separator ,
      python -m spacy arbo kb build META kb --format umls --option sources=MSH,SNOMEDCT_US
      python -m spacy arbo kb build mine.xml kb --format mine --code readers.py
    """
    from ..kb.knowledge_base import ArboKB
    from ..kb.loaders import build, parsed_options_of

    options: dict[str, Any] = {**table_options(columns, header), "skip_bad": skip_bad}
    options.update(encoding=encoding, where=pairs(where))
    marks = {"separator": separator, "delimiter": delimiter}
    options.update((name, ESCAPED.get(mark, mark)) for name, mark in marks.items())
    with errors_for_people():
        given = {"watch": progress, **{name: one for name, one in options.items() if one}}
        given.update(parsed_options_of(source, format, others))
        given["finish"] = _encode_with(model) if model else lambda kb: None
        report = build(output, source, format, dtype=dtype, overwrite=replace, **given)
        kb = ArboKB.for_reading(output)
    show_skipped(report)
    counts = f"{len(kb)} entities, {kb.get_size_aliases()} names, {len(kb.rows)} vectors"
    msg.good(f"{output}: {counts}")


def _encode_with(model: Path) -> "Callable[[ArboKB], int]":
    linker = load_linker(model)
    return lambda kb: encode_with(linker, kb)


@kb_cli.command("install")
def install_command(
    # fmt: off
    path: Path = Arg(..., help="Folder of a knowledge base, or JSONL file of entities"),
    model: Path = MODEL,
    output: Path | None = OUTPUT,
    code: Path | None = CODE,
    # fmt: on
) -> None:
    """Give a pipeline another knowledge base.

    The linker encodes what has no vectors yet. Exemplars, probabilities and thresholds stay.

    \b
    Example:
      python -m spacy arbo kb install kb out/model-best --output whole
    """
    from ..linker import find_linker

    with changed_pipeline(model, output) as nlp:
        linker = find_linker(nlp)
        linker.set_kb(path)
        linker.refresh()
    msg.good(visible(f"{output or model}: {len(linker.kb)} entities of {path}"))


@kb_cli.command("info")
def info_command(path: Path = KB) -> None:
    """Print what a knowledge base contains.

    \b
    Example:
      python -m spacy arbo kb info kb
    """
    from ..kb.knowledge_base import ArboKB

    with errors_for_people():
        rows = _info(ArboKB.for_reading(path))
        rows["Size"] = f"{sum(f.stat().st_size for f in path.iterdir()) / 1e6:.1f} MB"
    msg.table({name: visible(value) for name, value in rows.items()}, max_col=WIDEST)


def _info(kb: "ArboKB") -> dict[str, Any]:
    types = [(name or "none", n) for name, n in kb.entities.type_counts().items()]
    manifest = kb.database.manifest()
    count = kb.database.value
    return {
        "Entities": len(kb),
        "Names": kb.get_size_aliases(),
        "Names of several entities": count(
            "SELECT count(*) FROM (SELECT 1 FROM name WHERE kind = 0 GROUP BY folded "
            "HAVING count(DISTINCT position) > 1)"
        ),
        "Types": ", ".join(f"{name} ({n})" for name, n in types[:20]) or "–",
        "With description": count("SELECT count(*) FROM entity WHERE description != ''"),
        "Redirected ids": count("SELECT count(*) FROM redirect"),
        "Vectors": f"{len(kb.rows)}, {kb.rows.width} wide, {manifest['dtype']}",
        "Entities without up-to-date vectors": kb.vectors.count_outdated(),
        "Encoder": kb.fingerprint or "none yet",
        "Encoders with vectors": len(kb.vectors.encoders()),
        "Search index": _index_text(kb.vectors.index),
        "Edits": manifest["generation"],
    }


def _index_text(index: "AttachedIndex | None") -> str:
    if index is None:
        return "none: exact search"
    return f"{index.about['kind']} over {index.about['rows']} vectors"


@kb_cli.command("index")
def index_command(
    # fmt: off
    path: Path = KB,
    index: str = Arg(..., help='Factory and search strings of FAISS: "HNSW32 efSearch=128"'),
    model: Path | None = Opt(None, "--model", "-m", help="Pipeline whose similarity is used"),
    code: Path | None = CODE,
    # fmt: on
) -> None:
    """Build a search index and store it.

    A pipeline whose config asks for the same index then loads it. Few vectors are searched exactly,
    and get no index.

    \b
    Example:
      python -m spacy arbo kb index kb "IVF1024,SQ8 nprobe=64"
    """
    from ..kb.knowledge_base import ArboKB
    from ..retrieval.index.approximate import ApproximateIndex
    from ..retrieval.index.faiss_index import FaissIndex
    from ..retrieval.similarity import Cosine

    factory, _, search = index.partition(" ")
    with errors_for_people():
        build_index = FaissIndex(factory, search.strip())
        similarity = load_linker(model).similarity if model else Cosine()
        with ArboKB.open(path) as kb:
            if not len(kb.rows):
                raise ArboError(Errors.E306.format(path=path))
            built = build_index(kb.rows, similarity)
            if isinstance(built, ApproximateIndex) and built.attached:
                kb.vectors.keep_index(built.attached)
                msg.good(visible(f"{path}: {_index_text(built.attached)}"))
            else:
                msg.info("Exact search is best for so few vectors; no index is stored.")


@kb_cli.command("verify")
def verify_command(path: Path = KB) -> None:
    """Check a knowledge base for damage.

    Every byte is read. Files of another knowledge base are found too.

    \b
    Example:
      python -m spacy arbo kb verify kb
    """
    from ..kb.verification import verify

    problems = verify(path)
    for problem in problems:
        msg.fail(visible(problem))
    if problems:
        raise typer.Exit(1)
    msg.good(f"{visible(path)} is undamaged")


@kb_cli.command("search")
def search_command(
    # fmt: off
    path: Path = KB,
    query: str = Arg(..., help="An id, a name, or free text"),
    model: Path | None = Opt(None, "--model", "-m", help="Pipeline that encodes free text"),
    types: list[str] = Opt([], "--type", help="Only entities of these types; may be repeated"),
    limit: int = Opt(10, "--limit", "-n", help="Number of entities per kind of search"),
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

    with errors_for_people():
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
            about = entity.description[:80]
            rows.append((kind, f"{score:.2f}", entity.id, entity.title, names, about))
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
    retriever = linker.refresh()
    encoder = linker.encoder
    vector = encoder.encode_texts(encoder.read_texts([(query, "")]))
    nearest = retriever.entities.nearest(linker.similarity.prepare(vector), limit)
    for position, similarity in zip(nearest.ids[0].tolist(), nearest.scores[0].tolist()):
        if position >= 0:
            yield "vector", position, similarity
