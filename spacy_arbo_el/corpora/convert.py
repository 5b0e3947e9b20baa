"""From annotated text to spaCy's documents, with every mention exactly where it was."""

import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Container, Dict, Iterable, Iterator, List, Mapping, Optional, Set, Tuple

from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span

from ..errors import Errors, Warnings
from ..io import replacing
from .annotated import AnnotatedMention, AnnotatedText
from .concepts import normalise_ids
from .files import PathLike
from .jsonl import read_jsonl
from .medmentions import read_medmentions
from .pubtator import read_pubtator

MENTIONS_KEY = "mentions"
COUNTED = (
    "docs",
    "mentions",
    "composite",
    "nil",
    "retokenised",
    "overlapping",
    "duplicates",
    "excluded",
)


def convert_corpus(
    input_path: PathLike,
    output_path: PathLike,
    *,
    format: str,
    nlp: Language,
    labels: Optional[Iterable[str]] = None,
    concept_map: Optional[Mapping[str, str]] = None,
    exclude_ids: Optional[Iterable[str]] = None,
    spans_key: Optional[str] = None,
) -> Dict[str, int]:
    """Convert a corpus to ``.spacy``, all or nothing, and count what was met.

    format: "pubtator", "jsonl" or "medmentions".
    nlp: Its tokenizer and vocabulary are used, nothing else.
    labels: Keep only mentions with these labels; all by default.
    concept_map: From equivalent id to concept (``read_concept_map``), see ``normalise_ids``.
    exclude_ids: Ids of documents to leave out, such as abstracts never to train on.
    spans_key: See ``make_doc``.

    RETURNS: docs, mentions, composite (mentions with several concepts), nil, retokenised (mentions
        whose borders cut a token), overlapping (mentions left out of ``doc.ents``), duplicates
        (documents whose id came before) and excluded (documents left out by id).
    Raises ValueError for an unknown format, a file without documents, or a broken line (with file
    and line).
    """
    counts: Counter = Counter(dict.fromkeys(COUNTED, 0))
    texts = select(
        read_corpus(input_path, format, counts),
        labels=labels,
        concept_map=concept_map,
        exclude_ids=exclude_ids,
        counts=counts,
    )
    write_docbin(
        (make_doc(nlp, text, spans_key=spans_key, counts=counts) for text in texts), output_path
    )
    if counts["overlapping"] and spans_key is None:
        message = Warnings.W101.format(
            path=input_path, count=counts["overlapping"], key=MENTIONS_KEY
        )
        warnings.warn(message, stacklevel=2)
    return dict(counts)


def read_corpus(
    path: PathLike, format: str, counts: Optional[Counter] = None
) -> Iterator[AnnotatedText]:
    """Read a corpus in one of the formats. Raises ValueError for a format there isn't."""
    if format == "pubtator":
        return read_pubtator(path, counts)
    readers = {"jsonl": read_jsonl, "medmentions": read_medmentions}
    if format not in readers:
        formats = ", ".join(map(repr, ("pubtator", *readers)))
        raise ValueError(Errors.E112.format(format=format, formats=formats))
    return readers[format](path)


def select(
    texts: Iterable[AnnotatedText],
    *,
    labels: Optional[Iterable[str]] = None,
    concept_map: Optional[Mapping[str, str]] = None,
    exclude_ids: Optional[Iterable[str]] = None,
    counts: Optional[Counter] = None,
) -> Iterator[AnnotatedText]:
    """Leave out documents by id and mentions by label, and bring ids to their concepts."""
    # One label is easily given as a string, and its letters are never what was meant.
    labels = [labels] if isinstance(labels, str) else labels
    kept = None if labels is None else frozenset(labels)
    excluded = frozenset(exclude_ids or ())
    for text in texts:
        if text.id in excluded:
            if counts is not None:
                counts["excluded"] += 1
            continue
        yield replace(text, mentions=tuple(_selected(text.mentions, kept, concept_map)))


def _selected(
    mentions: Iterable[AnnotatedMention],
    labels: Optional[Container[str]],
    concept_map: Optional[Mapping[str, str]],
) -> Iterator[AnnotatedMention]:
    for mention in mentions:
        if labels is None or mention.label in labels:
            yield replace(mention, kb_ids=normalise_ids(mention.kb_ids, concept_map))


def make_doc(
    nlp: Language,
    text: AnnotatedText,
    *,
    spans_key: Optional[str] = None,
    counts: Optional[Counter] = None,
) -> Doc:
    """A document with the text exactly as it is and every mention at its exact offsets.

    A span of spaCy begins and ends with a token, a mention where it likes: "non-small-cell" may be
    one token with a mention inside. So the document is built from the tokenizer's tokens, cut once
    more wherever a mention begins or ends inside one; a blank that a mention begins or ends with
    becomes a token of its own. No mention is moved or dropped, and ``doc.text == text.text``.

    spans_key: By default ``doc.spans["mentions"]`` has all mentions and ``doc.ents`` as many as it
        can hold, which is those that don't overlap, longest first. With a key, all mentions go to
        ``doc.spans[spans_key]`` and ``doc.ents`` stays empty.
    counts: Where to count; see ``convert_corpus``.

    ``span.kb_id_`` has the ids joined by ``|``, or "NIL"; ``span.id_`` the cluster of a new entity;
    ``doc.user_data["doc_id"]`` the document's id. All of it survives in a ``.spacy`` file.
    Raises ValueError where the tokenizer changes the text, so that offsets mean nothing.
    """
    counts = Counter() if counts is None else counts
    tokens = _token_borders(nlp, text)
    doc = _doc_with_borders(nlp, text.text, tokens, text.mentions)
    spans = [_span(doc, mention) for mention in text.mentions]
    doc.user_data["doc_id"] = text.id
    doc.spans[spans_key or MENTIONS_KEY] = spans
    entities = longest_first(spans)
    if spans_key is None:
        doc.set_ents(entities)
    borders = {border for token in tokens for border in token}
    counts["docs"] += 1
    counts["mentions"] += len(spans)
    counts["composite"] += sum(len(mention.kb_ids) > 1 for mention in text.mentions)
    counts["nil"] += sum(not mention.kb_ids for mention in text.mentions)
    counts["retokenised"] += sum(not {m.start, m.end} <= borders for m in text.mentions)
    counts["overlapping"] += len(spans) - len(entities)
    return doc


def _token_borders(nlp: Language, text: AnnotatedText) -> List[Tuple[int, int]]:
    # The tokenizer alone: nlp.make_doc refuses texts over nlp.max_length, which is for parsers.
    tokenized = nlp.tokenizer(text.text)
    if tokenized.text != text.text:
        raise ValueError(Errors.E113.format(doc=text.id))
    return [(token.idx, token.idx + len(token)) for token in tokenized]


def _doc_with_borders(
    nlp: Language,
    text: str,
    tokens: List[Tuple[int, int]],
    mentions: Iterable[AnnotatedMention],
) -> Doc:
    starts = {mention.start for mention in mentions}
    ends = {mention.end for mention in mentions}
    inside = {border for token in tokens for border in token}
    # Where the blank after a token begins; a blank that is a token itself stays one.
    gaps = {end for _, end in tokens} - {start for start, _ in tokens}
    borders = sorted(inside | starts | ends | ({0, len(text)} if text else set()))
    words: List[str] = []
    spaces: List[bool] = []
    for start, end in zip(borders, borders[1:]):
        piece = text[start:end]
        if piece == " " and start in gaps and start not in starts and end not in ends:
            spaces[-1] = True
        else:
            words.append(piece)
            spaces.append(False)
    return Doc(nlp.vocab, words=words, spaces=spaces)


def _span(doc: Doc, mention: AnnotatedMention) -> Span:
    span = doc.char_span(
        mention.start,
        mention.end,
        label=mention.label,
        kb_id=mention.kb_id,
        span_id=mention.cluster,
    )
    assert span is not None, "every border of a mention is one of a token"
    return span


def longest_first(spans: Iterable[Span]) -> List[Span]:
    """The spans that don't overlap, chosen longest first, in the order of the text."""
    taken: Set[int] = set()
    chosen = []
    for span in sorted(spans, key=lambda span: (span.start - span.end, span.start)):
        if taken.isdisjoint(range(span.start, span.end)):
            taken.update(range(span.start, span.end))
            chosen.append(span)
    return sorted(chosen, key=lambda span: span.start)


def write_docbin(docs: Iterable[Doc], path: PathLike) -> int:
    """Write documents to a ``.spacy`` file, all or nothing; returns how many.

    Raises ValueError where there are none: an empty corpus is never what was meant.
    """
    docbin = DocBin(store_user_data=True)
    for doc in docs:
        docbin.add(doc)
    if not len(docbin):
        raise ValueError(Errors.E114.format(path=Path(path)))
    data = docbin.to_bytes()
    with replacing(path) as file:
        file.write(data)
    return len(docbin)
