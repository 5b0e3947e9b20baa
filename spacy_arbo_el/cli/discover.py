"""``arbo link`` and ``arbo discover``: all documents of a corpus in one graph."""

import json
from pathlib import Path
from typing import Optional

from spacy.cli._util import Arg, Opt
from wasabi import msg

from ._util import errors_for_people


def _read(model: Path, corpus: Path, given: bool):
    """A pipeline's linker, and the documents with the mentions that are to be linked."""
    import spacy
    from tqdm import tqdm

    from ..corpora.reader import MentionCorpus
    from ..evaluation.report import find_linker

    nlp = spacy.load(model)
    linker = find_linker(nlp)
    docs = [example.predicted for example in MentionCorpus(corpus, gold_mentions=given)(nlp)]
    if not given:
        # What stands before the linker finds the mentions.
        names = nlp.pipe_names[: [p for _, p in nlp.pipeline].index(linker)]
        with nlp.select_pipes(enable=names):
            docs = list(tqdm(nlp.pipe(docs), total=len(docs), leave=False))
    return linker, docs


def link_command(
    # fmt: off
    model: Path = Arg(..., help="Pipeline with a linker"),
    corpus: Path = Arg(..., help=".spacy with mentions"),
    output: Path = Arg(..., help=".spacy to write, with links"),
    find: bool = Opt(False, "--find", help="Let the pipeline find the mentions"),
    # fmt: on
) -> None:
    """Link all documents together and write them, links and evidence included."""
    from spacy.tokens import DocBin

    from ..io import write_file

    with errors_for_people():
        linker, docs = _read(model, corpus, not find)
        linked = DocBin(docs=linker.link_corpus(docs), store_user_data=True)
        write_file(output, linked.to_bytes())
    msg.good(f"{output}: {len(docs)} documents")


def discover_command(
    # fmt: off
    model: Path = Arg(..., help="Pipeline with a linker"),
    corpus: Path = Arg(..., help=".spacy with mentions"),
    output: Path = Opt(..., "--out", "-o", help="JSONL of the new entities"),
    page: Optional[Path] = Opt(None, "--page", help="HTML page; beside the JSONL by default"),
    threshold: Optional[float] = Opt(None, "--threshold", "-t", help="The linker's by default"),
    find: bool = Opt(False, "--find", help="Let the pipeline find the mentions"),
    # fmt: on
) -> None:
    """Group the mentions that no entity fits into new entities; write them, and a page to see."""
    from ..discovery.page import to_html
    from ..io import write_file

    with errors_for_people():
        linker, docs = _read(model, corpus, not find)
        found = linker.discover(docs, threshold=threshold)
        lines = (json.dumps(one.to_dict(), ensure_ascii=False) + "\n" for one in found)
        write_file(output, "".join(lines).encode("utf8"))
        page = page or output.with_suffix(".html")
        write_file(page, to_html(found).encode("utf8"))
    mentions = sum(len(one.members) for one in found)
    msg.good(f"{output}, {page}: {len(found)} new entities, {mentions} mentions")
