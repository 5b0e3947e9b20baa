"""Text -> word-piece sequences: windows round mentions, texts of entities.

Input forms of the arborescence paper, §2.2::

    [CLS] left [START] mention [END] right [SEP]
    [CLS] title [TITLE] description [SEP]

Everything is cut by word pieces and assembled for all mentions at once; a text is
tokenized once however many mentions it holds.
"""

from itertools import chain
from typing import List, Sequence, Tuple

import numpy as np

from ..errors import Errors
from .sequences import Sequences, assemble

START, END, TITLE = "[START]", "[END]", "[TITLE]"
MARKERS = (START, END, TITLE)
SHORTEST_WINDOW = 8


class PieceTokenizer:
    """Cuts texts into windows and entity texts of at most ``size`` word pieces.

    tokenizer: a fast Hugging Face tokenizer that knows the marker tokens.
    size: word pieces of a sequence, special tokens included.
    """

    def __init__(self, tokenizer, size: int):
        if not getattr(tokenizer, "is_fast", False):
            raise ValueError(Errors.E203.format(name=getattr(tokenizer, "name_or_path", "")))
        if size < SHORTEST_WINDOW:
            raise ValueError(Errors.E204.format(size=size, shortest=SHORTEST_WINDOW))
        self.size = size
        self._backend = tokenizer.backend_tokenizer
        # A model's own tokenizer file may ask for truncation, which would lose mentions.
        self._backend.no_truncation()
        self._backend.no_padding()
        # "[START]" or "[SEP]" in a text is text, not a marker.
        self._backend.encode_special_tokens = True
        first = (
            tokenizer.cls_token_id if tokenizer.cls_token_id is not None else tokenizer.bos_token_id
        )
        last = (
            tokenizer.sep_token_id if tokenizer.sep_token_id is not None else tokenizer.eos_token_id
        )
        if first is None or last is None:
            raise ValueError(Errors.E205.format(name=tokenizer.name_or_path))
        markers = tokenizer.convert_tokens_to_ids(list(MARKERS))
        self._specials = np.array([first, last, *markers], dtype=np.int64)

    def windows(
        self, texts: Sequence[str], text_of: np.ndarray, starts: np.ndarray, ends: np.ndarray
    ) -> Sequences:
        """Windows round mentions.

        texts: the documents.
        text_of: (n,) which text mention ``i`` stands in.
        starts, ends: (n,) its character offsets there, end exclusive.
        RETURNS: n sequences with the mention always inside; context is shared out evenly, and
            what one side does not need goes to the other. A mention longer than the
            window keeps its two ends.
        """
        if len(text_of) == 0:
            return Sequences.empty()
        flat, bounds, begins, finishes, bases = self._tokenize_with_offsets(texts)
        low = np.searchsorted(finishes, bases[text_of] + starts, side="right")
        high = np.searchsorted(begins, bases[text_of] + ends, side="left")
        low = np.minimum(low, bounds[text_of + 1])
        high = np.maximum(high, low)
        return self._cut_windows(flat, low, high, bounds[text_of], bounds[text_of + 1])

    def entity_texts(self, parts: Sequence[Tuple[str, str]]) -> Sequences:
        """Texts of entities, each a pair of title and description (may be empty)."""
        if not parts:
            return Sequences.empty()
        titles, title_bounds = self._tokenize([title for title, _ in parts])
        rests, rest_bounds = self._tokenize([rest for _, rest in parts])
        cls, sep, _, _, marker = self._special_positions(len(titles) + len(rests))
        budget = self.size - 3
        title_lengths = np.minimum(np.diff(title_bounds), budget)
        rest_lengths = np.minimum(np.diff(rest_bounds), budget - title_lengths)
        one = np.ones(len(parts), dtype=np.int64)
        ids, offsets = assemble(
            np.concatenate([titles, rests, self._specials]),
            [cls * one, title_bounds[:-1], marker * one, len(titles) + rest_bounds[:-1], sep * one],
            [one, title_lengths, one, rest_lengths, one],
        )
        anchor = title_lengths + 1
        # A title without a single known word piece is represented by its marker.
        first = np.where(title_lengths > 0, 1, anchor)
        last = np.where(title_lengths > 0, title_lengths, anchor)
        return Sequences(ids, offsets, *(a.astype(np.int32) for a in (first, last, anchor)))

    def _cut_windows(self, flat, low, high, text_low, text_high) -> Sequences:
        budget = self.size - 4
        mention = high - low
        kept = np.minimum(mention, budget)
        tail = np.where(mention > budget, kept // 2, 0)
        head = kept - tail
        spare = budget - kept
        left_there, right_there = low - text_low, text_high - high
        right = np.minimum(right_there, np.maximum(spare // 2, spare - left_there))
        left = np.minimum(left_there, spare - right)
        cls, sep, start, end, _ = self._special_positions(len(flat))
        one = np.ones(len(low), dtype=np.int64)
        ids, offsets = assemble(
            np.concatenate([flat, self._specials]),
            [cls * one, low - left, start * one, low, high - tail, end * one, high, sep * one],
            [one, left, one, head, tail, one, right, one],
        )
        anchor = left + 1
        # A mention without word pieces (white space, say) is represented by its two markers.
        first = np.where(kept > 0, anchor + 1, anchor)
        last = np.where(kept > 0, anchor + kept, anchor + 1)
        return Sequences(ids, offsets, *(a.astype(np.int32) for a in (first, last, anchor)))

    def _special_positions(self, base: int) -> List[int]:
        return [base + i for i in range(len(self._specials))]

    def _tokenize(self, texts: Sequence[str]) -> Tuple[np.ndarray, np.ndarray]:
        encodings = self._backend.encode_batch_fast(list(texts), add_special_tokens=False)
        bounds = np.zeros(len(texts) + 1, dtype=np.int64)
        np.cumsum([len(encoding) for encoding in encodings], out=bounds[1:])
        ids = chain.from_iterable(encoding.ids for encoding in encodings)
        return np.fromiter(ids, np.int64, bounds[-1]), bounds

    def _tokenize_with_offsets(self, texts: Sequence[str]):
        """Word pieces of all texts in one flat array, with character offsets that grow over all."""
        encodings = self._backend.encode_batch(list(texts), add_special_tokens=False)
        bounds = np.zeros(len(texts) + 1, dtype=np.int64)
        np.cumsum([len(encoding) for encoding in encodings], out=bounds[1:])
        # One more than the length: the end of a text and the start of the next stay apart.
        bases = np.zeros(len(texts), dtype=np.int64)
        np.cumsum([len(text) + 1 for text in texts[:-1]], out=bases[1:])
        flat = np.fromiter(chain.from_iterable(e.ids for e in encodings), np.int64, bounds[-1])
        pairs = chain.from_iterable(chain.from_iterable(e.offsets for e in encodings))
        offsets = np.fromiter(pairs, np.int64, 2 * bounds[-1]).reshape(-1, 2)
        offsets += np.repeat(bases, np.diff(bounds))[:, None]
        return flat, bounds, offsets[:, 0], offsets[:, 1], bases
