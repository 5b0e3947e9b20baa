"""The passages that mentions are read in, stretches of a text on a grid, and their sentences.

Mentions near each other have one passage, which is encoded once.
"""

import math
import re
from collections.abc import Sequence
from functools import cache

from spacy.tokens import Span

from .getters import offsets_of_span

# Characters of a passage, and from the beginning of one to that of the next.
WIDTH = 400
STEP = 200
# A passage begins and ends at white space, where there is some within so many characters.
NEAR = 40
# Characters of a sentence on either side of its mention, at most.
MAX_SENTENCE = 300
# Where a sentence ends in a text without sentence boundaries. A line that goes on in small letters
# was broken, and is no end.
_END = re.compile(r"(?:[.!?…]\s|\n)\s*(?![a-z\s])")


def passages_around(text: str, offsets: Sequence[tuple[int, int]]) -> list[str]:
    """The passage of each mention: the one whose middle is nearest, and all of the mention.

    A text of at most ``WIDTH`` characters is one passage.

    offsets: Start and end character of each mention.
    """
    last = math.ceil(max(len(text) - WIDTH, 0) / STEP)

    @cache
    def bounds(number: int) -> tuple[int, int]:
        start = number * STEP
        return _at_white_space(text, start), _at_white_space(text, start + WIDTH)

    passages = []
    for start, end in offsets:
        nearest = round(((start + end) / 2 - WIDTH / 2) / STEP)
        first, after = bounds(min(max(nearest, 0), last))
        passages.append(text[min(first, start) : max(after, end)])
    return passages


def _at_white_space(text: str, place: int) -> int:
    """The place after the white space that follows, or the same place where there is none near."""
    if not 0 < place < len(text):
        return place
    for near in range(place, min(place + NEAR, len(text))):
        if text[near - 1].isspace():
            return near
    return place


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
