"""``arbo link`` and ``arbo discover``: all documents of a corpus in one graph."""

import json
import tempfile
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Iterator, Optional

from spacy.cli._util import Arg, Opt
from spacy.language import Language
from spacy.tokens import Doc
from wasabi import msg

from ._util import errors_for_people

if TYPE_CHECKING:
    from ..linker import ArboLinker

MODEL = Arg(..., help="Pipeline with a linker")
CORPUS = Arg(..., help=".spacy file with mentions, or a folder of them")
THRESHOLD = Opt(None, "--threshold", "-t", help="Threshold for links; by default the linker's")
FIND = Opt(False, "--find", help="Find the mentions with the pipeline")


@contextmanager
def _reader(
    nlp: Language, linker: "ArboLinker", corpus: Path, find: bool
) -> Iterator[Callable[[], Iterator[Doc]]]:
    """A function that reads the documents with their mentions; it can be called several times.

    find: Whether the components before the linker find the mentions. They are run once, and the
        documents are stored in temporary files. Otherwise the mentions are those of the corpus.
    """
    from tqdm import tqdm

    from ..corpora.parts import write_parts
    from ..corpora.reader import MentionCorpus

    def read(path: Path) -> Iterator[Doc]:
        return (eg.predicted for eg in tqdm(MentionCorpus(path)(nlp), unit=" docs", leave=False))

    if not find:
        yield lambda: read(corpus)
        return
    plain = (example.predicted for example in MentionCorpus(corpus, gold_mentions=False)(nlp))
    names = nlp.pipe_names[: [pipe for _, pipe in nlp.pipeline].index(linker)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mentions"
        with nlp.select_pipes(enable=names):
            write_parts(tqdm(nlp.pipe(plain), unit=" docs", leave=False), path)
        yield lambda: read(path)


def link_command(
    # fmt: off
    model: Path = MODEL,
    corpus: Path = CORPUS,
    output: Path = Arg(
        ..., help="What to write: a .spacy file, a .jsonl file, or a folder of .spacy files"
    ),
    threshold: Optional[float] = THRESHOLD,
    find: bool = FIND,
    # fmt: on
) -> None:
    """Link the mentions of all documents in one graph. Write the documents with their links."""
    from ..corpora.links import check_output, write_links
    from ..corpora.parts import write_parts
    from ..linker import find_linker
    from ..pipelines import load_pipeline

    with errors_for_people():
        check_output(output)
        nlp = load_pipeline(model)
        linker = find_linker(nlp)
        with _reader(nlp, linker, corpus, find) as read:
            docs = linker.link_stream(read, threshold=threshold)
            if output.suffix == ".jsonl":
                getter, extension = linker.mentions.getter, linker.cfg["extension"]
                count = write_links(docs, output, getter, extension)
            else:
                count = write_parts(docs, output)
    msg.good(f"{output}: {count} documents")


def discover_command(
    # fmt: off
    model: Path = MODEL,
    corpus: Path = CORPUS,
    output: Path = Opt(..., "--out", "-o", help="JSONL file of the new entities"),
    page: Optional[Path] = Opt(None, "--page", help="HTML page; by default next to the JSONL file"),
    threshold: Optional[float] = THRESHOLD,
    find: bool = FIND,
    keep: Optional[Path] = Opt(
        None, "--keep", help="Save a pipeline with these and earlier new entities, for `arbo new`"
    ),
    replace: bool = Opt(
        False,
        "--replace",
        help="Discard the new entities of the pipeline, and all decisions on them",
    ),
    # fmt: on
) -> None:
    """Group the mentions that no entity fits into new entities. Write them as JSONL and HTML.

    What was decided with `arbo new` holds: merged mentions stay together, split ones apart, and
    rejected or accepted ones are left out.
    """
    from ..discovery.new_entities import NewEntities
    from ..discovery.page import to_html
    from ..io import write_file
    from ..linker import find_linker
    from ..pipelines import changing_pipeline, load_pipeline, save_pipeline

    page = page or output.with_suffix(".html")
    if page == output:
        msg.fail(f"{output} is the JSONL file: name it .jsonl, or choose another --page.", exits=1)
    changing = nullcontext() if keep is None else changing_pipeline(keep)
    with errors_for_people(), changing:
        nlp = load_pipeline(model)
        linker = find_linker(nlp)
        if replace:
            linker.new_entities = NewEntities()
        with _reader(nlp, linker, corpus, find) as read:
            new_entities = linker.discover_stream(read, threshold=threshold)
        lines = (json.dumps(one.to_dict(), ensure_ascii=False) + "\n" for one in new_entities)
        write_file(output, "".join(lines).encode("utf8"))
        write_file(page, to_html(new_entities).encode("utf8"))
        if keep is not None:
            linker.new_entities.update(new_entities)
            save_pipeline(nlp, keep)
    mentions = sum(len(one.members) for one in new_entities)
    counts = f"{len(new_entities)} new entities, {mentions} mentions"
    msg.good(f"{output}, {page}: {counts}")
