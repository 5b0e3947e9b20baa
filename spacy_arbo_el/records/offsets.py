"""Offsets of mentions, compared with the words of the file.

Programs count characters, UTF-16 units (JavaScript) or bytes, a line break as one or two, and name
the last character of a mention or the one behind it. Where a file has the words of its mentions,
the first of these readings counts in which all mentions of a document are their words.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from ..base.arrays import int_array
from ..names.characters import TYPOGRAPHY, plain_characters
from ..names.folding import MARK, WORD, kind_of

CHARACTERS = "characters"
_UNITS = (CHARACTERS, "utf16", "lf", "utf16-lf", "crlf", "utf16-crlf", "bytes")
# "utf16-lf-inclusive": UTF-16 units, "\r\n" counts as one, the end is that of the last character.
READINGS = tuple(unit + end for end, unit in product(("", "-inclusive"), _UNITS))

Place = tuple[int, int]


@dataclass(frozen=True)
class Given:
    """A mention as a file gives it.

    start: The offset of its beginning.
    end: The offset of its end; None where that follows from the words.
    words: The mention as the file has it; "" where the file has only offsets.
    """

    start: int
    end: int | None
    words: str = ""


class Misplaced(ValueError):
    """A mention that is elsewhere than its file says. ``position`` is its place in the list."""

    def __init__(self, position: int, problem: str) -> None:
        super().__init__(problem)
        self.position = position


def place(
    text: str, mentions: Sequence[Given], offsets: str = ""
) -> tuple[list[Place], str]:
    """The places of a document's mentions in characters, and the reading that gave them.

    Raises Misplaced for a mention outside the text, or one with other words.

    offsets: The reading, one of ``READINGS``; "" tries all of them.
    """
    has_words = any(mention.words for mention in mentions)
    readings = (offsets,) if offsets else READINGS if has_words else (CHARACTERS,)
    places_by_reading = {
        reading: places_in(text, mentions, reading) for reading in readings[:1]
    }
    for same in _COMPARISONS if has_words else _COMPARISONS[:1]:
        for reading in readings:
            if reading not in places_by_reading:
                places_by_reading[reading] = places_in(text, mentions, reading)
            places = places_by_reading[reading]
            if all(
                _fits(text, mention, at, same) for mention, at in zip(mentions, places)
            ):
                return [at for at in places if at is not None], reading
    raise _misplaced(text, mentions, places_by_reading)


def _fits(
    text: str, mention: Given, at: Place | None, same: Callable[[str, str], bool]
) -> bool:
    return at is not None and (
        not mention.words or same(text[at[0] : at[1]], mention.words)
    )


def _misplaced(
    text: str,
    mentions: Sequence[Given],
    places_by_reading: dict[str, list[Place | None]],
) -> Misplaced:
    """The error of a mention, in the reading in which most others fit."""
    wrong = {
        reading: [
            number
            for number, (mention, at) in enumerate(zip(mentions, places))
            if not any(_fits(text, mention, at, same) for same in _COMPARISONS)
        ]
        for reading, places in places_by_reading.items()
    }
    reading = min(wrong, key=lambda reading: len(wrong[reading]))
    number = wrong[reading][0]
    mention = mentions[number]
    at = places_by_reading[reading][number]
    if at is None:
        end = (
            mention.start + len(mention.words) if mention.end is None else mention.end
        )
        return Misplaced(number, offsets_problem(mention.start, end, len(text)))
    hint = "; no other way to count fits either" if len(places_by_reading) > 1 else ""
    problem = (
        f"the mention is {mention.words!r:.80}, but the text from {at[0]} to {at[1]} is "
        f"{text[at[0] : at[1]]!r:.80}. Offsets are read as {reading}{hint}."
    )
    return Misplaced(number, problem)


def places_in(
    text: str, mentions: Sequence[Given], reading: str
) -> list[Place | None]:
    """The places of mentions in characters. None for one that a reading does not allow."""
    inclusive = int(reading.endswith("-inclusive"))
    starts = [mention.start for mention in mentions]
    ends = [
        mention.start if mention.end is None else mention.end + inclusive
        for mention in mentions
    ]
    if not reading.startswith(CHARACTERS):
        at = borders(text, reading)
        starts, ends = (
            _characters(at, unit_offsets) for unit_offsets in (starts, ends)
        )
    places: list[Place | None] = []
    for mention, start, end in zip(mentions, starts, ends):
        end = start + len(mention.words) if mention.end is None else end
        places.append((start, end) if 0 <= start < end <= len(text) else None)
    return places


def _characters(borders: np.ndarray, offsets: Sequence[int]) -> list[int]:
    """The character at each offset. -1 where none begins there.

    borders: (length of the text + 1,) int64, the offset of each character and of the end.
    """
    searched = int_array([min(offset, 1 << 60) for offset in offsets])
    border = np.searchsorted(borders, searched)
    border[border == len(borders)] = 0
    return np.where(borders[border] == searched, border, -1).tolist()


def borders(text: str, reading: str) -> np.ndarray:
    """The offset of each character and of the end: (length of the text + 1,) int64."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    widths = np.ones(len(codes), dtype=np.int64)
    if reading.startswith(("utf16", "bytes")):
        widths += codes > 0xFFFF
    if reading.startswith("bytes"):
        widths += codes > 0x7F
        widths += codes > 0x7FF
    is_feed = codes == ord("\n")
    is_return = codes == ord("\r")
    pairs = np.flatnonzero(is_return[:-1] & is_feed[1:])
    if "crlf" in reading:
        widths[is_feed] = 2
        widths[pairs + 1] = 1
    elif "lf" in reading:
        widths[pairs] = 0
    return np.concatenate([[0], np.cumsum(widths)])


def offsets_problem(start: int, end: int, length: int) -> str:
    """Message for offsets that do not fit a text's length."""
    return (
        f"a mention from {start} to {end} doesn't fit a text of {length} characters. Offsets "
        "count characters from 0, the end is exclusive and greater than the start. For others, "
        "give arbo convert --offsets."
    )


def _but_for_characters(text: str, words: str) -> bool:
    """Return whether words are those of the text in plainer characters, as "TNF-a" for "TNF-α"."""
    text = text.strip()
    words = words.strip()
    if _plain(text).split() == _plain(words).split():
        return True
    return len(text) == len(words) and all(
        char == plain_char or char.isascii() != plain_char.isascii()
        for char, plain_char in zip(text, words)
    )


def _plain(words: str) -> str:
    return TYPOGRAPHY.sub(plain_characters, words)


# Equal, but for spaces, but for characters.
_COMPARISONS = (
    str.__eq__,
    lambda text, words: text.split() == words.split(),
    _but_for_characters,
)


def is_within_word(text: str, start: int, end: int) -> bool:
    return _is_joined(text, start) or _is_joined(text, end)


def _is_joined(text: str, offset: int) -> bool:
    if not 0 < offset < len(text):
        return False
    after = kind_of(text[offset])
    return after == MARK or (after == WORD == kind_of(text[offset - 1]))


def within_words(text: str, places: Sequence[Place]) -> dict[str, int]:
    """Count mentions that are not whole words by reading their texts."""
    mentions = [Given(start, end) for start, end in places]
    is_plain = text.isascii() and "\n" not in text
    counts: dict[str, int] = {}
    for reading in READINGS:
        # All units are alike there.
        same = (
            CHARACTERS + "-inclusive" * reading.endswith("-inclusive")
            if is_plain
            else reading
        )
        if same not in counts:
            places_here = places_in(text, mentions, same)
            counts[same] = sum(
                at is None or is_within_word(text, *at) for at in places_here
            )
        counts[reading] = counts[same]
    return counts
