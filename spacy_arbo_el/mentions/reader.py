"""From Docs to batches of mentions."""

from dataclasses import dataclass, replace
from itertools import islice
from typing import Iterable, List, Optional, Sequence, Tuple

import numpy as np
from spacy.tokens import Doc, Span
from spacy.util import registry

from ..encoders.inputs import SpanInputs
from ..encoders.protocol import Encoder
from ..errors import Warnings
from ..log import warn_once
from ..settings import check_strings
from .batch import MentionBatch
from .getters import EntSpans, SpanGetter, find_mentions, offsets_of_span
from .normalization.text import Normalizer
from .records import records_of

Spans = Sequence[Sequence[Span]]


@registry.misc("spacy-arbo-el.Mentions.v1")
@dataclass(frozen=True)
class MentionSettings:
    """Which spans are linked, and how they are read.

    getter: Which spans of a Doc are mentions: ``doc.ents``, or a group of ``doc.spans``.
    normalizer: What surface forms are read as, such as abbreviations written out; None for the
        text itself.
    labels_discard: Spans with these labels become NIL without being looked at.
    """

    getter: SpanGetter = EntSpans()
    normalizer: Optional[Normalizer] = None
    labels_discard: List[str] = ()  # type: ignore[assignment]

    def __post_init__(self) -> None:
        check_strings("mentions.labels_discard", self.labels_discard)


@dataclass(frozen=True)
class MentionReader:
    """Reads the mentions of Docs.

    encoder: Cuts what is read of the text round a mention.
    settings: Which spans are mentions.
    """

    encoder: Encoder
    settings: MentionSettings

    def all_mentions(self, doc: Doc) -> List[Span]:
        """The mentions of a Doc, in order."""
        return find_mentions(doc, self.settings.getter)

    def mentions_to_link(self, doc: Doc) -> List[Span]:
        """The mentions of a Doc without those whose label is discarded, in order."""
        return [
            span
            for span in self.all_mentions(doc)
            if span.label_ not in self.settings.labels_discard
        ]

    def read_docs(self, docs: Iterable[Doc]) -> MentionBatch:
        """All mentions of Docs, discarded labels included."""
        return self.read([self.all_mentions(doc) for doc in docs])

    def read(self, spans: Spans) -> MentionBatch:
        """The given spans.

        spans: For each document its spans; may be empty.
        """
        numbered = [(number, group) for number, group in enumerate(spans) if group]
        if not numbered:
            return replace(MentionBatch.empty(), n_documents=len(spans))
        groups = [group for _, group in numbered]
        inputs, normalized = self._inputs(groups)
        rest = iter(normalized)
        records = [
            record
            for group in groups
            for record in records_of(group, list(islice(rest, len(group))))
        ]
        counts = [len(group) for group in groups]
        return MentionBatch(
            records,
            inputs,
            np.repeat(np.array([number for number, _ in numbered], dtype=np.int64), counts),
            np.array([span.label for group in groups for span in group], dtype=np.uint64),
            len(spans),
        )

    def _inputs(self, groups: Spans) -> Tuple[SpanInputs, List[str]]:
        """What mentions are encoded from, and their normalized surface forms."""
        texts = [group[0].doc.text for group in groups]
        offsets = [
            np.array([offsets_of_span(span) for span in group], dtype=np.int64) for group in groups
        ]
        if self.settings.normalizer is not None:
            pairs = [self.settings.normalizer(*pair) for pair in zip(texts, offsets)]
            texts, offsets = [text for text, _ in pairs], [moved for _, moved in pairs]
        normalized = [
            text[start:end] for text, pairs in zip(texts, offsets) for start, end in pairs.tolist()
        ]
        text_of = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
        inputs = self.encoder.read_mentions(texts, text_of, np.concatenate(offsets))
        if not inputs.readable.all():
            warn_once(Warnings.W540)
        return inputs, normalized
