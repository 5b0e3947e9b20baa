"""The commands ``arbo link --each`` and ``--ray``: linking in shards."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacy.cli._util import Opt
from wasabi import msg

from ..base.errors import Errors, Warnings
from ._util import visible
from .arguments import check_data, check_model, check_needs
from .documents import check_finder

if TYPE_CHECKING:
    from ..distributed.job import Job
    from ..distributed.on_ray import RaySettings

EACH = Opt(
    False,
    "--each",
    help="Link each document for itself, in shards; run "
    "the same command to resume. The output is a folder",
)
DEFAULT_FORMAT, DEFAULT_SHARD = "parquet", 256
FORMAT = Opt(DEFAULT_FORMAT, "--format", help="Of the links of shards: parquet, jsonl or spacy")
PART = Opt("", "--part", help="Only a part of the shards, such as 3/16; with --each")
SHARD = Opt(DEFAULT_SHARD, "--shard", help="Documents per shard")


def check_options(each: bool, part: str, format: str, shard: int, ray: bool) -> None:
    """Raise ValueError for conflicting options or an invalid part."""
    if not each:
        why = "one graph over all documents has no parts"
        check_needs({"--part": bool(part)}, "--each", why)
    if not each and not ray:
        given = {"--format": format != DEFAULT_FORMAT, "--shard": shard != DEFAULT_SHARD}
        why = "without them, one output is written, of the kind that its suffix names"
        check_needs(given, "--each or --ray", why)
    if part:
        from ..distributed.job import part_of

        part_of([], part)


def make_job(model: Path, data: Path, output: Path, **settings: Any) -> "Job":
    """The job of an output folder.

    settings: The settings of ``Job``.
    """
    check_model(model)
    check_data(data)
    check_finder(settings["find"])
    from ..distributed.job import Job

    return Job.of(model, data, output, **settings)


def link_shards(job: "Job", part: str, ray: "RaySettings | None") -> None:
    """Link the remaining shards with a progress bar. The counts are printed."""
    from tqdm import tqdm

    from ..distributed.job import ERRORS
    from ..distributed.runs import link_in_shards, summary

    reports = link_in_shards(job, part, ray)
    # Ray has progress bars.
    for _ in tqdm(reports, unit=" shards", leave=False, disable=ray is not None):
        pass
    counts = summary(job, part)
    if counts["errors"]:
        path = visible(job.folder / ERRORS)
        msg.warn(Warnings.W890.format(count=counts["errors"], path=path))
    if counts["documents"] and not counts["mentions"]:
        msg.warn(Errors.E790.format(path=visible(job.corpus)))
    for worker, speed in counts["documents_per_second"].items():
        msg.info(f"{visible(worker)}: {speed} documents a second")
    msg.good(
        f"{visible(job.folder)}: {counts['shards']} shards, {counts['documents']} documents, "
        f"{counts['mentions']} mentions, {counts['linked']} linked, {counts['nil']} NIL, "
        f"{counts['errors']} errors"
    )
