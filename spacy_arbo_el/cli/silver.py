"""``arbo silver``: mentions for training from raw text and a dictionary."""

from itertools import chain
from pathlib import Path
from typing import Iterator, List, Optional

from spacy.cli._util import Arg, Opt
from spacy.tokens import Doc
from wasabi import msg

from ._util import errors_for_people, visible
from .convert import FORMATS


def silver_command(
    # fmt: off
    texts: List[Path] = Arg(..., help="Raw text: .txt, .jsonl, .csv or .spacy files, or folders"),
    kb: Path = Opt(..., "--kb", help="Knowledge base, or JSONL file of entities: the dictionary"),
    output: Path = Opt(..., "--output", "-o", help="A .spacy file, or a folder of them"),
    per_name: int = Opt(20, "--per-name", help="The most mentions of one name; 0 for all"),
    one: bool = Opt(False, "--one", help="Leave out sentences with mentions of several entities"),
    exclude: Optional[Path] = Opt(
        None, "--exclude", "-x", help="File with ids of documents to leave out, one per line"
    ),
    format: str = Opt("", "--format", "-f", help=f"Format of all texts: {FORMATS}"),
    lang: str = Opt("en", "--lang", help="Language of the tokenizer"),
    seed: int = Opt(0, "--seed", help="Determines which mentions of a frequent name are kept"),
    # fmt: on
) -> None:
    """Make training mentions from raw text.

    They are the names of the knowledge base that are in the texts. Annotations of the texts are not
    read. Names of several entities are left out. Each line of a .txt file is a document.

    \b
    Example:
      python -m spacy arbo silver texts/ --kb kb --output silver.spacy
      python -m spacy arbo silver train.txt --format pubtator --kb kb --output silver.spacy
    """
    import spacy
    from tqdm import tqdm

    from ..corpora.files import read_ids
    from ..corpora.names import Dictionary
    from ..corpora.raw import read_plain_documents
    from ..corpora.silver import SilverSettings, write_silver
    from ..kb.loaders import KBFromPath

    with errors_for_people():
        settings = SilverSettings(per_name, one, seed)
        nlp = spacy.blank(lang)
        entities = KBFromPath(kb)(nlp.vocab).entities
        docs: Iterator[Doc] = chain.from_iterable(
            read_plain_documents(path, nlp, format) for path in texts
        )
        if one:
            docs = map(nlp.create_pipe("sentencizer"), docs)
        report = write_silver(
            tqdm(docs, unit=" docs", leave=False),
            Dictionary.build(nlp, entities),
            output,
            settings,
            read_ids(exclude) if exclude else (),
        )
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
