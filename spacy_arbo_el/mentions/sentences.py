"""The sentences of a text, and those that a mention is read in.

Mentions near each other have the same sentences, each of which is encoded once.
"""

import re
from collections.abc import Sequence

import numpy as np
from spacy.tokens import Span

from .getters import offsets_of_span

# Text that is so near a mention, in characters, is its context.
NEAR = 200
# A sentence that goes on for longer is cut, between words where there are any.
LONGEST = 400
# Characters of a sentence that is shown, on either side of its mention, at most.
MAX_SENTENCE = 300
# Where a sentence ends in a text without sentence boundaries. A line that goes on in small letters
# was broken, and is no end.
_END = re.compile(r"(?:[.!?…]\s|\n)[^\S\n]*(?![a-z\s])")

# Sentences in one line, with how much each counts. That sums to 1.
WeightedSentences = tuple[tuple[str, float], ...]


def contexts_around(
    text: str, offsets: Sequence[tuple[int, int]]
) -> list[WeightedSentences]:
    """The sentences around each mention.

    Those that it is in count as much as all the text near it, which they are part of.

    offsets: Start and end character of each mention.
    """
    starts, ends = np.array(sentence_bounds(text), dtype=np.int64).reshape(-1, 2).T
    lines = [" ".join(text[start:end].split()) for start, end in zip(starts, ends)]
    contexts = []
    for start, end in offsets:
        nearest = (start + end) // 2 - NEAR, (start + end) // 2 + NEAR
        first = np.searchsorted(ends, min(start, nearest[0]), side="right")
        last = np.searchsorted(starts, max(end, nearest[1]))
        begins, stops = starts[first:last], ends[first:last]
        near = np.maximum(
            np.minimum(stops, nearest[1]) - np.maximum(begins, nearest[0]), 0
        )
        has_mention = (begins < end) & (start < stops)
        shares = near / max(near.sum(), 1) + has_mention / max(has_mention.sum(), 1)
        shares /= max(shares.sum(), 1e-9)
        contexts.append(tuple(zip(lines[first:last], shares.tolist())))
    return contexts


def sentence_bounds(text: str) -> list[tuple[int, int]]:
    """The start and end of each sentence by its signs, without those that are blank."""
    bounds = []
    start = 0
    for end in [*[match.end() for match in _END.finditer(text)], len(text)]:
        while start < end:
            cut = end
            if end - start > LONGEST:
                blank = text.rfind(" ", start + LONGEST // 2, start + LONGEST)
                cut = blank + 1 if blank >= 0 else start + LONGEST
            if text[start:cut].strip():
                bounds.append((start, cut))
            start = cut
    return bounds


def sentence_around(text: str, start: int, end: int) -> tuple[int, int]:
    """The start and end of a mention's sentence by its signs, or of what is near in it."""
    # With the first letter of the mention and the last, which may say that it goes on, or ends.
    ends = [
        match.end()
        for match in _END.finditer(text, max(start - MAX_SENTENCE, 0), start + 1)
    ]
    furthest_start = max(start - MAX_SENTENCE - 1, 0)
    first = max((place for place in ends if place <= start), default=furthest_start)
    furthest = end + MAX_SENTENCE + 1
    sign = _END.search(text, max(end - 1, 0), furthest)
    if sign is None:
        return first, min(furthest, len(text))
    return first, end + len(text[end : sign.start() + 1].rstrip())


def sentence_of(span: Span, text: str) -> tuple[str, str, str]:
    """The sentence of a mention: the text before it, the mention, and the text behind it.

    A sentence that goes on for long is cut between words.

    text: That of the document.
    """
    start, end = offsets_of_span(span)
    if span.doc.has_annotation("SENT_START"):
        sentences = list(span.sents)  # type: ignore[attr-defined]
        first = sentences[0].start_char
        last = sentences[-1].end_char
    else:
        first, last = sentence_around(text, start, end)
    before = text[first:start]
    after = text[end:last]
    if len(before) > MAX_SENTENCE:
        before = "… " + before[-MAX_SENTENCE:].partition(" ")[2]
    if len(after) > MAX_SENTENCE:
        after = after[:MAX_SENTENCE].rpartition(" ")[0] + " …"
    return before, text[start:end], after
