"""Convert annotated text to Docs with exact offsets; copy Docs."""

from collections import Counter
from collections.abc import Callable, Iterable

from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import filter_spans

from ..base.errors import Errors, Warnings
from ..mentions.getters import same_tokens
from ..records.lines import PathLike
from .annotated import AnnotatedMention, AnnotatedText

MENTIONS_KEY = "mentions"


def to_doc(
    nlp: Language, text: AnnotatedText, *, counts: Counter | None = None
) -> Doc:
    """Make a Doc with every mention at its exact offsets.

    A span of spaCy begins and ends at token boundaries. A mention can begin or end inside a token:
    "non-small-cell" may be one token with a mention inside. Such tokens are split at the boundaries
    of the mention. A space at the beginning or end of a mention becomes a token. No mention is
    moved or dropped, and ``doc.text == text.text``.

    ``span.kb_id_`` is the ids joined by ``|``, or "NIL". ``span.id_`` is the cluster of a new
    entity. ``doc.user_data["doc_id"]`` is the id of the document. A ``.spacy`` file stores all
    three. All mentions go to ``doc.spans["mentions"]``, and those that don't overlap go to
    ``doc.ents`` too, the longest first. Raises ValueError if the tokenizer changes the text, since
    offsets are then meaningless.

    nlp: Only its tokenizer and its vocabulary are used.
    counts: Counts mentions, see ``convert_corpus``.
    """
    # Not nlp.make_doc: it refuses texts longer than nlp.max_length, a limit for parsers.
    tokenized = nlp.tokenizer(text.text)
    if tokenized.text != text.text:
        raise Errors.E113(doc=text.id)
    tokens = [(token.idx, token.idx + len(token)) for token in tokenized]
    doc = _doc_with_borders(nlp, text.text, tokens, text.mentions)
    spans = [_span(doc, mention) for mention in text.mentions]
    doc.user_data["doc_id"] = text.id
    doc.spans[MENTIONS_KEY] = spans
    entities = filter_spans(spans)
    doc.set_ents(entities)
    if counts is not None:
        _count(counts, text.mentions, {border for token in tokens for border in token})
        counts["overlapping"] += len(spans) - len(entities)
    return doc


def warn_of_overlaps(path: PathLike, counts: Counter) -> None:
    """Warn of the mentions of a file that ``to_doc`` left out of ``doc.ents``."""
    if counts["overlapping"]:
        about = {"path": path, "count": counts["overlapping"], "key": MENTIONS_KEY}
        Warnings.W101.warn(**about)


def _count(
    counts: Counter, mentions: Iterable[AnnotatedMention], borders: set[int]
) -> None:
    counts["docs"] += 1
    for m in mentions:
        counts["mentions"] += 1
        counts["composite"] += len(m.kb_ids) > 1
        counts["nil"] += not m.kb_ids
        counts["retokenised"] += not {m.start, m.end} <= borders


def _doc_with_borders(
    nlp: Language,
    text: str,
    tokens: list[tuple[int, int]],
    mentions: Iterable[AnnotatedMention],
) -> Doc:
    starts = {mention.start for mention in mentions}
    ends = {mention.end for mention in mentions}
    inside = {border for token in tokens for border in token}
    # Where the space after a token begins. A space that is a token stays a token.
    gaps = {end for _, end in tokens} - {start for start, _ in tokens}
    borders = sorted(inside | starts | ends | ({0, len(text)} if text else set()))
    words: list[str] = []
    spaces: list[bool] = []
    for start, end in zip(borders, borders[1:]):
        piece = text[start:end]
        if piece == " " and start in gaps and start not in starts and end not in ends:
            spaces[-1] = True
        else:
            words.append(piece)
            spaces.append(False)
    return Doc(nlp.vocab, words=words, spaces=spaces)


def _span(doc: Doc, mention: AnnotatedMention) -> Span:
    place = mention.start, mention.end, mention.label, mention.kb_id
    span = doc.char_span(*place, span_id=mention.cluster)
    assert span is not None, "mentions begin and end at token boundaries"
    return span


def unlinked(doc: Doc, *, mentions: bool = True) -> Doc:
    """A copy with the same tokens, but without links. mentions: Whether it has the same ones."""
    return copied(doc, _unlinked_span if mentions else None)


def unlinked_examples(docs: Iterable[Doc]) -> list[Example]:
    """Examples whose references are these documents, and whose predictions have no links."""
    return [Example(unlinked(doc), doc) for doc in docs]


def copied(doc: Doc, change: Callable[[Doc, Span], Span] | None) -> Doc:
    """A copy with the same tokens and ``doc_id``.

    change: Makes a span of the copy from the copy and a span of the Doc, one of ``doc.ents`` or
        ``doc.spans``. None copies no spans.
    """
    copy = same_tokens(doc, doc.vocab)
    if change is not None:
        copy.set_ents([change(copy, span) for span in doc.ents])
        for key, group in doc.spans.items():
            copy.spans[key] = [change(copy, span) for span in group]
    return copy


def _unlinked_span(doc: Doc, span: Span) -> Span:
    return Span(doc, span.start, span.end, label=span.label)
