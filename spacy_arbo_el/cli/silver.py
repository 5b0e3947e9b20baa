"""The command ``arbo silver``: training mentions by a dictionary."""

import shutil
from contextlib import nullcontext
from itertools import chain
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    ContextManager,
    Dict,
    FrozenSet,
    Iterator,
    List,
    Optional,
    Sequence,
)

from spacy.cli._util import Arg, Opt
from wasabi import msg

from ._util import errors_for_people, visible
from .arguments import CODE, CPUS, EXCLUDE, LANG, RAY, WORKERS, check_needs, ray_settings
from .convert import FORMATS

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

    from ..corpora.hidden import HiddenReport
    from ..corpora.silver import Scan, SilverReport

# Whether a document is wanted, by its id.
Keep = Callable[[str], bool]
# Defaults of options that need others.
HIDE, DEV_SHARE, SHARD = 0.5, 0.2, 1000


def silver_command(
    # fmt: off
    texts: List[Path] = Arg(..., help="Raw text: .txt, .jsonl, .csv or .spacy files, or folders"),
    kb: Path = Opt(..., "--kb", help="Knowledge base, or JSONL file of entities: the dictionary"),
    output: Path = Opt(..., "--output", "-o", help="A .spacy file, or a folder of them"),
    per_name: int = Opt(20, "--per-name", help="The most mentions of one name; 0 for all"),
    exclude: Optional[Path] = EXCLUDE,
    format: str = Opt("", "--format", "-f", help=f"Format of all texts: {FORMATS}"),
    dev: Optional[Path] = Opt(
        None, "--dev", help="Dev set to write as .spacy, with hidden and other names"
    ),
    hidden_kb: Optional[Path] = Opt(
        None, "--hidden-kb", help="Folder for the knowledge base without the hidden names"
    ),
    hide: float = Opt(HIDE, "--hide", help="Share of the dev set's entities with a hidden name"),
    dev_share: float = Opt(DEV_SHARE, "--dev-share", help="Share of the documents in the dev set"),
    replace: bool = Opt(False, "--replace", help="Replace a knowledge base at --hidden-kb"),
    lang: str = LANG,
    seed: int = Opt(0, "--seed", help="Seed of the random choice"),
    ray: Optional[str] = RAY,
    workers: int = WORKERS,
    cpus_per_worker: int = CPUS,
    shard: int = Opt(SHARD, "--shard", help="Documents per shard, with --ray"),
    code: Optional[Path] = CODE,
    # fmt: on
) -> None:
    """Make training mentions from raw text.

    Mentions are the names of the knowledge base that occur in the texts. Annotations of the texts
    are not read. Names shared by several entities are left out. Each line of a .txt file is a
    document.

    With --dev, a dev set is made as well, for calibration. Some names in it are hidden: they are
    neither in the training mentions nor in the knowledge base --hidden-kb, which is the one to
    train with. Afterwards, "arbo kb install" gives the pipeline the whole knowledge base.

    With --ray, workers find the names. What they have found is kept beside the output, in a folder
    that ends in .run, until the command is done: run the same command to resume. All
    machines must reach the texts, the knowledge base and this folder by the same paths.

    \b
    Example:
      python -m spacy arbo silver texts/ --kb kb -o silver.spacy
      python -m spacy arbo silver train.txt --format pubtator --kb kb -o silver.spacy
      python -m spacy arbo silver texts/ --kb kb -o train.spacy --dev dev.spacy --hidden-kb hidden
      python -m spacy arbo silver texts/ --kb kb -o silver.spacy --ray local --workers 4
    """
    import spacy

    from ..corpora.hidden import DEV, TRAIN, HiddenDev, HiddenSettings, without_names
    from ..corpora.names import Dictionary
    from ..corpora.read import read_ids
    from ..corpora.silver import SilverSettings, scanned, write_chosen
    from ..errors import ArboError, Errors
    from ..kb.folder import check_new
    from ..kb.loaders import KBFromPath

    with errors_for_people():
        settings = SilverSettings(per_name, seed)
        held_out = HiddenSettings(dev_share, hide)
        cluster = ray_settings(ray, workers, cpus_per_worker, 0.0, code)
        if (dev is None) != (hidden_kb is None):
            raise ArboError(Errors.E843)
        if dev is None:
            given = {"--hide": hide != HIDE, "--dev-share": dev_share != DEV_SHARE}
            why = "without it, no name is hidden and all documents are for training"
            check_needs({**given, "--replace": replace}, "--dev and --hidden-kb", why)
        if cluster is None:
            check_needs({"--shard": shard != SHARD}, "--ray", "without it, there are no shards")
        nlp = spacy.blank(lang)
        known = KBFromPath(kb)(nlp.vocab)
        dictionary = Dictionary.build(nlp, known.entities)
        place = output.resolve()
        run = place.with_name(f"{place.name}.run")

        def scan(part: str, hidden: FrozenSet[int]) -> "ContextManager[Scan]":
            """Find the names in a part of the documents. Hidden names are left out."""
            if cluster is None:
                ids = read_ids(exclude) if exclude else ()
                docs = _documents(texts, nlp, format, lambda i: held_out.is_in(part, i, seed))
                return scanned(docs, dictionary, ids, hidden)
            from ..distributed.silver import SilverJob, scanned_in_shards

            how: Dict[str, Any] = {"lang": lang, "format": format, "seed": seed}
            how.update(size=shard, part=part, dev_share=dev_share, hidden=tuple(sorted(hidden)))
            job = SilverJob.of(texts, kb, run / (part or "all"), exclude, **how)
            return nullcontext(scanned_in_shards(job, dictionary, cluster))

        if dev is not None and hidden_kb is not None:
            check_new(hidden_kb, overwrite=replace)
            with scan(DEV, frozenset()) as found:
                hidden = HiddenDev.choose(found, settings, held_out.entities)
                # Nothing is written where the rest of the documents has no mention.
                with scan(TRAIN, hidden.report.hidden) as rest:
                    hidden.write(nlp, dev)
                    known.update(without_names(known.entities, dictionary, hidden.report.hidden))
                    known.to_disk(hidden_kb)
                    _show_hidden(hidden.report, dev, hidden_kb)
                    _show(write_chosen(rest, output, settings), output)
        else:
            with scan("", frozenset()) as found:
                _show(write_chosen(found, output, settings), output)
        if cluster is not None:
            for part in (DEV, TRAIN, "all"):
                shutil.rmtree(run / part, ignore_errors=True)
            run.rmdir()


def _documents(texts: Sequence[Path], nlp: "Language", format: str, keep: Keep) -> "Iterator[Doc]":
    """The documents of all files, with a progress bar."""
    from tqdm import tqdm

    from ..corpora.read import read_plain_documents

    docs: Iterator[Doc] = chain.from_iterable(
        read_plain_documents(path, nlp, format, keep) for path in texts
    )
    return iter(tqdm(docs, unit=" docs", leave=False))


def _show_hidden(report: "HiddenReport", dev: Path, hidden_kb: Path) -> None:
    counts = report.silver.counts
    msg.good(
        f"{visible(dev)}: {counts['docs']} documents, {counts['mentions']} mentions, "
        f"{report.in_text} of them of hidden names; {report.bare} hidden names on their own"
    )
    msg.good(f"{visible(hidden_kb)}: the knowledge base without {len(report.hidden)} names")


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
    msg.info(f"Most frequent: {visible(frequent)}. Take common words out of the dictionary.")
