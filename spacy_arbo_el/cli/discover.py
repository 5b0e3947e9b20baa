"""``arbo link`` and ``arbo discover``: all documents of a corpus in one graph."""

import json
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, Optional

from spacy.cli._util import Arg, Opt
from wasabi import msg

from ._util import errors_for_people

OUTPUT = ".spacy to write, or a folder for a large corpus"


@contextmanager
def _reading(nlp, linker, corpus: Path, given: bool):
    """A function that gives the documents anew, with the mentions that are to be linked.

    given: Whether these are those of the corpus; else what stands before the linker finds them,
        once, and the documents wait in files.
    """
    from tqdm import tqdm

    from ..corpora.parts import write_parts
    from ..corpora.reader import MentionCorpus

    def read(path: Path) -> Iterator:
        return (eg.predicted for eg in tqdm(MentionCorpus(path)(nlp), unit=" docs", leave=False))

    if given:
        yield lambda: read(corpus)
        return
    plain = (example.predicted for example in MentionCorpus(corpus, gold_mentions=False)(nlp))
    names = nlp.pipe_names[: [pipe for _, pipe in nlp.pipeline].index(linker)]
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "found"
        with nlp.select_pipes(enable=names):
            write_parts(tqdm(nlp.pipe(plain), unit=" docs", leave=False), found)
        yield lambda: read(found)


def link_command(
    # fmt: off
    model: Path = Arg(..., help="Pipeline with a linker"),
    corpus: Path = Arg(..., help=".spacy with mentions, or a folder of them"),
    output: Path = Arg(..., help=OUTPUT),
    threshold: Optional[float] = Opt(None, "--threshold", "-t", help="The linker's by default"),
    find: bool = Opt(False, "--find", help="Let the pipeline find the mentions"),
    # fmt: on
) -> None:
    """Link all documents together and write them, links and evidence included."""
    import spacy

    from ..corpora.parts import write_parts
    from ..evaluation.report import find_linker

    with errors_for_people():
        nlp = spacy.load(model)
        linker = find_linker(nlp)
        with _reading(nlp, linker, corpus, not find) as read:
            count = write_parts(linker.link_stream(read, threshold=threshold), output)
    msg.good(f"{output}: {count} documents")


def discover_command(
    # fmt: off
    model: Path = Arg(..., help="Pipeline with a linker"),
    corpus: Path = Arg(..., help=".spacy with mentions, or a folder of them"),
    output: Path = Opt(..., "--out", "-o", help="JSONL of the new entities"),
    page: Optional[Path] = Opt(None, "--page", help="HTML page; beside the JSONL by default"),
    threshold: Optional[float] = Opt(None, "--threshold", "-t", help="The linker's by default"),
    find: bool = Opt(False, "--find", help="Let the pipeline find the mentions"),
    keep: Optional[Path] = Opt(
        None, "--keep", help="Pipeline to write that keeps them, for `arbo new`"
    ),
    replace: bool = Opt(False, "--replace", help="Let --keep give up what the pipeline keeps"),
    # fmt: on
) -> None:
    """Group the mentions that no entity fits into new entities; write them, and a page to see."""
    import spacy

    from ..discovery.page import to_html
    from ..evaluation.report import find_linker
    from ..io import write_file

    page = page or output.with_suffix(".html")
    if page == output:
        msg.fail(f"{output} is to hold JSONL: name it .jsonl, or the page by --page.", exits=1)
    with errors_for_people():
        nlp = spacy.load(model)
        linker = find_linker(nlp)
        if keep is not None and linker.new_entities.log + linker.new_entities.ids and not replace:
            msg.fail(
                f"{model} keeps {len(linker.new_entities)} new entities already, and what was "
                "decided about them. --replace gives them up.",
                exits=1,
            )
        with _reading(nlp, linker, corpus, not find) as read:
            found = linker.discover_stream(read, threshold=threshold)
        lines = (json.dumps(one.to_dict(), ensure_ascii=False) + "\n" for one in found)
        write_file(output, "".join(lines).encode("utf8"))
        write_file(page, to_html(found).encode("utf8"))
        if keep is not None:
            linker.new_entities = found
            nlp.to_disk(keep)
    msg.good(f"{output}, {page}: {len(found)} new entities, {len(found.rows)} mentions")
