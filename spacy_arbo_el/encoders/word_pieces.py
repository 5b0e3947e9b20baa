"""Texts -> word pieces, many texts at once."""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from transformers import PreTrainedTokenizerBase

from ..base.arrays import int_array, offsets_of
from ..base.errors import Errors

START = "[START]"
END = "[END]"
TITLE = "[TITLE]"
MARKERS = (START, END, TITLE)
# Where these are among the special tokens [CLS], [SEP], [START], [END] and [TITLE].
SEP_PLACE = 1
START_PLACE = 2
END_PLACE = 3
TITLE_PLACE = 4
# A symbol beside another character, such as an emoji; ``_is_of_word`` decides exactly.
_MIXED = re.compile(r"\S[^\w\s\x00-\x7f]|[^\w\s\x00-\x7f]\S")

# Characters of the longest unknown word that is searched for symbols, and parts of a text that are
# tokenized at a time: they bound what a hostile text costs.
LONGEST_WORD = 100
PARTS_AT_ONCE = 4096


@dataclass(frozen=True)
class _InParts:
    """Joined output of a tokenizer: word pieces, and the first character and the end of each."""

    ids: list[int] = field(default_factory=list)
    offsets: list[tuple[int, int]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.ids)


class WordPieces(NamedTuple):
    """Word pieces of ``t`` texts, one after the other.

    ids: (total,) int64.
    bounds: (t + 1,) int64, text ``i`` is ``ids[bounds[i]:bounds[i + 1]]``.
    """

    ids: np.ndarray
    bounds: np.ndarray


class LocatedWordPieces(NamedTuple):
    """Word pieces with character offsets, counted through all texts.

    starts: (total,) int64, the first character of each word piece.
    ends: (total,) int64, the character after the last one.
    text_starts: (t,) int64, the first character of each text.
    """

    pieces: WordPieces
    starts: np.ndarray
    ends: np.ndarray
    text_starts: np.ndarray


class WordPieceTokenizer:
    """A Hugging Face tokenizer with the markers. It reads whole texts without special tokens.

    tokenizer: A fast tokenizer. Its truncation and padding are switched off.
    specials: (5,) int64, the ids of [CLS], [SEP] and the markers.
    unknown: The id of the word piece for what the vocabulary does not have; -1 for none.
    reads_words: Whether it reads each word by itself, as BERT does: a text that is cut between two
        words gives the same word pieces.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase):
        if not getattr(tokenizer, "is_fast", False):
            raise Errors.E203(name=getattr(tokenizer, "name_or_path", ""))
        self.tokenizer = tokenizer
        self.specials = _special_ids(tokenizer)
        unknown = getattr(tokenizer, "unk_token_id", None)
        self.unknown = -1 if unknown is None else int(unknown)
        self._backend: Any = tokenizer.backend_tokenizer
        self.reads_words = _reads_words(tokenizer)
        # A model's own tokenizer file may ask for truncation, which would lose mentions.
        self._backend.no_truncation()
        self._backend.no_padding()
        # "[START]" or "[SEP]" in a text is text, not a marker.
        self._backend.encode_special_tokens = True

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy of the tokenizer forgets how special tokens in a text are to be read.
        return WordPieceTokenizer, (self.tokenizer,)

    def read(self, texts: Sequence[str]) -> WordPieces:
        encodings = self._backend.encode_batch_fast(
            list(texts), add_special_tokens=False
        )
        for number in self._mixed(texts, encodings):
            encodings[number] = self._read_in_parts(texts[number], ())
        return _joined(encodings)

    def read_with_offsets(
        self, texts: Sequence[str], text_of: np.ndarray, borders: np.ndarray
    ) -> LocatedWordPieces:
        """The word pieces of texts with their characters.

        Where a mention begins or ends inside a word piece, the text is cut: no word piece is both
        inside and outside of a mention.

        text_of: (n,) int64, which text each mention is in.
        borders: (n, 2) int64 start and end character there.
        """
        encodings = self._backend.encode_batch(list(texts), add_special_tokens=False)
        located = _located(texts, encodings)
        cut = text_of[
            _crosses(located, located.text_starts[text_of][:, None] + borders)
        ]
        numbers = sorted({*cut.tolist(), *self._mixed(texts, encodings)})
        for number in numbers:
            within = borders[text_of == number].ravel().tolist()
            encodings[number] = self._read_in_parts(texts[number], within)
        if numbers:
            return _located(texts, encodings)
        return located

    def are_readable(
        self, ids: np.ndarray, bounds: Sequence[np.ndarray]
    ) -> np.ndarray:
        """Return whether the vocabulary knows the pieces: (n,) bool.

        It does not know what has no word piece at all, and what has unknown ones and no letter
        beside them.

        bounds: (n,) int64 arrays, two for each part of a piece: where it starts and ends in
            ``ids``, end exclusive.
        """
        pairs = list(zip(bounds[::2], bounds[1::2]))
        readable = sum(end - start for start, end in pairs) > 0
        is_unknown = ids == self.unknown
        if not is_unknown.any():
            return readable
        unknown = offsets_of(is_unknown)
        letters = offsets_of(self._have_letters(ids))
        n_unknown = sum(unknown[end] - unknown[start] for start, end in pairs)
        n_letters = sum(letters[end] - letters[start] for start, end in pairs)
        return readable & ((n_unknown == 0) | (n_letters > 0))

    def _have_letters(self, ids: np.ndarray) -> np.ndarray:
        distinct, place = np.unique(ids, return_inverse=True)
        names = self.tokenizer.convert_ids_to_tokens(distinct.tolist())
        letters = np.array(
            [any(c.isalpha() for c in name) for name in names], dtype=bool
        )
        # The names of special tokens, such as markers of other mentions, are no text.
        is_text = (distinct != self.unknown) & ~np.isin(distinct, self.specials)
        return (letters & is_text)[place]

    def _mixed(self, texts: Sequence[str], encodings: Sequence[Any]) -> list[int]:
        """Find texts with unknown words in which letters and symbols stand side by side."""
        return [
            number
            for number, (text, encoding) in enumerate(zip(texts, encodings))
            if not text.isascii()
            and self.unknown in encoding.ids
            and _MIXED.search(text)
        ]

    def _read_in_parts(self, text: str, borders: Sequence[int]) -> _InParts:
        """Read a text in parts, cut at borders of mentions, and of symbols in unknown words."""
        encoded = self._backend.encode(text, add_special_tokens=False)
        offsets = encoded.offsets
        cuts = {border for border in borders if _is_inside(border, text, offsets)}
        for id_, (start, end) in zip(encoded.ids, offsets):
            if id_ == self.unknown and end - start <= LONGEST_WORD:
                kinds = [_is_of_word(character) for character in text[start:end]]
                cuts.update(
                    start + i for i in range(1, len(kinds)) if kinds[i] != kinds[i - 1]
                )
        bounds = [0, *sorted(cuts), len(text)]
        joined = _InParts()
        for first in range(0, len(bounds) - 1, PARTS_AT_ONCE):
            block = bounds[first : first + PARTS_AT_ONCE + 1]
            strings = [text[start:end] for start, end in zip(block, block[1:])]
            encodings = self._backend.encode_batch(strings, add_special_tokens=False)
            for shift, encoding in zip(block, encodings):
                joined.ids.extend(encoding.ids)
                joined.offsets.extend(
                    (a + shift, b + shift) for a, b in encoding.offsets
                )
        return joined


def _reads_words(tokenizer: PreTrainedTokenizerBase) -> bool:
    backend: Any = tokenizer.backend_tokenizer
    steps = type(backend.normalizer).__name__, type(backend.pre_tokenizer).__name__
    added = tokenizer.get_added_vocab()
    return steps == ("BertNormalizer", "BertPreTokenizer") and not any(
        " " in token for token in added
    )


def _is_of_word(character: str) -> bool:
    """Return whether a character is a letter, digit or mark. A symbol such as an emoji is not."""
    return unicodedata.category(character)[0] in "LNM"


def _crosses(located: "LocatedWordPieces", borders: np.ndarray) -> np.ndarray:
    """(n,) bool, whether borders (n, k), those of each mention, cut a word piece."""
    if not len(located.starts):
        return np.zeros(len(borders), dtype=bool)
    piece = np.searchsorted(located.starts, borders, side="left") - 1
    return np.asarray(((piece >= 0) & (located.ends[piece] > borders)).any(axis=1))


def _is_inside(border: int, text: str, offsets: Sequence[tuple[int, int]]) -> bool:
    """Return whether a border lies within a word piece. White space at an end does not count."""
    place = bisect_left(offsets, (border, -1)) - 1
    if place < 0:
        return False
    start, end = offsets[place]
    return start < border < end and bool(
        text[start:border].strip() and text[border:end].strip()
    )


def _located(texts: Sequence[str], encodings: list[Any]) -> LocatedWordPieces:
    pieces = _joined(encodings)
    # One more than the length, so that the end of a text is not the start of the next.
    text_starts = offsets_of([len(text) + 1 for text in texts])[:-1]
    pairs = chain.from_iterable(chain.from_iterable(e.offsets for e in encodings))
    offsets = np.fromiter(pairs, np.int64, 2 * len(pieces.ids)).reshape(-1, 2)
    offsets += np.repeat(text_starts, np.diff(pieces.bounds))[:, None]
    return LocatedWordPieces(pieces, offsets[:, 0], offsets[:, 1], text_starts)


def _joined(encodings: list[Any]) -> WordPieces:
    bounds = offsets_of([len(encoding) for encoding in encodings])
    ids = chain.from_iterable(encoding.ids for encoding in encodings)
    return WordPieces(np.fromiter(ids, np.int64, bounds[-1]), bounds)


def _special_ids(tokenizer: PreTrainedTokenizerBase) -> np.ndarray:
    first = tokenizer.cls_token_id
    last = tokenizer.sep_token_id
    first = tokenizer.bos_token_id if first is None else first
    last = tokenizer.eos_token_id if last is None else last
    if first is None or last is None:
        raise Errors.E205(name=tokenizer.name_or_path)
    markers = tokenizer.convert_tokens_to_ids(list(MARKERS))
    return int_array([first, last, *markers])
