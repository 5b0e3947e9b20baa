"""Reading of Docs into batches of mentions."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from spacy.tokens import Doc, Span
from spacy.util import registry

from ..base.arrays import int_array
from ..base.errors import Warnings
from ..base.log import warn_once
from ..base.settings import check_strings
from ..encoders.dual import DualEncoder
from ..names.coordination import parts_of, readings_of
from ..names.spellings import folded
from .getters import (
    FOUND_AS,
    EntSpans,
    SpanGetter,
    find_mentions,
    offsets_of_span,
)
from .normalization.text import Normalizer, keep, normalized, with_names
from .record import MentionBatch, records_of

# Characters of a longer mention are a sentence rather than a coordination of names.
LONGEST = 200
# Tokens on either side of it, with which its parts are read.
AROUND = 64
Spans = Sequence[Sequence[Span]]

# Labels of values, which are no entities unless the knowledge base has such a type.
VALUES = ("CARDINAL", "DATE", "MONEY", "ORDINAL", "PERCENT", "QUANTITY", "TIME")


@registry.misc("spacy-arbo-el.Mentions.v1")
@dataclass(frozen=True)
class MentionSettings:
    """Settings for choosing and reading mentions.

    getter: Which spans of a Doc are mentions: ``doc.ents``, or a group of ``doc.spans``.
    normalizer: What surface forms are read as, such as abbreviations written out; None for the
        text itself.
    labels_discard: Spans with these labels become NIL without being looked at. null stands for
        CARDINAL, DATE, MONEY, ORDINAL, PERCENT, QUANTITY and TIME, but for those that are the type
        of an entity.
    labels: If given, spans with other labels stay as they are, and ``labels_discard = null`` leaves
        out none.
    parts_key: Name of the group of ``doc.spans`` where the parts of coordinations are linked, such
        as "breast" and "ovarian cancer" of the mention "breast and ovarian cancer"; None to link
        none.
    """

    getter: SpanGetter = EntSpans()
    normalizer: Normalizer | None = None
    labels_discard: list[str] | None = None
    labels: list[str] | None = None
    parts_key: str | None = "parts"

    def __post_init__(self) -> None:
        for name in ("labels_discard", "labels"):
            value = getattr(self, name)
            check_strings(f"mentions.{name}", () if value is None else value)

    @property
    def discards_values(self) -> bool:
        """Return whether values are discarded, unless the knowledge base has such a type."""
        return self.labels_discard is None and self.labels is None


@dataclass(frozen=True)
class ReadTexts:
    """Texts of documents as their mentions are read.

    texts: The texts, normalized.
    offsets: For each text (n, 2) int64, start and end character of its mentions, end exclusive.
    """

    texts: list[str]
    offsets: list[np.ndarray]

    @property
    def normalized(self) -> list[str]:
        """The normalized surface forms of all mentions."""
        return [
            text[start:end]
            for text, pairs in zip(self.texts, self.offsets)
            for start, end in pairs.tolist()
        ]


@dataclass(frozen=True)
class MentionReader:
    """Reads the mentions of Docs.

    encoder: Cuts the window from the text around a mention.
    has_type: Whether an entity of the knowledge base has a type.
    named: Function from case-folded strings to those that are names of entities, with the most
        words that another name of such an entity has.
    respelled: Function from mentions, normalized and before that, to the names to read them as;
        "" for those that are read as they stand.
    """

    encoder: DualEncoder
    settings: MentionSettings
    has_type: Callable[[str], bool] = lambda label: False
    named: Callable[[Sequence[str]], Mapping[str, int]] = lambda strings: {}
    respelled: Callable[[Sequence[str], Sequence[str]], Sequence[str]] = (
        lambda new, old: ()
    )

    def all_mentions(self, doc: Doc) -> list[Span]:
        """The mentions of a Doc, in order."""
        return find_mentions(doc, self.settings.getter)

    def mentions_to_link(self, doc: Doc) -> list[Span]:
        """Mentions of a Doc without discarded labels, in order."""
        spans = self.all_mentions(doc)
        labels = Counter(span.label_ for span in spans)
        discarded = {
            label: labels[label] for label in labels if self.is_discarded(label)
        }
        if discarded and self.settings.discards_values:
            count = sum(discarded.values())
            names = ", ".join(sorted(discarded))
            warn_once(Warnings.W543.format(count=count, labels=names), "W543")
        return [span for span in spans if span.label_ not in discarded]

    def is_discarded(self, label: str) -> bool:
        """Return whether mentions with this label are always NIL."""
        settings = self.settings
        if settings.discards_values:
            return label in VALUES and not self.has_type(label)
        is_other = settings.labels is not None and label not in settings.labels
        return is_other or label in (settings.labels_discard or ())

    def read_docs(self, docs: Iterable[Doc]) -> MentionBatch:
        """All mentions of Docs, discarded labels included."""
        return self.read([self.all_mentions(doc) for doc in docs])

    def coordinations(self, span: Span) -> Iterator[list[Span]]:
        """The ways to read a mention as a coordination: its parts, with ``FOUND_AS``.

        They are spans of new Docs, which have the text around the mention. There are none where the
        mention is a name as a whole.
        """
        text = span.text
        if not self.settings.parts_key or len(text) > LONGEST:
            return
        places = parts_of(text)
        if len(places) < 2 or self.named([folded(text)]):
            return
        passage = span.doc[max(span.start - AROUND, 0) : span.end + AROUND]
        first = span.start_char - passage.start_char
        for names in readings_of([text[start:end] for start, end in places]):
            doc = passage.as_doc()
            parts = []
            for (start, end), name in zip(places, names):
                part = doc.char_span(first + start, first + end, span.label)
                if part is not None:
                    part._.set(FOUND_AS, name)
                    parts.append(part)
            if len(parts) == len(places):
                yield parts

    def read(self, spans: Spans) -> MentionBatch:
        """The given spans.

        spans: For each document its spans; may be empty.
        """
        numbered = [(number, group) for number, group in enumerate(spans) if group]
        if not numbered:
            return replace(MentionBatch.empty(), n_documents=len(spans))
        groups = [group for _, group in numbered]
        offsets = [
            int_array([offsets_of_span(span) for span in group]) for group in groups
        ]
        # A Doc builds its text on every access.
        as_written = ReadTexts([group[0].doc.text for group in groups], offsets)
        texts = self._normalized(as_written, groups)
        counts = list(map(len, offsets))
        inputs = self.encoder.read_mentions(
            texts.texts,
            np.repeat(np.arange(len(groups)), counts),
            np.concatenate(texts.offsets),
        )
        next_forms = iter(texts.normalized)
        if not inputs.readable.all():
            warn_once(Warnings.W540)
        records = [
            record
            for group, text in zip(groups, as_written.texts)
            for record in records_of(group, text, list(islice(next_forms, len(group))))
        ]
        return MentionBatch(
            records,
            inputs,
            np.repeat(int_array([number for number, _ in numbered]), counts),
            np.array(
                [span.label for group in groups for span in group], dtype=np.uint64
            ),
            len(spans),
        )

    def _normalized(self, as_written: ReadTexts, groups: Spans) -> ReadTexts:
        """Normalize mentions, but for those whose own spelling alone is a name of an entity."""
        normalizer = self.settings.normalizer
        if normalizer is None:
            return as_written
        pairs = [
            normalized(normalizer, *pair)
            for pair in zip(as_written.texts, as_written.offsets)
        ]
        read = ReadTexts([text for text, _ in pairs], [moved for _, moved in pairs])
        unchanged = self._named_as_written(as_written.normalized, read.normalized)
        bounds = np.cumsum([0, *map(len, as_written.offsets)])
        documents = (
            np.searchsorted(bounds, np.flatnonzero(unchanged), side="right") - 1
        )
        for number in np.unique(documents).tolist():
            unchanged_here = unchanged[bounds[number] : bounds[number + 1]]
            document = as_written.texts[number], as_written.offsets[number]
            read.texts[number], read.offsets[number] = keep(
                normalizer, *document, unchanged_here
            )
        return self._respelled(as_written, read, groups)

    def _respelled(
        self, as_written: ReadTexts, read: ReadTexts, groups: Spans
    ) -> ReadTexts:
        """Read mentions that are another form of a name as that name."""
        found_as = [span._.get(FOUND_AS) for group in groups for span in group]
        spellings = self.respelled(read.normalized, as_written.normalized) or found_as
        next_names = iter(
            [name or spelling for name, spelling in zip(found_as, spellings)]
        )
        for number, offsets in enumerate(read.offsets):
            names = list(islice(next_names, len(offsets)))
            if any(names):
                document = read.texts[number], offsets
                read.texts[number], read.offsets[number] = with_names(*document, names)
        return read

    def _named_as_written(self, old: Sequence[str], new: Sequence[str]) -> np.ndarray:
        """(n,) bool, mentions that are read as they stand: names of entities.

        An abbreviation is one only where neither its long form is a name, nor its entity has a
        longer name: that may be another thing than the text defines.

        old, new: Their strings before and after normalization.
        """
        unchanged = np.zeros(len(old), dtype=bool)
        strings = [
            [folded(string).rstrip(" .,;:") for string in texts]
            for texts in (old, new)
        ]
        changed = [
            number for number, pair in enumerate(zip(*strings)) if pair[0] != pair[1]
        ]
        if changed:
            named = self.named(
                sorted({forms[number] for number in changed for forms in strings})
            )
            for number in changed:
                before = strings[0][number]
                after = strings[1][number]
                words = len(before.split())
                is_free = words == len(after.split()) or (
                    after not in named and named.get(before, 0) <= words
                )
                unchanged[number] = before in named and is_free
        return unchanged
