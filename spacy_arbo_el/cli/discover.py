"""The commands ``arbo link`` and ``arbo discover``. They link a corpus, most often in one graph."""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from spacy.cli._util import Opt
from spacy.tokens import Doc
from wasabi import msg

from ._util import config_overrides, user_errors, visible
from .arguments import (
    CODE,
    MODEL,
    MODEL_OR_LIST,
    check_data,
    check_needs,
    open_model,
    open_model_or_list,
)
from .documents import (
    DOCUMENTS,
    ENCODING,
    FIND,
    SKIP_BAD,
    DocumentReader,
    Reading,
    document_reader,
    hint_at_empty_kb,
)

if TYPE_CHECKING:
    from spacy.language import Language

    from ..discovery.entities import NewEntity
    from ..discovery.new_entities import NewEntities
    from ..linker import ArboLinker
    from ..linking.corpus import CorpusLinker
    from ..pipelines import PipelineOwner

LINKED = Opt(
    ...,
    "--output",
    "-o",
    help="What to write: a .spacy, .jsonl, .csv or .sssom.tsv file, or a folder",
)


def link_command(
    ctx: typer.Context,
    model: Path = MODEL_OR_LIST,
    data: Path = DOCUMENTS,
    output: Path = LINKED,
    find: str = FIND,
    encoding: str = ENCODING,
    skip_bad: bool = SKIP_BAD,
    prefix: str = Opt(
        "", "--prefix", help="sssom.tsv: prefix of ids that have none, such as DOID"
    ),
    code: Path | None = CODE,
) -> None:
    """Link all documents in one graph.

    A list of entities makes a pipeline that finds their names in the texts. The documents are
    written with their links: as .spacy, as JSONL with one document per line, or as CSV or SSSOM
    with one mention per line. From 30 mentions on, it is estimated first how many of the entities
    the list has, unless names of the list alone were found.

    Settings of the pipeline are overridden as in spacy train. "arbo scale link" links each document
    for itself, in shards, and resumes.

    \b
    Example:
      python -m spacy arbo link entities.csv texts/ --output links.csv
      python -m spacy arbo link out/model-best corpus.spacy --output linked.spacy
      python -m spacy arbo link MODEL texts/ -o out.csv --components.arbo_linker.threshold 0.4
      python -m spacy arbo link out/model-best texts/ --find names --output links.csv
    """
    how = Reading(find, encoding, skip_bad)
    link_at_once(model, data, output, config_overrides(ctx), how, prefix)


def link_at_once(
    model: Path,
    data: Path,
    output: Path,
    overrides: dict[str, Any],
    how: Reading,
    prefix: str = "",
) -> None:
    """Link all documents in one graph, in this process. The parameters are the command's."""
    from ..corpora.docbin import write_parts
    from ..corpora.links import writer_of
    from ..linker import find_linker

    counts: Counter = Counter()
    with user_errors():
        write = writer_of(output)
        if write is None or "prefix" not in signature(write).parameters:
            check_needs(
                {"--prefix": bool(prefix)},
                "--output NAME.sssom.tsv",
                "its ids have one",
            )
        options = {"prefix": prefix} if prefix else {}
        check_data(data)
        nlp = open_model_or_list(model, overrides)
        linker = find_linker(nlp)
        hint_at_empty_kb(linker)
        with document_reader(nlp, linker, data, how) as read:
            corpus = corpus_linker(linker, read, overrides)
            docs = _counted(corpus.link_stream(read), linker, counts)
            if write is None:
                write_parts(docs, output)
            else:
                write(
                    docs,
                    output,
                    linker.mentions.getter,
                    linker.cfg["extension"],
                    **options,
                )
    entities = sum(key[0] == "entity" for key in counts)
    new = sum(key[0] == "new" for key in counts)
    msg.good(
        f"{visible(output)}: {counts['documents']} documents, {counts['mentions']} mentions, "
        f"{counts['linked']} linked to {entities} entities, "
        f"{counts['mentions'] - counts['linked']} NIL in {new} new entities"
    )


def corpus_linker(
    linker: "ArboLinker", read: DocumentReader, overrides: dict[str, Any]
) -> "CorpusLinker":
    """The linker of a corpus, which estimates coverage and says so where no setting says it.

    Not where all mentions are names of the list: these would be in it nearly always.
    """
    from ..linking.coverage import ESTIMATE, CoverageEstimate

    setting = f"components.{linker.name}.coverage"

    def report(estimate: CoverageEstimate) -> None:
        msg.info(
            f"Coverage {estimate.share}, estimated from {estimate.mentions} mentions: "
            f"NIL {estimate.nil_before:.0%} → {estimate.nil_after:.0%}. "
            f"--{setting} null leaves it out"
        )

    if linker.coverage is None and setting not in overrides and not read.by_names:
        linker.coverage = ESTIMATE
    return replace(linker.corpus, report=report)


def _counted(
    docs: Iterable[Doc], linker: "ArboLinker", counts: Counter
) -> Iterator[Doc]:
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


NEW = Opt(..., "--output", "-o", help="JSONL file; an HTML page is written next to it")
MIN_MENTIONS = Opt(
    1, "--min-mentions", help="Write only new entities with at least so many mentions"
)
KEEP = Opt(
    None,
    "--keep",
    help="Save a pipeline with these and earlier new entities, for `arbo new`",
)
REPLACE = Opt(
    False,
    "--replace",
    help="Discard the new entities of the pipeline, and all decisions on them",
)


def discover_command(
    ctx: typer.Context,
    model: Path = MODEL,
    data: Path = DOCUMENTS,
    output: Path = NEW,
    find: str = FIND,
    encoding: str = ENCODING,
    skip_bad: bool = SKIP_BAD,
    min_mentions: int = MIN_MENTIONS,
    keep: Path | None = KEEP,
    replace_earlier: bool = REPLACE,
    code: Path | None = CODE,
) -> None:
    """Group unlinked mentions into new entities.

    They are written as JSONL and HTML. Earlier decisions hold. Settings of the pipeline are
    overridden as in spacy train; --keep saves it without these.

    \b
    Example:
      python -m spacy arbo discover out/model-best corpus.spacy --output new.jsonl --keep with_new
    """
    from ..pipelines import changing_pipeline

    how = Reading(find, encoding, skip_bad)
    overrides = config_overrides(ctx)
    with (
        user_errors(),
        nullcontext() if keep is None else changing_pipeline(keep) as owner,
    ):
        check_data(data)
        written = NewFiles(output, min_mentions)
        nlp = open_model(model, config=overrides)
        new_entities = discover_at_once(nlp, data, how, overrides, replace_earlier)
        written.write(new_entities)
        keep_new(model, new_entities, owner, replace_earlier)
    written.say(new_entities)


@dataclass(frozen=True)
class NewFiles:
    """The files of new entities: JSONL, and an HTML page next to it.

    output: The JSONL file.
    least: The fewest mentions of a new entity that is written.
    """

    output: Path
    least: int

    def __post_init__(self) -> None:
        if self.page == self.output:
            raise ValueError(f"{self.output} is to be the JSONL file: name it .jsonl.")

    @property
    def page(self) -> Path:
        return self.output.with_suffix(".html")

    def chosen(self, new_entities: "NewEntities") -> "list[NewEntity]":
        return [entity for entity in new_entities if len(entity.members) >= self.least]

    def write(self, new_entities: "NewEntities") -> None:
        from ..discovery.entities import to_html
        from ..storage.files import json_lines, write_file

        written = self.chosen(new_entities)
        write_file(self.output, json_lines(entity.to_dict() for entity in written))
        write_file(self.page, to_html(written).encode("utf8"))

    def say(self, new_entities: "NewEntities") -> None:
        written = self.chosen(new_entities)
        mentions = sum(len(entity.members) for entity in written)
        msg.good(
            f"{self.output}, {self.page}: {len(written)} new entities, {mentions} mentions"
        )
        if len(written) < len(new_entities):
            smaller = len(new_entities) - len(written)
            msg.info(
                f"Left out: {smaller} new entities with fewer than {self.least} mentions"
            )


def keep_new(
    model: Path,
    new_entities: "NewEntities",
    owner: "PipelineOwner | None",
    replace_earlier: bool,
) -> None:
    """Save the pipeline with these new entities, and the earlier ones unless they are replaced."""
    from ..discovery.new_entities import NewEntities
    from ..linker import find_linker

    if owner is None:
        return
    nlp = open_model(model)
    linker = find_linker(nlp)
    if replace_earlier:
        linker.new_entities = NewEntities()
    linker.new_entities.update(new_entities)
    owner.save(nlp)


def discover_at_once(
    nlp: "Language",
    data: Path,
    how: Reading,
    overrides: dict[str, Any],
    replace_earlier: bool,
) -> "NewEntities":
    """The new entities of a corpus, in this process. The parameters are the command's."""
    from ..discovery.new_entities import NewEntities
    from ..linker import find_linker

    linker = find_linker(nlp)
    if replace_earlier:
        linker.new_entities = NewEntities()
    with document_reader(nlp, linker, data, how) as read:
        if read.by_names:
            msg.warn(
                "All mentions are names of the list. --find en_core_web_sm finds others, too"
            )
        return corpus_linker(linker, read, overrides).discover_stream(read)
