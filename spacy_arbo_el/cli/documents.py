"""Documents of ``arbo link`` and ``arbo discover``, and their mentions."""

import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from spacy.cli._util import Arg, Opt
from spacy.language import Language
from spacy.tokens import Doc
from wasabi import msg

from ..base.errors import Errors
from ..records.lines import throw
from ._util import visible
from .arguments import check_data, check_model

if TYPE_CHECKING:
    from ..linker import ArboLinker

DOCUMENTS = Arg(
    ..., help="Documents: .spacy, .txt, .jsonl, .csv, .parquet, or a folder of these"
)
FIND = Opt(
    "",
    "--find",
    help="Find the mentions with: pipeline (its components before the linker), names (of the "
    "knowledge base), or another pipeline such as en_core_web_sm. By default, those of the "
    "documents are linked, and names are found where a document has none, if the pipeline has "
    "arbo_names",
)
ENCODING = Opt(
    "utf8", "--encoding", help="Encoding of .txt, .jsonl and .csv files, as cp1252"
)
SKIP_BAD = Opt(False, "--skip-bad", help="Leave out invalid lines and files")
# So many errors are printed.
MOST_PLACES = 5


@dataclass(frozen=True)
class Reading:
    """Options for reading documents and finding their mentions."""

    find: str
    encoding: str
    skip_bad: bool


@dataclass(frozen=True)
class DocumentReader:
    """Reads the documents with their mentions, the same each time that it is called.

    by_names: Whether all mentions are names of the list, which ``arbo_names`` found.
    """

    read: Callable[[], Iterator[Doc]]
    by_names: bool = False

    def __call__(self) -> Iterator[Doc]:
        return self.read()


@contextmanager
def document_reader(
    nlp: Language, linker: "ArboLinker", path: Path, how: Reading
) -> Iterator[DocumentReader]:
    """The reader of the documents.

    Documents that are not ``.spacy`` files, or whose mentions must be found, are read once, and
    kept in temporary files. The reader raises ValueError where no document has a mention.
    """
    from tqdm import tqdm

    from ..corpora.docbin import SUFFIX, read_docs, write_parts
    from ..corpora.docs import unlinked
    from ..corpora.read import files_of, read_documents
    from ..find.finders import ArboNames, make_finder

    def bar(docs: Iterable[Doc]) -> Iterable[Doc]:
        return tqdm(docs, unit=" docs", leave=False)

    def with_mentions(docs: Iterable[Doc]) -> Iterator[Doc]:
        for doc in docs:
            doc = unlinked(doc, mentions=not how.find)
            n_mentions["given"] += len(list(linker.mentions.getter(doc)))
            yield doc

    def read(folder: Path) -> Iterator[Doc]:
        docs = bar(map(unlinked, read_docs(folder, nlp.vocab)))
        return checked(docs, linker, path, left_out)

    check_data(path)
    check_finder(how.find)
    left_out: Counter = Counter()
    n_mentions: Counter = Counter()
    finder = make_finder(nlp, linker, how.find)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        # The counts of all documents are said instead.
        warnings.filterwarnings("ignore", r".*arbo-W543")
        if finder is None and all(
            file.suffix.lower() == SUFFIX for file in files_of(path)
        ):
            yield DocumentReader(lambda: read(path))
            return
        place = Path(folder) / "documents"
        problems: list[ValueError] = []
        bad = problems.append if how.skip_bad else throw
        docs: Iterable[Doc] = read_documents(path, nlp, how.encoding, bad)
        if finder is not None:
            docs = finder(with_mentions(docs))
        write_parts(bar(docs), place)
        if problems:
            msg.warn(f"{len(problems)} bad lines or files left out. The first:")
        for problem in problems[:MOST_PLACES]:
            msg.text(visible(problem))
        has_names = any(isinstance(pipe, ArboNames) for _, pipe in nlp.pipeline)
        finds_names = how.find == "names" or (
            how.find in ("", "pipeline") and has_names
        )
        yield DocumentReader(
            lambda: read(place), finds_names and not n_mentions["given"]
        )


def check_finder(find: str) -> None:
    """Raise ValueError unless ``--find`` is a finder or a pipeline."""
    if find not in ("", "pipeline", "names"):
        check_model(Path(find))


def checked(
    docs: Iterable[Doc], linker: "ArboLinker", path: Path, left_out: Counter
) -> Iterator[Doc]:
    """The documents. Raises ValueError at their end where none had a mention.

    left_out: Gets the labels that are left out, with their counts, which are said the first time.
    """
    labels: Counter = Counter()
    for doc in docs:
        labels.update(span.label_ for span in linker.mentions.getter(doc))
        yield doc
    if not labels:
        raise Errors.E790(path=path)
    if not left_out:
        left_out.update(
            {name: labels[name] for name in labels if linker.reader.is_discarded(name)}
        )
        if left_out:
            names = ", ".join(
                f"{name} ({count})" for name, count in left_out.most_common()
            )
            msg.info(
                f"Left out: {left_out.total()} mentions with the labels {visible(names)}"
            )


def hint_at_empty_kb(linker: "ArboLinker") -> None:
    if not len(linker.kb):
        msg.warn(
            "The knowledge base is empty: every mention is NIL. Fill it: linker.set_kb(…)"
        )
