"""Doubtful links of a corpus, and files of decisions."""

import io
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from spacy.tokens import Doc, DocBin, Span
from spacy.util import filter_spans, minibatch

from ...corpora.annotated import LABEL
from ...corpora.docs import unlinked
from ...discovery.decision_log import Entry
from ...encoders.inputs import EncodingCache
from ...kb.entity import NIL
from ...kb.export import write_csv
from ...linker import ArboLinker
from ...linking.corrections import CorrectionKey
from ...linking.feedback import correction_key
from ...mentions.annotations import Link
from ...mentions.getters import offsets_of_span, set_mentions
from ...mentions.record import MentionKey, document_id, text_fingerprint
from .decisions.journal import entry_lines
from .queue import Filters
from .review import Review, mention_name

BATCH = 64
# Characters on either side of a mention in the table.
AROUND = 80
GOLD = "gold.spacy"
# The files of what was decided, and what each is for. That of ``GOLD`` needs the texts.
LIST = "entities.csv"
EXPORTS = {
    LIST: "your list, with a column that says which rows are new or changed",
    "decisions.jsonl": "all decisions",
    GOLD: "documents for arbo fit",
}


@dataclass(frozen=True, slots=True)
class LinkRow:
    """A mention with its link. count: How many mentions of the corpus have its surface form."""

    number: int
    key: MentionKey
    label: str
    text: str
    link: Link
    count: int

    @property
    def name(self) -> str:
        """The mention as text."""
        return mention_name(self.place)

    @property
    def place(self) -> CorrectionKey:
        """The mention with its label, which a decision is on."""
        return (*self.key, self.label)

    @property
    def question(self) -> tuple[str, str, str]:
        """What is asked about the mention. Of mentions with the same question, one is asked."""
        return self.text.casefold(), self.label, self.link.kb_id

    @property
    def margin(self) -> float:
        """Lead in probability of the best candidate over the second."""
        first, second = [*self.link.scores[:2], 0.0, 0.0][:2]
        return float(abs(first - second)) if len(self.link.ids) else 1.0


class LinkReview:
    """The links of the mentions of a corpus."""

    def __init__(self, linker: ArboLinker, docs: Sequence[Doc]) -> None:
        self.linker = linker
        self.docs = list(docs)
        self._doc_of = {text_fingerprint(doc.text): doc for doc in self.docs}
        self.texts = {
            fingerprint: doc.text for fingerprint, doc in self._doc_of.items()
        }
        self._kept = EncodingCache()
        # The mentions that a decision on one holds for.
        self._covered: dict[tuple[CorrectionKey, str], set[CorrectionKey]] = {}
        linked_mentions: list[tuple[MentionKey, str, str, Link]] = []
        for batch in minibatch(self._doc_of.items(), BATCH):
            linked = linker.predict([doc for _, doc in batch])
            for (fingerprint, _), links in zip(batch, linked):
                text = self.texts[fingerprint]
                linked_mentions += [
                    ((fingerprint, start, end), label, text[start:end], link)
                    for (start, end, label), link in links.items()
                ]
        counts = Counter(text.casefold() for _, _, text, _ in linked_mentions)
        self.rows = [
            LinkRow(i, *linked_mention, counts[linked_mention[2].casefold()])
            for i, linked_mention in enumerate(linked_mentions)
        ]
        self._row_of = {row.place: row for row in self.rows}

    def select(self, filters: Filters, review: Review) -> list[LinkRow]:
        """The mentions that nobody has decided on, small margins and frequent new forms first."""
        decided = self._decided(review)
        closed = review.closed()
        decided_forms = {
            row.text for row in self.rows if row.place in decided or row.key in closed
        }
        within = [r for r in self.rows if filters.low <= r.link.score <= filters.high]
        open_rows = [row for row in within if row.place not in decided]
        rows = [row for row in open_rows if row.key not in closed]
        rows.sort(
            key=lambda row: (
                (row.margin - 1) * (row.count, 1)[row.text in decided_forms]
            )
        )
        first_of = {row.question: row for row in reversed(rows)}
        return [row for row in rows if row is first_of[row.question]]

    def _decided(self, review: Review) -> set[CorrectionKey]:
        """The mentions that decisions hold for. The others may still be asked."""
        decided: set[CorrectionKey] = set()
        for entry in review.standing:
            if entry["action"] == "learn":
                place = (*entry["key"], entry["label"])
                question = place, entry["kb_id"]
                if place in self._row_of and question not in self._covered:
                    self._covered[question] = self.covered(
                        self._row_of[place], entry["kb_id"]
                    )
                decided |= self._covered.get(question, {place})
        return decided

    def around(self, row: LinkRow) -> tuple[str, str]:
        """The text before and behind a mention."""
        fingerprint, start, end = row.key
        text = self.texts[fingerprint]
        return text[max(start - AROUND, 0) : start], text[end : end + AROUND]

    def document(self, row: LinkRow) -> str:
        """The id of a mention's document; that of its text where it has none."""
        return document_id(self._doc_of[row.key[0]]) or row.key[0]

    def row(self, number: str) -> LinkRow:
        """The mention of a number; KeyError if there is none."""
        if not number.isdecimal() or int(number) >= len(self.rows):
            raise KeyError("There is no such mention.")
        return self.rows[int(number)]

    def span(self, key: MentionKey, label: str = "") -> Span | None:
        """A mention of the corpus. None where its document is not in it.

        label: Of several over the same text, that with this label.
        """
        if key[0] not in self._doc_of:
            return None
        doc = self._doc_of[key[0]]
        spans = self.linker.mentions.getter(doc)
        same = [span for span in spans if offsets_of_span(span) == key[1:]]
        same.sort(key=lambda span: span.label_ != label)
        return next(iter(same), None) or doc.char_span(
            *key[1:], alignment_mode="expand"
        )

    def covered(self, row: LinkRow, kb_id: str) -> set[CorrectionKey]:
        """Find the mentions that a decision on one would hold for, itself among them."""
        span = self.span(row.key, row.label)
        if span is None or (kb_id != NIL and kb_id not in self.linker.kb):
            return {row.place}
        form = row.text.casefold()
        with_form = dict.fromkeys(
            r.key[0] for r in self.rows if r.text.casefold() == form
        )
        docs = [self._doc_of[fingerprint] for fingerprint in with_form]
        spans = self.linker.feedback.covered(span, docs, kb_id, self._kept)
        return {row.place, *map(correction_key, spans)}

    def entry_of(self, row: LinkRow, kb_id: str) -> dict[str, Any]:
        """Journal entry of a decision on a mention."""
        span = self.span(row.key, row.label)
        fingerprint, start, end = row.key
        verdict = "nil" if kb_id == NIL else "correct"
        return {
            "key": list(row.key),
            "document": document_id(self._doc_of[fingerprint]),
            "text": self.texts[fingerprint],
            "start": start,
            "end": end,
            "kb_id": kb_id,
            "verdict": "confirm" if kb_id == row.link.kb_id else verdict,
            "label": span.label_ if span else "",
        }


def gold_docs(
    linker: ArboLinker, docs: Iterable[Doc], entries: Sequence[Entry]
) -> list[Doc]:
    """Documents whose mentions were decided on. Those without any are left out."""
    marks_of: defaultdict[str, dict[tuple[int, int, str], str]] = defaultdict(dict)
    getter = linker.mentions.getter
    new = linker.new_entities
    chosen = []
    for entry in new.history.standing():
        for key in entry["mentions"] if "kb_id" in entry else ():
            row = new.rows.row(tuple(key))
            label = new.rows.records[row].label if row >= 0 else ""
            marks_of[key[0]][key[1], key[2], label] = entry["kb_id"]
    for entry in entries:
        if entry["action"] == "learn":
            fingerprint, start, end = entry["key"]
            marks_of[fingerprint][start, end, entry["label"]] = entry["kb_id"]
    for doc in docs:
        marks = marks_of[text_fingerprint(doc.text)].items()
        if not marks:
            continue
        gold = unlinked(doc, mentions=False)
        marked_spans = [
            gold.char_span(
                start, end, label or LABEL, kb_id=kb_id, alignment_mode="expand"
            )
            for (start, end, label), kb_id in marks
        ]
        spans = list(filter(None, marked_spans))
        # Mentions in a group of spans may overlap.
        set_mentions(gold, spans if getter.spans_key else filter_spans(spans), getter)
        chosen.append(gold)
    return chosen


def exported(name: str, review: Review, links: LinkReview | None) -> bytes:
    """The content of a file of ``EXPORTS``."""
    if name == LIST:
        file = io.BytesIO()
        write_csv(review.linker.kb, file, is_marked=True)
        return file.getvalue()
    if name != GOLD or links is None:
        return entry_lines(review.standing)
    docs = gold_docs(review.linker, links.docs, review.standing)
    return DocBin(docs=docs, store_user_data=True).to_bytes()
