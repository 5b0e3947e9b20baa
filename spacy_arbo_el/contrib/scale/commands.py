"""The commands ``arbo scale``: linking and discovery in shards, here or on Ray."""

import shutil
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from spacy.cli._util import Opt
from wasabi import msg

from ...base.errors import Errors
from ...cli._util import config_overrides, user_errors, visible
from ...cli.arguments import CODE, MODEL, check_data, check_model, check_needs
from ...cli.discover import KEEP, MIN_MENTIONS, NEW, NewFiles, keep_new
from ...cli.documents import DOCUMENTS, FIND, check_finder
from .errors import ScaleMessages

if TYPE_CHECKING:
    from .job import Job
    from .on_ray import RaySettings

SHARDS = Opt(
    ..., "--output", "-o", help="Folder of the shards; the same command resumes"
)
FORMAT = Opt("parquet", "--format", help="Of the links: parquet, jsonl or spacy")
ONE_GRAPH = Opt(False, "--one-graph", help="Link all documents in one graph")
PART = Opt("", "--part", help="Only a part of the shards, such as 3/16")
SHARD = Opt(256, "--shard", help="Documents per shard")
RAY = Opt(
    None,
    "--ray",
    help="Run on Ray: local for this machine, auto for the cluster that it belongs to, or the "
    "address of a cluster",
)
WORKERS = Opt(1, "--workers", help="Number of Ray workers")
CPUS = Opt(
    1, "--cpus-per-worker", help="CPUs of each worker, which has as many threads"
)
GPUS = Opt(
    0.0, "--gpus-per-worker", help="GPUs of each worker; 0.5 for two workers on one"
)
OVERRIDES = {"allow_extra_args": True, "ignore_unknown_options": True}

commands = typer.Typer(
    name="scale", help="Link millions of documents.", no_args_is_help=True
)
add_on = typer.Typer()
add_on.add_typer(commands)


@commands.command("link", context_settings=OVERRIDES)
def link_command(
    ctx: typer.Context,
    model: Path = MODEL,
    data: Path = DOCUMENTS,
    output: Path = SHARDS,
    one_graph: bool = ONE_GRAPH,
    find: str = FIND,
    format: str = FORMAT,
    shard: int = SHARD,
    part: str = PART,
    ray: str | None = RAY,
    workers: int = WORKERS,
    cpus_per_worker: int = CPUS,
    gpus_per_worker: float = GPUS,
    code: Path | None = CODE,
) -> None:
    """Link each document for itself, in shards.

    The output has one row per mention. The command resumes. All machines must reach the pipeline,
    the documents and the output by the same paths. Settings of the pipeline are overridden as in
    spacy train.

    \b
    Example:
      python -m spacy arbo scale link out/model-best texts/ --output links --part 3/16
      python -m spacy arbo scale link out/model-best texts/ --output links --ray local --workers 4
    """
    overrides = config_overrides(ctx)
    with user_errors():
        settings = ray_settings(ray, workers, cpus_per_worker, gpus_per_worker, code)
        if part:
            from .job import part_of

            why = "one graph over all documents has no parts"
            check_needs({"--one-graph": one_graph}, "no --part", why)
            part_of([], part)
        options = {"one_graph": one_graph, "format": format, "size": shard}
        job = make_job(model, data, output, find=find, overrides=overrides, **options)
        link_shards(job, part, settings)


@commands.command("discover", context_settings=OVERRIDES)
def discover_command(
    ctx: typer.Context,
    model: Path = MODEL,
    data: Path = DOCUMENTS,
    output: Path = NEW,
    find: str = FIND,
    min_mentions: int = MIN_MENTIONS,
    keep: Path | None = KEEP,
    shard: int = SHARD,
    ray: str | None = RAY,
    workers: int = WORKERS,
    cpus_per_worker: int = CPUS,
    gpus_per_worker: float = GPUS,
    code: Path | None = CODE,
) -> None:
    """Group the unlinked mentions of a large corpus.

    They are written as JSONL and HTML, as "arbo discover" does it. The command resumes.

    \b
    Example:
      python -m spacy arbo scale discover out/model-best texts/ -o new.jsonl --ray local --workers 4
    """
    from ...pipelines import changing_pipeline
    from .runs import discover_in_shards

    overrides = config_overrides(ctx)
    with (
        user_errors(),
        nullcontext() if keep is None else changing_pipeline(keep) as owner,
    ):
        files = NewFiles(output, min_mentions)
        settings = ray_settings(ray, workers, cpus_per_worker, gpus_per_worker, code)
        options = {"one_graph": True, "format": "jsonl", "size": shard}
        folder = output.with_suffix(".run")
        job = make_job(model, data, folder, find=find, overrides=overrides, **options)
        new_entities = discover_in_shards(job, settings)
        files.write(new_entities)
        keep_new(model, new_entities, owner, replace_earlier=False)
        shutil.rmtree(job.folder)
    files.say(new_entities)


def ray_settings(
    address: str | None, workers: int, cpus: int, gpus: float, code: Path | None
) -> "RaySettings | None":
    """The cluster and its workers. None where the command does not use Ray."""
    if address is None:
        options = "--workers, --cpus-per-worker and --gpus-per-worker"
        is_given = {options: (workers, cpus, gpus) != (1, 1, 0.0)}
        check_needs(is_given, "--ray", "without it, one process does all work")
        return None
    from .on_ray import RaySettings

    path = "" if code is None else str(code.resolve())
    return RaySettings(address, workers, cpus, gpus, path)


def make_job(model: Path, data: Path, output: Path, **settings: Any) -> "Job":
    """The job of an output folder."""
    check_model(model)
    check_data(data)
    check_finder(settings["find"])
    from .job import Job

    return Job.of(model, data, output, **settings)


def link_shards(job: "Job", part: str, ray: "RaySettings | None") -> None:
    """Link the remaining shards with a progress bar. The counts are printed."""
    from tqdm import tqdm

    from .job import ERRORS
    from .runs import link_in_shards, summary

    reports = link_in_shards(job, part, ray)
    # Ray has progress bars.
    for _ in tqdm(reports, unit=" shards", leave=False, disable=ray is not None):
        pass
    counts = summary(job, part)
    if counts["errors"]:
        path = visible(job.folder / ERRORS)
        msg.warn(ScaleMessages.W890.format(count=counts["errors"], path=path))
    if counts["documents"] and not counts["mentions"]:
        msg.warn(Errors.E790.format(path=visible(job.corpus)))
    for worker, speed in counts["documents_per_second"].items():
        msg.info(f"{visible(worker)}: {speed} documents a second")
    msg.good(
        f"{visible(job.folder)}: {counts['shards']} shards, {counts['documents']} documents, "
        f"{counts['mentions']} mentions, {counts['linked']} linked, {counts['nil']} NIL, "
        f"{counts['errors']} errors"
    )
