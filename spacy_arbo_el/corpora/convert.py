"""Conversion of annotated text to spaCy documents, with exact offsets of every mention."""

import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Container, Dict, Iterable, Iterator, List, Mapping, Optional, Set, Tuple

from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span

from ..errors import Errors, Warnings
from ..formats import corpus_formats
from ..storage.files import replacing
from ..storage.lines import PathLike, throw

# Importing a reader registers its format.
from . import doccano, jsonl, label_studio, prodigy, pubtator, spacy_json, table  # noqa: F401
from .annotated import AnnotatedMention, AnnotatedText
from .concepts import normalise_ids
from .records import OnBad

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

# Mentions that end one character before the end of a word.
INCLUSIVE = "inclusive"

# Formats whose readers count what they leave out.
COUNTING = ("pubtator", "prodigy")


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
    bad: OnBad = throw,
) -> Dict[str, int]:
    """Convert a corpus to ``.spacy`` and count its mentions.

    If the conversion fails, the previous file stays. Raises ValueError for an unknown format, for a
    file without documents and for an invalid line (with file and line).

    input_path: The corpus.
    output_path: The ``.spacy`` file.
    format: A name in ``corpus_formats``.
    nlp: Only its tokenizer and its vocabulary are used.
    labels: Keep only mentions with these labels; None keeps all.
    concept_map: From equivalent id to concept, see ``normalise_ids``.
    exclude_ids: Ids of documents to leave out, such as those of a test set.
    spans_key: See ``make_doc``.
    bad: Takes the errors of invalid lines, which are then left out; by default they are raised.
    RETURNS: The numbers of these:
        docs: documents.
        mentions: mentions.
        composite: mentions with several concepts.
        nil: mentions without a concept.
        retokenised: mentions that begin or end inside a token.
        overlapping: mentions left out of ``doc.ents``.
        duplicates: documents left out because their id came before.
        excluded: documents left out by ``exclude_ids``.
    """
    counts: Counter = Counter(dict.fromkeys(COUNTED, 0))
    texts = select(
        read_corpus(input_path, format, counts, bad),
        labels=labels,
        concept_map=concept_map,
        exclude_ids=exclude_ids,
        counts=counts,
    )
    write_docbin(
        (make_doc(nlp, text, spans_key=spans_key, counts=counts) for text in texts), output_path
    )
    inclusive = counts.pop(INCLUSIVE, 0)
    if inclusive > counts["mentions"] / 2:
        message = Warnings.W103.format(path=input_path, count=inclusive, all=counts["mentions"])
        warnings.warn(message, stacklevel=2)
    if counts["overlapping"] and spans_key is None:
        message = Warnings.W101.format(
            path=input_path, count=counts["overlapping"], key=MENTIONS_KEY
        )
        warnings.warn(message, stacklevel=2)
    return dict(counts)


def read_corpus(
    path: PathLike, format: str, counts: Optional[Counter] = None, bad: OnBad = throw
) -> Iterator[AnnotatedText]:
    """Read a corpus.

    Raises ValueError for an unknown format.

    path: The corpus.
    format: A name in ``corpus_formats``.
    counts: Counts what is left out, under "duplicates" and "excluded".
    bad: Takes the errors of invalid lines; by default they are raised.
    """
    if format not in corpus_formats:
        formats = ", ".join(map(repr, sorted(corpus_formats.get_all())))
        raise ValueError(Errors.E112.format(format=format, formats=formats))
    read = corpus_formats.get(format)
    return read(path, bad, counts) if format in COUNTING else read(path, bad)


def select(
    texts: Iterable[AnnotatedText],
    *,
    labels: Optional[Iterable[str]] = None,
    concept_map: Optional[Mapping[str, str]] = None,
    exclude_ids: Optional[Iterable[str]] = None,
    counts: Optional[Counter] = None,
) -> Iterator[AnnotatedText]:
    """Select documents by id and mentions by label, and map ids to concepts."""
    # A string is one label, not a sequence of its characters.
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
    """Make a Doc with the same text and every mention at its exact offsets.

    A span of spaCy begins and ends at token boundaries. A mention can begin or end inside a token:
    "non-small-cell" may be one token with a mention inside. Such tokens are split at the boundaries
    of the mention. A space at the beginning or end of a mention becomes a token. No mention is
    moved or dropped, and ``doc.text == text.text``.

    ``span.kb_id_`` is the ids joined by ``|``, or "NIL". ``span.id_`` is the cluster of a new
    entity. ``doc.user_data["doc_id"]`` is the id of the document. A ``.spacy`` file stores all
    three. Raises ValueError if the tokenizer changes the text, since offsets are then meaningless.

    nlp: Only its tokenizer and its vocabulary are used.
    text: The document.
    spans_key: All mentions go to ``doc.spans[spans_key]`` and ``doc.ents`` stays empty. With None,
        all mentions go to ``doc.spans["mentions"]``, and those that don't overlap go to
        ``doc.ents`` too, the longest first.
    counts: Counts mentions, see ``convert_corpus``.
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
    counts[INCLUSIVE] += sum(
        m.end not in borders and {m.start, m.end + 1} <= borders for m in text.mentions
    )
    counts["overlapping"] += len(spans) - len(entities)
    return doc


def _token_borders(nlp: Language, text: AnnotatedText) -> List[Tuple[int, int]]:
    # Not nlp.make_doc: it refuses texts longer than nlp.max_length, a limit for parsers.
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
    # Where the space after a token begins. A space that is a token stays a token.
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
    assert span is not None, "mentions begin and end at token boundaries"
    return span


def longest_first(spans: Iterable[Span]) -> List[Span]:
    """Select spans that don't overlap, the longest first. They are returned in text order."""
    taken: Set[int] = set()
    chosen = []
    for span in sorted(spans, key=lambda span: (span.start - span.end, span.start)):
        if taken.isdisjoint(range(span.start, span.end)):
            taken.update(range(span.start, span.end))
            chosen.append(span)
    return sorted(chosen, key=lambda span: span.start)


def write_docbin(docs: Iterable[Doc], path: PathLike) -> int:
    """Write documents to a ``.spacy`` file.

    If writing fails, the previous file stays. Raises ValueError if there are no documents, since an
    empty corpus is a mistake.

    RETURNS: The number of documents.
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
