"""Documents in spaCy's JSON: what ``doc.to_json`` gives, and training data of spaCy 2.

    {"text": "Ada met Bo.", "ents": [{"start": 0, "end": 3, "label": "PERSON", "kb_id": "Q7259"}]}
    ["Ada met Bo.", {"entities": [[0, 3, "PERSON"]], "links": {"0,3": {"Q7259": 1.0}}}]

The file is a list of these, one of them, or has one per line.
"""

import json
from dataclasses import replace
from typing import Any, Dict, Iterable, Iterator, List, Tuple

from ..errors import Errors
from ..formats import corpus_formats
from ..storage.lines import PathLike, check_exists, line_error, throw
from .annotated import AnnotatedMention, AnnotatedText, split_ids
from .fields import Problem, check_object, string
from .records import OnBad, id_in, made_up_id
from .spans import mentions_in


@corpus_formats("spacy-json")
def read_spacy_json(path: PathLike, bad: OnBad = throw) -> Iterator[AnnotatedText]:
    """Yield the documents of a file.

    Raises ValueError with file, problem and the number of the document, or its line where there is
    one per line.

    path: The file.
    bad: Takes the errors; by default they are raised.
    """
    seen: Dict[str, int] = {}
    for number, value in _values(path, bad):
        try:
            text = _annotated_text(value, made_up_id(path, number))
            if text.id in seen:
                raise Problem(f"the document id {text.id!r} was used before, in {seen[text.id]}.")
        except Problem as problem:
            bad(line_error(path, number, str(problem)))
            continue
        seen[text.id] = number
        yield text


def _values(path: PathLike, bad: OnBad) -> Iterable[Tuple[int, Any]]:
    """Each document with its number from 1: its line, or its place in the list."""
    try:
        content = check_exists(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(Errors.E788.format(path=path, problem=f"not UTF-8: {error}")) from None
    try:
        whole = json.loads(content)
    except (ValueError, RecursionError):
        return _lines(path, content, bad)
    is_pair = isinstance(whole, list) and len(whole) == 2 and isinstance(whole[0], str)
    return enumerate([whole] if is_pair or not isinstance(whole, list) else whole, 1)


def _lines(path: PathLike, content: str, bad: OnBad) -> Iterator[Tuple[int, Any]]:
    for number, line in enumerate(content.split("\n"), 1):
        if line.strip():
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as error:
                bad(line_error(path, number, f"no valid JSON: {error}."))
                continue
            yield number, value


def _annotated_text(value: Any, id_: str) -> AnnotatedText:
    links: Any = None
    if isinstance(value, list) and len(value) == 2:
        value, links = _of_pair(value)
    check_object(value)
    text = string(value, "text", empty=True)
    key = "ents" if "ents" in value else "entities"
    mentions = mentions_in(value.get(key), key, text)
    if links is not None:
        mentions = tuple(_with_links(mentions, _links(links)))
    return AnnotatedText(id_in(value, "id", id_), text, mentions)


def _of_pair(value: List[Any]) -> Tuple[Dict[str, Any], Any]:
    """The document and the links of a text with its annotations, as spaCy 2 had them."""
    text, annotations = value
    check_object(annotations)
    return {"text": text, "entities": annotations.get("entities")}, annotations.get("links")


def _links(links: Any) -> Dict[Tuple[int, int], List[str]]:
    """The ids by offsets of ``{"0,3": {"Q7259": 1.0, "Q1": 0.0}}``."""
    check_object(links)
    found: Dict[Tuple[int, int], List[str]] = {}
    for key, ids in links.items():
        check_object(ids)
        try:
            start, end = (int(part) for part in key.strip("()[] ").split(","))
        except ValueError:
            raise Problem(f"{key!r:.40} in 'links' must be start and end, as in '0,3'.") from None
        found[start, end] = [kb_id for kb_id, weight in ids.items() if weight]
    return found


def _with_links(
    mentions: Iterable[AnnotatedMention], links: Dict[Tuple[int, int], List[str]]
) -> Iterator[AnnotatedMention]:
    for mention in mentions:
        ids = links.get((mention.start, mention.end))
        yield mention if ids is None else replace(mention, kb_ids=split_ids("|".join(ids)))
