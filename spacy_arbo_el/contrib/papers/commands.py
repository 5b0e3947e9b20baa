"""The commands of the papers: ``arbo rerank`` and ``silver``."""

from collections.abc import Container, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from spacy.cli._util import Arg, Opt
from wasabi import msg

from ...cli._util import config_overrides, user_errors, visible
from ...cli.arguments import (
    CODE,
    CONFIG,
    EXCLUDE,
    GPU,
    LANG,
    MODEL,
    check_annotated,
    check_needs,
    open_model,
)
from ...cli.convert import FORMATS
from .errors import PaperMessages

if TYPE_CHECKING:
    from spacy.language import Language

    from ...find.dictionary import Dictionary
    from ...kb.knowledge_base import ArboKB
    from .hidden import HiddenDev
    from .silver import Scan, SilverReport

FOLDER = Opt(..., "--output", "-o", help="Folder for model-last")
LIMIT = Opt(0, "--limit", help="Maximum number of documents of TRAIN; 0 for no limit")
TEXTS = Arg(..., help="Raw text: .txt, .jsonl, .csv or .spacy files, or folders")
DICTIONARY = Opt(
    ..., "--kb", help="Knowledge base, or JSONL file of entities: the dictionary"
)
SILVER = Opt(..., "--output", "-o", help="A .spacy file, or a folder of them")
PER_NAME = Opt(
    20, "--per-name", min=0, help="The most mentions of one name; 0 for all"
)
FORMAT = Opt("", "--format", "-f", help=f"Format of all texts: {FORMATS}")
DEV_SET = Opt(
    None, "--dev", help="Dev set to write as .spacy, with hidden and other names"
)
HIDDEN_KB = Opt(
    None, "--hidden-kb", help="Folder for the knowledge base without the hidden names"
)

OVERRIDES = {"allow_extra_args": True, "ignore_unknown_options": True}
add_on = typer.Typer()


@add_on.command("rerank", context_settings=OVERRIDES)
def rerank_command(
    ctx: typer.Context,
    model: Path = MODEL,
    train: Path = Arg(
        ..., help="Annotated .spacy to train on, such as the pipeline's own corpus"
    ),
    dev: Path = Arg(..., help="Annotated .spacy to fit probabilities on"),
    output: Path = FOLDER,
    config: Path | None = CONFIG,
    limit: int = LIMIT,
    gpu_id: int = GPU,
    code: Path | None = CODE,
) -> None:
    """Train a cross-encoder for a trained pipeline.

    It reads each mention together with its first candidates. Settings of the config are overridden
    as in spacy train.

    \b
    Example:
      python -m spacy arbo rerank out/model-best train.spacy dev.spacy --output reranked
      python -m spacy arbo rerank MODEL train.spacy dev.spacy -o reranked --training.max_epochs 1
    """
    from ...base.memory import bound_caches
    from ...corpora.docbin import read_docs
    from ...fitting.calibrate import calibrate_pipeline
    from ...linker import find_linker
    from ...pipelines import changing_pipeline
    from .cross_encoder.reranker import read_config, set_reranker, train_reranker

    saved = output / "model-last"
    overrides = config_overrides(ctx)
    bound_caches()
    with user_errors():
        output.mkdir(parents=True, exist_ok=True)
    # Locked now, so that what can't be saved is not trained.
    with user_errors(only_coded=True), changing_pipeline(saved) as owner:
        for path in (train, dev):
            check_annotated(path)
        settings = read_config(config, overrides)
        nlp = open_model(model)
        linker = find_linker(nlp)
        corpus = list(islice(read_docs(train, nlp.vocab), limit or None))
        held_out = list(read_docs(dev, nlp.vocab))
        reranker = train_reranker(nlp, settings, corpus, held_out, msg.info)
        set_reranker(nlp, linker, reranker, settings["reranker"])
        calibrate_pipeline(nlp, held_out)
        owner.save(nlp)
    msg.good(f"{saved}: pipeline with a cross-encoder, calibrated on {dev}")


@dataclass(frozen=True)
class _SilverTexts:
    """Texts, and the names that are sought in them.

    nlp: Its tokenizer is used.
    """

    texts: Sequence[Path]
    format: str
    nlp: "Language"
    dictionary: "Dictionary"
    exclude: Container[str]
    seed: int

    def scan(
        self, of_dev: bool | None = None, hidden: Container[int] = ()
    ) -> "AbstractContextManager[Scan]":
        """Find names in the documents, with a progress bar. Hidden ones are left out.

        of_dev: Whether those of the dev set are read, or the others; None for all.
        """
        from tqdm import tqdm

        from .hidden import is_dev
        from .silver import read_plain_documents, scanned

        def keep(id_: str) -> bool:
            return of_dev is None or is_dev(id_, self.seed) == of_dev

        docs = chain.from_iterable(
            read_plain_documents(path, self.nlp, self.format, keep)
            for path in self.texts
        )
        docs = tqdm(docs, unit=" docs", leave=False)
        return scanned(docs, self.dictionary, self.exclude, hidden)


@add_on.command("silver")
def silver_command(
    texts: list[Path] = TEXTS,
    kb: Path = DICTIONARY,
    output: Path = SILVER,
    per_name: int = PER_NAME,
    exclude: Path | None = EXCLUDE,
    format: str = FORMAT,
    dev: Path | None = DEV_SET,
    hidden_kb: Path | None = HIDDEN_KB,
    replace: bool = Opt(
        False, "--replace", help="Replace a knowledge base at --hidden-kb"
    ),
    lang: str = LANG,
    seed: int = Opt(0, "--seed", min=0, help="Seed of the random choice"),
    code: Path | None = CODE,
) -> None:
    """Make training mentions from raw text.

    Mentions are names of the knowledge base in the texts. Annotations are not read. Names of
    several entities are left out. Each line of a .txt file is a document.

    With --dev, a dev set is made as well, for calibration. Some names in it are hidden: neither the
    training mentions have them nor the knowledge base --hidden-kb, to train with. Afterwards,
    linker.set_kb gives the pipeline the whole one.

    \b
    Example:
      python -m spacy arbo silver train.txt --format pubtator --kb kb -o silver.spacy
      python -m spacy arbo silver texts/ --kb kb -o train.spacy --dev dev.spacy --hidden-kb hidden
    """
    import spacy

    from ...corpora.read import read_ids
    from ...find.dictionary import Dictionary
    from ...kb.loaders import KBFromPath
    from .silver import write_chosen

    with user_errors():
        if (dev is None) != (hidden_kb is None):
            raise PaperMessages.E843()
        why = "without it, no knowledge base is written"
        check_needs(
            {"--replace": replace and dev is None}, "--dev and --hidden-kb", why
        )
        nlp = spacy.blank(lang)
        named_kb = KBFromPath(kb)(nlp.vocab)
        dictionary = Dictionary.build(nlp, named_kb.entities)
        excluded = read_ids(exclude) if exclude else ()
        source = _SilverTexts(texts, format, nlp, dictionary, excluded, seed)
        if dev is not None and hidden_kb is not None:
            _write_with_dev(
                source, named_kb, per_name, output, dev, hidden_kb, replace
            )
        else:
            with source.scan() as scan:
                _show(write_chosen(scan, output, per_name, seed), output)


def _write_with_dev(
    source: _SilverTexts,
    named_kb: "ArboKB",
    per_name: int,
    output: Path,
    dev: Path,
    hidden_kb: Path,
    replace: bool,
) -> None:
    from ...kb.folder import check_new
    from .hidden import HIDE, HiddenDev, without_names
    from .silver import write_chosen

    check_new(hidden_kb, overwrite=replace)
    with source.scan(of_dev=True) as scan:
        hidden = HiddenDev.choose(scan, HIDE, per_name, source.seed)
        # Nothing is written where the rest of the documents has no mention.
        with source.scan(False, hidden.hidden) as train_scan:
            hidden.write(source.nlp, dev)
            named_kb.update(
                without_names(named_kb.entities, source.dictionary, hidden.hidden)
            )
            named_kb.to_disk(hidden_kb)
            _show_hidden(hidden, dev, hidden_kb)
            _show(write_chosen(train_scan, output, per_name, source.seed), output)


def _show_hidden(hidden_dev: "HiddenDev", dev: Path, hidden_kb: Path) -> None:
    counts = hidden_dev.scan.report(hidden_dev.chosen).counts
    msg.good(
        f"{visible(dev)}: {counts['docs']} documents, {counts['mentions']} mentions, "
        f"{hidden_dev.in_text} of them of hidden names; {len(hidden_dev.bare)} hidden names on "
        "their own"
    )
    msg.good(
        f"{visible(hidden_kb)}: the knowledge base without {len(hidden_dev.hidden)} names"
    )


def _show(report: "SilverReport", output: Path) -> None:
    counts = report.counts
    msg.good(
        f"{visible(output)}: {counts['docs']} documents, {counts['mentions']} mentions of "
        f"{counts['entities']} entities by {counts['names']} names"
    )
    for reason, count in report.left_out.items():
        if count:
            msg.info(f"Left out: {count} {reason}")
    frequent = ", ".join(f"{name} ({count})" for name, count in report.frequent)
    msg.info(
        f"Most frequent: {visible(frequent)}. Take common words out of the dictionary."
    )
