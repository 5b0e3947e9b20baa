"""The sentences of a text, and those that a mention is read in.

Mentions near each other have the same sentences, each of which is encoded once.
"""

import re
from collections.abc import Iterator, Sequence

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
_END = re.compile(r"(?:[.!?…]\s|\n)\s*(?![a-z\s])")

# Sentences in one line, with how much each counts. That sums to 1.
WeightedSentences = tuple[tuple[str, float], ...]


def contexts_around(text: str, offsets: Sequence[tuple[int, int]]) -> list[WeightedSentences]:
    """The sentences around each mention.

    Those that it is in count as much as all the text near it, which they are part of.

    offsets: Start and end character of each mention.
    """
    starts, ends = np.array(list(sentence_bounds(text)), dtype=np.int64).reshape(-1, 2).T
    lines = [" ".join(text[start:end].split()) for start, end in zip(starts, ends)]
    contexts = []
    for start, end in offsets:
        nearest = (start + end) // 2 - NEAR, (start + end) // 2 + NEAR
        first = np.searchsorted(ends, min(start, nearest[0]), side="right")
        last = np.searchsorted(starts, max(end, nearest[1]))
        sentences = slice(int(first), int(last))
        near = _shared(starts[sentences], ends[sentences], *nearest)
        in_mention = _shared(starts[sentences], ends[sentences], start, end) > 0
        shares = near / max(near.sum(), 1) + in_mention / max(in_mention.sum(), 1)
        shares /= max(shares.sum(), 1e-9)
        contexts.append(tuple(zip(lines[sentences], shares.tolist())))
    return contexts


def _shared(starts: np.ndarray, ends: np.ndarray, first: int, last: int) -> np.ndarray:
    """How many characters stretches share with another one."""
    return np.maximum(np.minimum(ends, last) - np.maximum(starts, first), 0)


def sentence_bounds(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each sentence by its signs, without those that are blank."""
    start = 0
    for end in (*(match.end() for match in _END.finditer(text)), len(text)):
        while end - start > LONGEST:
            blank = text.rfind(" ", start + LONGEST // 2, start + LONGEST)
            cut = blank + 1 if blank >= 0 else start + LONGEST
            yield start, cut
            start = cut
        if text[start:end].strip():
            yield start, end
        start = end


def sentence_around(text: str, start: int, end: int) -> tuple[int, int]:
    """The start and end of a mention's sentence by its signs, or of what is near in it."""
    ends = _END.finditer(text, max(start - MAX_SENTENCE, 0), start)
    first = max((match.end() for match in ends), default=max(start - MAX_SENTENCE - 1, 0))
    furthest = end + MAX_SENTENCE + 1
    sign = _END.search(text, end, furthest)
    return first, sign.start() + 1 if sign else min(furthest, len(text))


def sentence_of(span: Span) -> tuple[str, str, str]:
    """The sentence of a mention: the text before it, the mention, and the text behind it.

    A sentence that goes on for long is cut between words.
    """
    text = span.doc.text
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
