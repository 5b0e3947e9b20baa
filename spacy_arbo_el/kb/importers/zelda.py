"""Wikipedia articles that ZELDA corpora link to: titles without descriptions."""

from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

from ...errors import Errors
from ...io import PathLike, check_exists, is_storable, line_error, read_records
from ..entity import NIL, Entity
from .articles import article_title
from .report import ImportReport

TITLES, NUMBERS = "wikipedia_titles", "wikipedia_ids"
SUFFIX = ".jsonl"


def read_zelda_titles(path: PathLike, report: Optional[ImportReport] = None) -> Iterator[Entity]:
    """Yield the articles that the mentions of ZELDA files link to, in order, each once.

    The id is the title, with spaces, and the number of the article leads to it.

    Raises ValueError with file, line and problem at an invalid line, and for a folder without
    files.

    path: A file, or a folder whose ``.jsonl`` files are read in the order of their names.
    report: Gets the numbers of the articles.
    """
    report = report or ImportReport()
    seen = set()
    for file in _files(path):
        for number, record in read_records(file):
            titles, problem = titles_in(record)
            if problem:
                raise line_error(file, number, problem)
            for title, page in titles:
                report.redirect([str(page)] if page is not None else [], title)
                if title not in seen:
                    seen.add(title)
                    yield Entity(title)


def _files(path: PathLike) -> List[Path]:
    path = check_exists(path)
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.iterdir() if file.suffix == SUFFIX)
    if not files:
        raise FileNotFoundError(
            Errors.E101.format(path=path / f"*{SUFFIX}", hint="The folder has no such file.")
        )
    return files


def titles_in(record: Dict[str, Any]) -> Tuple[List[Tuple[str, Optional[int]]], str]:
    """(title, number of the article) for each mention of a document, and what is wrong with it.

    The number is None where the file has none. What is wrong is "" where all is right.
    """
    titles, numbers = record.get(TITLES), record.get(NUMBERS)
    if not isinstance(titles, list):
        return [], f"{TITLES!r} must be a list of strings."
    if numbers is None:
        numbers = [None] * len(titles)
    if not isinstance(numbers, list) or len(numbers) != len(titles):
        return [], f"{NUMBERS!r} must be a list as long as {TITLES!r}."
    pairs = []
    for position, (title, number) in enumerate(zip(titles, numbers), 1):
        title = article_title(title) if is_storable(title) else ""
        if title in ("", NIL, "-1") or "|" in title:
            return [], f"mention {position}: {title!r} can't be the title of an article."
        if number is not None and (not isinstance(number, int) or isinstance(number, bool)):
            return [], f"mention {position}: the number of the article must be a whole number."
        pairs.append((title, number))
    return pairs, ""
