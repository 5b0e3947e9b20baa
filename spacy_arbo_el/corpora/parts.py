"""Documents written a part at a time, so that a corpus need not fit into memory."""

from pathlib import Path
from typing import Iterable

from spacy.tokens import Doc, DocBin
from spacy.util import minibatch

from ..errors import Errors
from ..io import replacing_folder, write_file

# Documents in a file.
PART = 1000


def write_parts(docs: Iterable[Doc], path: Path, part: int = PART) -> int:
    """Write docs, user data included, all or nothing; ``read_docs`` reads them in this order.

    path: A file where it ends in ".spacy"; else a folder of files, each of ``part`` docs.
        ValueError where that is there and holds anything else.
    RETURNS: How many docs.
    """
    count = 0
    if path.suffix == ".spacy":
        docbin = DocBin(store_user_data=True)
        for doc in docs:
            docbin.add(doc)
            count += 1
        write_file(path, docbin.to_bytes())
        return count
    if path.is_dir() and any(not file.match("part-*.spacy") for file in path.iterdir()):
        raise ValueError(Errors.E117.format(path=path))
    with replacing_folder(path) as folder:
        for number, batch in enumerate(minibatch(docs, part)):
            written = DocBin(docs=batch, store_user_data=True)
            (folder / f"part-{number:06d}.spacy").write_bytes(written.to_bytes())
            count += len(batch)
        if not count:
            (folder / "part-000000.spacy").write_bytes(DocBin().to_bytes())
    return count
