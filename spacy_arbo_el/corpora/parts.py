"""Writing of corpora that don't fit into memory: several files with some documents each."""

from pathlib import Path
from typing import Iterable

from spacy.tokens import Doc, DocBin
from spacy.util import minibatch

from ..storage.files import write_file
from ..storage.folders import FolderKind, replacing_folder

# Documents per file.
PART = 1000

PARTS = FolderKind("a corpus of this format", lambda folder: r"part-\d{6,}\.spacy")


def write_parts(docs: Iterable[Doc], path: Path, part: int = PART) -> int:
    """Write documents with their user data. ``read_docs`` reads them in the same order.

    If writing fails, the previous files stay. Raises ValueError if the folder exists and contains
    other files.

    docs: The documents.
    path: A file if it ends in ".spacy", otherwise a folder.
    part: The number of documents per file in a folder.
    RETURNS: The number of documents.
    """
    count = 0
    if path.suffix == ".spacy":
        docbin = DocBin(store_user_data=True)
        for doc in docs:
            docbin.add(doc)
            count += 1
        write_file(path, docbin.to_bytes())
        return count
    with replacing_folder(path, PARTS) as folder:
        for number, batch in enumerate(minibatch(docs, part)):
            written = DocBin(docs=batch, store_user_data=True)
            (folder / f"part-{number:06d}.spacy").write_bytes(written.to_bytes())
            count += len(batch)
        if not count:
            (folder / "part-000000.spacy").write_bytes(DocBin().to_bytes())
    return count
