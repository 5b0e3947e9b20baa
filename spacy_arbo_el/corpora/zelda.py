"""ZELDA: JSONL with one document per line, and links to Wikipedia by title.

    {"id": "d1", "text": "Good movie, bad physics.", "index": [[16, 23], [5, 10]],
     "wikipedia_titles": ["Physics", "Film"], "wikipedia_ids": [22939, 21555729]}

The id of an entity is the title of its article, with spaces. Mentions have no types.
"""

from collections import Counter
from typing import Any, Dict, Iterator, List, Optional

from ..io import PathLike, throw
from ..kb.importers.zelda import titles_in
from .annotated import AnnotatedMention, AnnotatedText, offsets_problem
from .fields import Problem, check_integer, list_in, string
from .records import OnBad, id_in, read_each
from .spans import LABEL


def read_zelda(
    path: PathLike, counts: Optional[Counter] = None, bad: OnBad = throw
) -> Iterator[AnnotatedText]:
    """Yield the documents of a file, also those without mentions.

    A mention that ends after its text is left out: the published files have one.

    Raises ValueError with file, line and problem at the first invalid line.

    path: The file.
    counts: Counts mentions that end after their text, under "outside".
    bad: Takes the errors of invalid lines; by default they are raised.
    """
    counts = Counter() if counts is None else counts

    def parse(record: Dict[str, Any], id_: str) -> AnnotatedText:
        doc_id = id_in(record, "id", id_)
        text = string(record, "text", empty=True)
        mentions = _mentions(record, len(text))
        inside = tuple(mention for mention in mentions if mention.end <= len(text))
        counts["outside"] += len(mentions) - len(inside)
        return AnnotatedText(doc_id, text, inside)

    return read_each(path, parse, bad)


def _mentions(record: Dict[str, Any], length: int) -> List[AnnotatedMention]:
    """All mentions of a document, also those that end after its text."""
    index = list_in(record, "index")
    titles, problem = titles_in(record)
    if problem:
        raise Problem(problem)
    if len(index) != len(titles):
        raise Problem(f"'index' has {len(index)} mentions, 'wikipedia_titles' {len(titles)}.")
    mentions = []
    for position, (offsets, (title, _)) in enumerate(zip(index, titles), 1):
        if not isinstance(offsets, list) or len(offsets) != 2:
            raise Problem(f"mention {position}: 'index' must have pairs of start and end.")
        for offset in offsets:
            check_integer(offset, f"mention {position}: an offset")
        start, end = offsets
        if not 0 <= start < end:
            raise Problem(f"mention {position}: {offsets_problem(start, end, length)}")
        mentions.append(AnnotatedMention(start, end, LABEL, (title,)))
    return mentions
