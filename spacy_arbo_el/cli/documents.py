"""The documents that ``arbo link`` and ``arbo discover`` read, and how their mentions are found."""

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Iterable, Iterator

from spacy.cli._util import Arg, Opt
from spacy.language import Language
from spacy.tokens import Doc
from wasabi import msg

from ..errors import Errors
from .arguments import check_data, check_model

if TYPE_CHECKING:
    from ..linker import ArboLinker

DOCUMENTS = Arg(..., help="Documents: .spacy, .txt, .jsonl, .csv, .parquet, or a folder of these")
FIND = Opt(
    "",
    "--find",
    help="Find the mentions with: pipeline (its components before the linker), names (of the "
    "knowledge base), or another pipeline such as en_core_web_sm. By default, those of the "
    "documents are linked",
)


@contextmanager
def document_reader(
    nlp: Language, linker: "ArboLinker", path: Path, find: str
) -> Iterator[Callable[[], Iterator[Doc]]]:
    """A function that reads the documents with their mentions; it can be called several times.

    Documents that are not ``.spacy`` files, or whose mentions must be found, are read once, and
    kept in temporary files. The function raises ValueError where no document has a mention.

    find: See ``FIND``.
    """
    from tqdm import tqdm

    from ..corpora.finders import make_finder
    from ..corpora.parts import write_parts
    from ..corpora.raw import SUFFIX, files_of, read_documents
    from ..corpora.reader import read_docs, unlinked

    def bar(docs: Iterable[Doc]) -> Iterable[Doc]:
        return tqdm(docs, unit=" docs", leave=False)

    def read(folder: Path) -> Iterator[Doc]:
        return checked(bar(map(unlinked, read_docs(folder, nlp.vocab))), linker, path)

    check_data(path)
    check_finder(find)
    finder = make_finder(nlp, linker, find)
    if finder is None and all(file.suffix == SUFFIX for file in files_of(path)):
        yield lambda: read(path)
        return
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "documents"
        docs: Iterable[Doc] = read_documents(path, nlp)
        if finder is not None:
            docs = finder(unlinked(doc, mentions=False) for doc in docs)
        write_parts(bar(docs), place)
        yield lambda: read(place)


def check_finder(find: str) -> None:
    """Raise ValueError where ``--find`` names a path that holds something else than a pipeline."""
    if find not in ("", "pipeline", "names"):
        check_model(Path(find))


def checked(docs: Iterable[Doc], linker: "ArboLinker", path: Path) -> Iterator[Doc]:
    """The documents. Raises ValueError at their end where none had a mention."""
    getter, found = linker.mentions.getter, False
    for doc in docs:
        found = found or any(True for _ in getter(doc))
        yield doc
    if not found:
        raise ValueError(Errors.E790.format(path=path))


def hint_at_empty_kb(linker: "ArboLinker") -> None:
    """Say so where nothing can be linked because there are no entities."""
    if not len(linker.kb):
        msg.warn("The knowledge base is empty: every mention is NIL. Fill it: linker.set_kb(…)")


def hint_at_labels(linker: "ArboLinker", labels: Iterable[str]) -> None:
    """Say so where types must match, and no mention has a label that is the type of an entity."""
    if not linker.datastore.settings.match_types:
        return
    types, labels = set(linker.kb.entities.type_counts()) - {""}, set(labels)
    if labels and types and not labels & types:
        msg.warn(
            f"No entity has a type that is a label of a mention ({', '.join(sorted(labels)[:5])}); "
            f"types are {', '.join(sorted(types)[:5])}. Map one to the other, or set "
            "retriever.match_types = false."
        )
