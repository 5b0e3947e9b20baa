"""The format of this project: JSONL, one document per line.

    {"id": "d1", "text": "Ada met Lovelace.", "mentions": [
        {"start": 0, "end": 3, "label": "PERSON", "kb_id": "ada_l"},
        {"start": 8, "end": 16, "label": "PERSON", "kb_id": null, "cluster": "new-1"}]}

A document is on one line. An id is made up where it is missing. Offsets count characters; the end
is exclusive. ``kb_id`` is the id of an entity. The ids of a composite mention are joined by ``|``.
A NIL mention has null or "NIL". ``cluster`` is optional and names a new entity. So is ``label``.
Other keys are ignored.
"""

from functools import partial
from typing import Iterator

from ..formats import corpus_formats
from ..storage.lines import OnBad, PathLike, throw
from .annotated import AnnotatedText
from .json_documents import Source, read_each, text_of_record


@corpus_formats("jsonl")
def read_jsonl(path: PathLike, bad: OnBad = throw) -> Iterator[AnnotatedText]:
    """Yield the documents of a file. The parameters are those of ``Source``."""
    return read_each(Source(path, bad), partial(text_of_record, strict=True))
