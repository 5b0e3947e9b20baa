"""Texts -> word pieces, many texts at once."""

from itertools import chain
from typing import Any, List, NamedTuple, Sequence, Tuple

import numpy as np
from transformers import PreTrainedTokenizerBase

from ..arrays import offsets_of
from ..errors import Errors

START, END, TITLE = "[START]", "[END]", "[TITLE]"
MARKERS = (START, END, TITLE)


class WordPieces(NamedTuple):
    """The word pieces of ``t`` texts, one text after the other.

    ids: (total,) int64.
    bounds: (t + 1,) int64, text ``i`` is ``ids[bounds[i]:bounds[i + 1]]``.
    """

    ids: np.ndarray
    bounds: np.ndarray


class LocatedWordPieces(NamedTuple):
    """Word pieces with the characters they stand for, counted on from text to text.

    pieces: The word pieces.
    starts: (total,) int64, the first character of each word piece.
    ends: (total,) int64, the character after the last one.
    text_starts: (t,) int64, the first character of each text.
    """

    pieces: WordPieces
    starts: np.ndarray
    ends: np.ndarray
    text_starts: np.ndarray


class WordPieceTokenizer:
    """A Hugging Face tokenizer that has the markers, for whole texts without special tokens.

    tokenizer: A fast tokenizer. Its truncation and padding are switched off.
    specials: (5,) int64, the ids of [CLS], [SEP] and the markers.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase):
        if not getattr(tokenizer, "is_fast", False):
            raise ValueError(Errors.E203.format(name=getattr(tokenizer, "name_or_path", "")))
        self.tokenizer = tokenizer
        self.specials = _special_ids(tokenizer)
        self._backend: Any = tokenizer.backend_tokenizer
        # A model's own tokenizer file may ask for truncation, which would lose mentions.
        self._backend.no_truncation()
        self._backend.no_padding()
        # "[START]" or "[SEP]" in a text is text, not a marker.
        self._backend.encode_special_tokens = True

    def __reduce__(self) -> Tuple[Any, ...]:
        # A copy of the tokenizer forgets how special tokens in a text are to be read.
        return WordPieceTokenizer, (self.tokenizer,)

    def read(self, texts: Sequence[str]) -> WordPieces:
        """The word pieces of texts."""
        return _joined(self._backend.encode_batch_fast(list(texts), add_special_tokens=False))

    def read_with_offsets(self, texts: Sequence[str]) -> LocatedWordPieces:
        """The word pieces of texts with their characters."""
        encodings = self._backend.encode_batch(list(texts), add_special_tokens=False)
        pieces = _joined(encodings)
        # One more than the length, so that the end of a text is not the start of the next.
        text_starts = offsets_of(np.array([len(text) + 1 for text in texts], dtype=np.int64))[:-1]
        pairs = chain.from_iterable(chain.from_iterable(e.offsets for e in encodings))
        offsets = np.fromiter(pairs, np.int64, 2 * len(pieces.ids)).reshape(-1, 2)
        offsets += np.repeat(text_starts, np.diff(pieces.bounds))[:, None]
        return LocatedWordPieces(pieces, offsets[:, 0], offsets[:, 1], text_starts)


def _joined(encodings: List[Any]) -> WordPieces:
    bounds = offsets_of(np.array([len(encoding) for encoding in encodings], dtype=np.int64))
    ids = chain.from_iterable(encoding.ids for encoding in encodings)
    return WordPieces(np.fromiter(ids, np.int64, bounds[-1]), bounds)


def _special_ids(tokenizer: PreTrainedTokenizerBase) -> np.ndarray:
    first, last = tokenizer.cls_token_id, tokenizer.sep_token_id
    first = tokenizer.bos_token_id if first is None else first
    last = tokenizer.eos_token_id if last is None else last
    if first is None or last is None:
        raise ValueError(Errors.E205.format(name=tokenizer.name_or_path))
    markers = tokenizer.convert_tokens_to_ids(list(MARKERS))
    return np.array([first, last, *markers], dtype=np.int64)
