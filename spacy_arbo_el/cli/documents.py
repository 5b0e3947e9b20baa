"""The documents that ``arbo link`` and ``arbo discover`` read, and how their mentions are found."""

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Iterable, Iterator, Optional

from spacy.cli._util import Arg, Opt
from spacy.language import Language
from spacy.tokens import Doc, Span
from wasabi import msg

from ..errors import Errors
from .arguments import check_data, check_model

if TYPE_CHECKING:
    from ..linker import ArboLinker

DOCUMENTS = Arg(..., help="Documents: .spacy, .txt, .jsonl, .csv, or a folder of these")
FIND = Opt(
    "",
    "--find",
    help="Find the mentions with: pipeline (its components before the linker), names (of the "
    "knowledge base), or another pipeline such as en_core_web_sm. By default, those of the "
    "documents are linked",
)
Finder = Callable[[Iterable[Doc]], Iterable[Doc]]


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

    from ..corpora.parts import write_parts
    from ..corpora.raw import SUFFIX, files_of, read_documents
    from ..corpora.reader import read_docs, unlinked

    def bar(docs: Iterable[Doc]) -> Iterable[Doc]:
        return tqdm(docs, unit=" docs", leave=False)

    def read(folder: Path) -> Iterator[Doc]:
        return checked(bar(map(unlinked, read_docs(folder, nlp.vocab))), linker, path)

    check_data(path)
    finder = _finder(nlp, linker, find)
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


def checked(docs: Iterable[Doc], linker: "ArboLinker", path: Path) -> Iterator[Doc]:
    """The documents. Raises ValueError at their end where none had a mention."""
    getter, found = linker.mentions.getter, False
    for doc in docs:
        found = found or any(True for _ in getter(doc))
        yield doc
    if not found:
        raise ValueError(Errors.E790.format(path=path))


def _finder(nlp: Language, linker: "ArboLinker", find: str) -> Optional[Finder]:
    if not find:
        return None
    if find == "pipeline":
        return _finder_of_pipeline(nlp, linker)
    if find == "names":
        from ..corpora.names import NameFinder

        return NameFinder.build(nlp, linker.kb.entities, linker.mentions.getter)
    return _finder_of_other(nlp, linker, find)


def _finder_of_pipeline(nlp: Language, linker: "ArboLinker") -> Finder:
    pipes = [pipe for _, pipe in nlp.pipeline]
    names = nlp.pipe_names[: pipes.index(linker)]
    if not names:
        raise ValueError(Errors.E791.format(names=", ".join(nlp.pipe_names)))

    def find(docs: Iterable[Doc]) -> Iterable[Doc]:
        with nlp.select_pipes(enable=names):
            yield from nlp.pipe(docs)

    return find


def _finder_of_other(nlp: Language, linker: "ArboLinker", name: str) -> Finder:
    import spacy

    from ..mentions.getters import set_mentions

    check_model(Path(name))
    other, getter = spacy.load(name), linker.mentions.getter

    def find(docs: Iterable[Doc]) -> Iterator[Doc]:
        pairs = ((doc.text, doc.user_data.get("doc_id", "")) for doc in docs)
        for found, doc_id in other.pipe(pairs, as_tuples=True):
            words = [token.text for token in found]
            spaces = [bool(token.whitespace_) for token in found]
            doc = Doc(nlp.vocab, words=words, spaces=spaces)
            if doc_id:
                doc.user_data["doc_id"] = doc_id
            spans = found.spans.get(getter.spans_key or "", found.ents)
            copies = [Span(doc, span.start, span.end, label=span.label_) for span in spans]
            set_mentions(doc, copies, getter)
            yield doc

    return find


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
