"""Borders of names in a Doc. Between tokens, or within one that is then split."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection
from functools import cached_property
from itertools import pairwise, starmap
from typing import Any

import numpy as np
from spacy.attrs import IDX, LENGTH
from spacy.tokens import Doc, Span, SpanGroup, Token

from ..names.folding import HANGUL, SAME, UNSPACED, kind_of
from ..names.prefixes import prefixes_in
from .edges import addresses_in, is_edge

# Tokens are split on both sides of these, at the edges of words, and in scripts without spaces.
SPLITTING = "-/" + SAME["-"] + SAME[""]

# The first half of a name of two persons.
_COMPOUND = re.compile(r"(?<![\w-])[A-Z\u00c0-\u00de][^\W\d_A-Z]+[-\u2010-\u2013]\Z")
_LONGEST = 40


class Borders:
    """Character offsets at which names can begin and end.

    doc: The document, whose tokens ``split`` may split.
    """

    def __init__(self, doc: Doc) -> None:
        self.doc = doc
        self.text = doc.text
        self._read_tokens()

    def _read_tokens(self) -> None:
        offsets = self.doc.to_array([IDX, LENGTH]).astype(np.int64)
        self.starts: list[int] = offsets[:, 0].tolist()
        self.ends: list[int] = offsets.sum(axis=1).tolist()

    def _may_be(self, offset: int, ends: bool) -> bool:
        """Return whether a name can end there, or begin."""
        if self._is_in_address(offset):
            return False
        if self._is_between(offset):
            return True
        before = self.text[offset - 1]
        after = self.text[offset]
        if _is_unspaced(before) or _is_unspaced(after):
            return not self.is_segmented
        token = self.doc[self._number(offset)]
        is_address = token.like_url and not addresses_in(token.text)
        if token.like_num or is_address:
            return False
        if before in SPLITTING or after in SPLITTING:
            return True
        beyond = self.text[offset + 1 : offset + 3]
        if not ends:
            before, after = after, before
            beyond = self.text[max(offset - 2, 0) : offset - 1]
        return is_edge(before, after, beyond, token.text, ends)

    def _is_in_address(self, offset: int) -> bool:
        number = bisect_left(self.addresses, (offset,)) - 1
        return number >= 0 and offset < self.addresses[number][1]

    def may_be_name(self, start: int, end: int) -> bool:
        """Return whether a stretch may be a name: it begins and ends where one can.

        Behind the hyphen of a prefix, as in "non-Hodgkin lymphoma", another name begins, and
        "Aldrich syndrome" is half of "Wiskott-Aldrich syndrome".
        """
        if _COMPOUND.search(self.text, max(start - _LONGEST, 0), start) and (
            self.text[start].isupper() and " " in self.text[start:end]
        ):
            return False
        return (
            start not in self.prefixes
            and self._may_be(start, False)
            and self._may_be(end, True)
        )

    def tokens(self, start: int, end: int) -> tuple[int, int]:
        """The token at which a stretch begins, and the one behind it. It has whole tokens."""
        return bisect_left(self.starts, start), bisect_left(self.ends, end) + 1

    def _number(self, offset: int) -> int:
        return bisect_right(self.starts, offset) - 1

    def _is_between(self, offset: int) -> bool:
        number = self._number(offset)
        return self.starts[number] == offset or self.ends[number] <= offset

    @cached_property
    def addresses(self) -> list[tuple[int, int]]:
        """The places of addresses, in which no name begins or ends."""
        return addresses_in(self.text)

    @cached_property
    def prefixes(self) -> dict[int, str]:
        """The prefixes that make another word of the one behind them, by its place."""
        return prefixes_in(self.text)

    @cached_property
    def is_segmented(self) -> bool:
        """Return whether the tokenizer segments scripts without spaces."""
        pairs = pairwise(self.doc)
        return any(
            _is_unspaced(a.text[-1]) and _is_unspaced(b.text[0])
            for a, b in pairs
            if not a.whitespace_
        )

    def split(self, offsets: Collection[int]) -> None:
        """Split the tokens that have one of these offsets within. The Doc changes in place."""
        within = [offset for offset in sorted(offsets) if not self._is_between(offset)]
        if not within:
            return
        doc = self.doc
        cuts: dict[int, list[int]] = {}
        for offset in within:
            cuts.setdefault(self._number(offset), []).append(offset)
        # spaCy leaves the groups of spans at their old tokens.
        groups = {
            key: (group.name, group.attrs, [_place(span) for span in group])
            for key, group in doc.spans.items()
        }
        with doc.retokenize() as retokenizer:
            for number, of_token in cuts.items():
                _split(retokenizer, doc[number], of_token)
        for key, (name, attrs, places) in groups.items():
            spans = [
                span for span in starmap(doc.char_span, places) if span is not None
            ]
            doc.spans[key] = SpanGroup(doc, name=name, attrs=attrs, spans=spans)
        self._read_tokens()


def _split(retokenizer: Any, token: Token, offsets: list[int]) -> None:
    edges = [0, *(offset - token.idx for offset in offsets), len(token)]
    pieces = [token.text[start:end] for start, end in pairwise(edges)]
    attrs: dict[str, list[Any]] = {
        name: [getattr(token, name.lower())] * len(pieces)
        for name in ("POS", "TAG", "DEP", "ENT_TYPE", "ENT_KB_ID")
    }
    attrs["MORPH"] = [str(token.morph)] * len(pieces)
    attrs["SENT_START"] = [int(bool(token.is_sent_start)), *([0] * (len(pieces) - 1))]
    head = (token, 0) if token.head == token else token.head
    retokenizer.split(
        token, pieces, [head, *([(token, 0)] * (len(pieces) - 1))], attrs=attrs
    )


def _place(span: Span) -> tuple[int, int, int, int, None, str, int]:
    return (
        span.start_char,
        span.end_char,
        span.label,
        span.kb_id,
        None,
        "strict",
        span.id,
    )


def _is_unspaced(char: str) -> bool:
    return kind_of(char) in (UNSPACED, HANGUL)
