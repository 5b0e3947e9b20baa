"""The passages that mentions are read in: stretches of a text on a grid.

Mentions near each other have one passage, which is encoded once.
"""

import math
from collections.abc import Sequence
from functools import cache

# Characters of a passage, and from the beginning of one to that of the next.
WIDTH = 400
STEP = 200
# A passage begins and ends at white space, where there is some within so many characters.
NEAR = 40


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
