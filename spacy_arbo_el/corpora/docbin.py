"""Documents in ``.spacy`` files, and in folders of these."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from spacy.tokens import Doc, DocBin
from spacy.util import minibatch
from spacy.vocab import Vocab

from ..base.errors import Errors
from ..records.lines import (
    WHOLE,
    Lines,
    OnBad,
    PathLike,
    check_exists,
    files_in,
    throw,
)
from ..storage.files import write_file
from ..storage.folders import FolderKind, replacing_folder

SUFFIX = ".spacy"
# Documents per file of a folder.
PART = 1000
PARTS = FolderKind("a corpus of this format", lambda folder: r"part-\d{6,}\.spacy")


def read_docs(path: Path, vocab: Vocab) -> Iterator[Doc]:
    """Yield the documents of ``.spacy`` files. Empty ones are skipped."""
    path = check_exists(path, "Convert the corpus first, or correct the path.")
    files = files_in(path, SUFFIX)
    if not files:
        hint = "The folder holds no such file: convert the corpus first."
        raise FileNotFoundError(
            Errors.E101.format(path=path / f"*{SUFFIX}", hint=hint)
        )
    for file in files:
        for _, doc in numbered_docs(file, vocab):
            yield doc


def numbered_docs(
    path: PathLike, vocab: Vocab, on_error: OnBad = throw, lines: Lines = WHOLE
) -> Iterator[tuple[int, Doc]]:
    """Yield the documents of a file with numbers from 1. Empty ones are left out.

    on_error: Takes the errors of documents that cannot be read; by default they are raised.
    """
    # zlib, msgpack, NumPy and spaCy raise different errors on invalid bytes.
    content = Path(path).read_bytes()
    try:
        docbin = DocBin().from_bytes(content)
        for string in docbin.strings:
            vocab[string]
    except Exception as error:
        raise Errors.E116(path=path, problem=error) from error
    for number in range(len(docbin))[lines.start : lines.stop]:
        try:
            (doc,) = _only(docbin, number).get_docs(vocab)
        except Exception as error:
            problem = f"document {number + 1}: {error}"
            on_error(ValueError(Errors.E116.format(path=path, problem=problem)))
            continue
        if len(doc):
            yield number + 1, doc


def _only(docbin: DocBin, number: int) -> DocBin:
    """A DocBin with one of the documents. Their strings must be in the vocabulary."""
    single = DocBin()
    single.attrs = docbin.attrs
    for field in ("tokens", "spaces", "cats", "flags", "span_groups", "user_data"):
        setattr(single, field, getattr(docbin, field)[number : number + 1])
    return single


def write_docbin(docs: Iterable[Doc], path: PathLike) -> int:
    """Write documents and their user data to a ``.spacy`` file, all or none of them.

    Raises ValueError if there are no documents, since an empty corpus is a mistake.

    RETURNS: The number of documents.
    """
    docbin = DocBin(docs=docs, store_user_data=True)
    if not len(docbin):
        raise Errors.E114(path=Path(path))
    write_file(Path(path), docbin.to_bytes())
    return len(docbin)


def write_parts(docs: Iterable[Doc], path: Path, part_size: int = PART) -> int:
    """Write documents with their user data. ``read_docs`` reads them in the same order.

    If writing fails, the previous files stay. Raises ValueError if the folder exists and contains
    other files.

    docs: The documents; there may be none.
    path: A file if it ends in ".spacy", otherwise a folder, for corpora that don't fit into memory.
    part_size: The number of documents per file in a folder.
    RETURNS: The number of documents.
    """
    if path.suffix.lower() == SUFFIX:
        docbin = DocBin(docs=docs, store_user_data=True)
        write_file(path, docbin.to_bytes())
        return len(docbin)
    count = 0
    with replacing_folder(path, PARTS) as folder:
        for number, batch in enumerate(minibatch(docs, part_size)):
            (folder / f"part-{number:06d}.spacy").write_bytes(
                DocBin(docs=batch, store_user_data=True).to_bytes()
            )
            count += len(batch)
        if not count:
            (folder / "part-000000.spacy").write_bytes(DocBin().to_bytes())
    return count
