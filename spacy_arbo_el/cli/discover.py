"""The commands ``arbo link`` and ``arbo discover``. They link a corpus, most often in one graph."""

import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from spacy.cli._util import Opt
from spacy.tokens import Doc
from wasabi import msg

from ..base.errors import ArboError, Errors
from ._util import config_overrides, errors_for_people, visible
from .arguments import (
    CODE,
    CPUS,
    GPUS,
    MODEL,
    MODEL_OR_LIST,
    RAY,
    WORKERS,
    check_data,
    check_needs,
    open_model,
    open_model_or_list,
    ray_settings,
)
from .documents import (
    DOCUMENTS,
    ENCODING,
    FIND,
    SKIP_BAD,
    Reading,
    document_reader,
    hint_at_empty_kb,
)
from .shards import (
    DEFAULT_SHARD,
    EACH,
    FORMAT,
    PART,
    SHARD,
    check_options,
    link_shards,
    make_job,
)

if TYPE_CHECKING:
    from spacy.language import Language

    from ..discovery.entities import NewEntity
    from ..discovery.new_entities import NewEntities
    from ..distributed.job import Job
    from ..distributed.on_ray import RaySettings
    from ..linker import ArboLinker

LINKED = Opt(
    ..., "--output", "-o", help="What to write: a .spacy, .jsonl or .csv file, or a folder"
)


def link_command(
    ctx: typer.Context,
    model: Path = MODEL_OR_LIST,
    data: Path = DOCUMENTS,
    output: Path = LINKED,
    find: str = FIND,
    encoding: str = ENCODING,
    skip_bad: bool = SKIP_BAD,
    each: bool = EACH,
    format: str = FORMAT,
    shard: int = SHARD,
    part: str = PART,
    ray: str | None = RAY,
    workers: int = WORKERS,
    cpus_per_worker: int = CPUS,
    gpus_per_worker: float = GPUS,
    code: Path | None = CODE,
) -> None:
    """Link all documents in one graph.

    A list of entities makes a pipeline that finds their names in the texts. The documents are
    written with their links: as .spacy, as JSONL with one document per line, or
    as CSV with one mention per line.

    With --each, each document is linked for itself. With --each or --ray, the output is a folder of
    shards with one row per mention, and the command resumes. All machines must reach the pipeline,
    the documents and the output by the same paths. Settings of the pipeline are overridden as in
    spacy train.

    \b
    Example:
      python -m spacy arbo link entities.csv texts/ --output links.csv
      python -m spacy arbo link out/model-best corpus.spacy --output linked.spacy
      python -m spacy arbo link MODEL texts/ -o out.csv --components.arbo_linker.threshold 0.4
      python -m spacy arbo link out/model-best texts/ --find names --output links.csv
      python -m spacy arbo link out/model-best texts/ --output links --each --part 3/16
      python -m spacy arbo link out/model-best texts/ --output links --each --ray local --workers 4
    """
    how, overrides = Reading(find, encoding, skip_bad), config_overrides(ctx)
    with errors_for_people():
        settings = ray_settings(ray, workers, cpus_per_worker, gpus_per_worker, code)
        check_options(each, part, format, shard, settings is not None)
        if each or settings is not None:
            how.check_at_once()
            options = {"one_graph": not each, "format": format, "size": shard}
            options.update(find=find, overrides=overrides)
            link_shards(make_job(model, data, output, **options), part, settings)
            return
    link_at_once(model, data, output, overrides, how)


def link_at_once(
    model: Path, data: Path, output: Path, overrides: dict[str, Any], how: Reading
) -> None:
    """Link all documents in one graph, in this process. The parameters are the command's."""
    from ..corpora.docbin import write_parts
    from ..corpora.links import check_output, write_links, write_table
    from ..linker import find_linker

    counts: Counter = Counter()
    with errors_for_people():
        check_output(output)
        check_data(data)
        nlp = open_model_or_list(model, overrides)
        linker = find_linker(nlp)
        hint_at_empty_kb(linker)
        with document_reader(nlp, linker, data, how) as read:
            docs = _counted(linker.corpus.link_stream(read), linker, counts)
            if output.suffix.lower() in (".jsonl", ".csv"):
                getter, extension = linker.mentions.getter, linker.cfg["extension"]
                write = write_links if output.suffix.lower() == ".jsonl" else write_table
                write(docs, output, getter, extension)
            else:
                write_parts(docs, output)
    entities = sum(key[0] == "entity" for key in counts)
    new = sum(key[0] == "new" for key in counts)
    msg.good(
        f"{visible(output)}: {counts['documents']} documents, {counts['mentions']} mentions, "
        f"{counts['linked']} linked to {entities} entities, "
        f"{counts['mentions'] - counts['linked']} NIL in {new} new entities"
    )


def _counted(docs: Iterable[Doc], linker: "ArboLinker", counts: Counter) -> Iterator[Doc]:
    """The documents; counts them, their mentions, links and entities."""
    from ..mentions.getters import find_mentions

    for doc in docs:
        counts["documents"] += 1
        for span in find_mentions(doc, linker.mentions.getter):
            if linker.reader.is_discarded(span.label_):
                continue
            link = span._.get(linker.cfg["extension"])
            counts["mentions"] += 1
            if link is not None and not link.is_nil:
                counts["linked"] += 1
                counts["entity", link.kb_id] += 1
            elif link is not None and link.cluster:
                counts["new", link.cluster] += 1
        yield doc


NEW = Opt(..., "--output", "-o", help="JSONL file of the new entities")
PAGE = Opt(None, "--page", help="HTML page; by default next to the JSONL file")
MIN_MENTIONS = Opt(
    1, "--min-mentions", help="Write only new entities with at least so many mentions"
)
KEEP = Opt(
    None, "--keep", help="Save a pipeline with these and earlier new entities, for `arbo new`"
)
REPLACE = Opt(
    False, "--replace", help="Discard the new entities of the pipeline, and all decisions on them"
)


def discover_command(
    ctx: typer.Context,
    model: Path = MODEL,
    data: Path = DOCUMENTS,
    output: Path = NEW,
    page: Path | None = PAGE,
    find: str = FIND,
    encoding: str = ENCODING,
    skip_bad: bool = SKIP_BAD,
    min_mentions: int = MIN_MENTIONS,
    keep: Path | None = KEEP,
    replace: bool = REPLACE,
    ray: str | None = RAY,
    workers: int = WORKERS,
    cpus_per_worker: int = CPUS,
    gpus_per_worker: float = GPUS,
    shard: int = SHARD,
    code: Path | None = CODE,
) -> None:
    """Group unlinked mentions into new entities.

    They are written as JSONL and HTML. Earlier decisions hold. With --ray, the command resumes.
    Settings of the pipeline are overridden as in spacy train; --keep saves it without these.

    \b
    Example:
      python -m spacy arbo discover out/model-best corpus.spacy --output new.jsonl --keep with_new
    """
    from ..pipelines import changing_pipeline

    page, how = page or output.with_suffix(".html"), Reading(find, encoding, skip_bad)
    overrides = config_overrides(ctx)
    if page == output:
        msg.fail(f"{output} is the JSONL file: name it .jsonl, or choose another --page.", exits=1)
    with errors_for_people(), nullcontext() if keep is None else changing_pipeline(keep):
        check_data(data)
        settings = ray_settings(ray, workers, cpus_per_worker, gpus_per_worker, code)
        _check_shards(settings is not None, replace, shard)
        if settings is not None:
            options = {"find": find, "overrides": overrides, "size": shard, "format": "jsonl"}
            job = make_job(model, data, output.with_suffix(".run"), one_graph=True, **options)
            found = _discovered_in_shards(job, settings, how)
        else:
            found = discover_at_once(open_model(model, config=overrides), data, how, replace)
        written = _write_new(found, output, page, min_mentions)
        _keep(model, found, keep, replace)
        if settings is not None:
            shutil.rmtree(job.folder)
    _say(found, written, f"{output}, {page}", min_mentions)


def _check_shards(on_ray: bool, replace: bool, shard: int) -> None:
    """Raise ValueError for options that Ray does not have, or that only Ray has."""
    if on_ray and replace:
        why = "workers read the pipeline as it is in its folder"
        raise ArboError(Errors.E896.format(option="--ray", other="no --replace", why=why))
    if not on_ray:
        why = "without it, documents are not read in shards"
        check_needs({"--shard": shard != DEFAULT_SHARD}, "--ray", why)


def _discovered_in_shards(job: "Job", ray: "RaySettings", how: Reading) -> "NewEntities":
    from ..distributed.runs import discover_in_shards

    how.check_at_once()
    return discover_in_shards(job, ray)


def _write_new(
    found: "NewEntities", output: Path, page: Path, min_mentions: int
) -> "list[NewEntity]":
    """Write those with enough mentions, which are returned."""
    from ..discovery.entities import to_html
    from ..storage.files import write_file

    written = [one for one in found if len(one.members) >= min_mentions]
    lines = (json.dumps(one.to_dict(), ensure_ascii=False) + "\n" for one in written)
    write_file(output, "".join(lines).encode("utf8"))
    write_file(page, to_html(written).encode("utf8"))
    return written


def _keep(model: Path, found: "NewEntities", keep: Path | None, replace: bool) -> None:
    """Save the pipeline with these new entities, and the earlier ones unless they are replaced."""
    from ..discovery.new_entities import NewEntities
    from ..linker import find_linker
    from ..pipelines import save_pipeline

    if keep is None:
        return
    nlp = open_model(model)
    linker = find_linker(nlp)
    if replace:
        linker.new_entities = NewEntities()
    linker.new_entities.update(found)
    save_pipeline(nlp, keep)


def _say(found: "NewEntities", written: "list[NewEntity]", paths: str, min_mentions: int) -> None:
    mentions = sum(len(one.members) for one in written)
    msg.good(f"{paths}: {len(written)} new entities, {mentions} mentions")
    if len(written) < len(found):
        smaller = len(found) - len(written)
        msg.info(f"Left out: {smaller} new entities with fewer than {min_mentions} mentions")


def discover_at_once(nlp: "Language", data: Path, how: Reading, replace: bool) -> "NewEntities":
    """The new entities of a corpus, in this process. The parameters are the command's."""
    from ..discovery.new_entities import NewEntities
    from ..linker import find_linker

    linker = find_linker(nlp)
    if replace:
        linker.new_entities = NewEntities()
    with document_reader(nlp, linker, data, how) as read:
        return linker.corpus.discover_stream(read)
