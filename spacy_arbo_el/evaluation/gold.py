"""Annotated mentions of a corpus."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from spacy.lang.en.stop_words import STOP_WORDS
from spacy.tokenizer import Tokenizer
from spacy.tokens import Doc, Span

from ..kb.knowledge_base import ArboKB
from ..mentions.getters import SpanGetter, find_mentions
from ..mentions.labels import current_ids
from ..mentions.record import (
    ID_SEPARATOR,
    MentionRecord,
    document_id,
    records_of,
    text_fingerprint,
)
from ..names.spellings import folded

# Where the offsets of a mention are doubtful.
SPACE = "begin or end in whitespace"
CUT = "begin or end inside a word"
UNALIGNED = "do not begin and end where tokens do"


class GoldMention(NamedTuple):
    """An annotated mention.

    kb_id: The ``kb_id_`` of its span: "" where it is not annotated, "NIL" for no entity.
    offsets: Doubts about its offsets, of ``SPACE``, ``CUT`` and ``UNALIGNED``; "" for none.
    """

    record: MentionRecord
    kb_id: str
    offsets: str = ""


@dataclass(frozen=True)
class GoldCorpus:
    """The annotated mentions of a corpus.

    documents: What each document is called, by the fingerprint of its text; case and spaces do
        not count.
    english: The share of words that are frequent words of English.
    """

    mentions: list[GoldMention]
    documents: dict[str, str]
    n_documents: int
    english: float


def read_gold(
    docs: Iterable[Doc], getter: SpanGetter, tokenizer: Tokenizer | None = None
) -> GoldCorpus:
    """The annotated mentions of documents, which are read once.

    tokenizer: What cuts raw text, to compare offsets with its tokens; None for those of the Docs.
    """
    mentions: list[GoldMention] = []
    documents: dict[str, str] = {}
    n_documents = n_words = n_english = 0
    for doc in docs:
        spans = find_mentions(doc, getter)
        records = (
            records_of(spans, doc.text, [span.text for span in spans]) if spans else ()
        )
        doubts = _doubtful_offsets(spans, tokenizer)
        for span, record, doubt in zip(spans, records, doubts):
            mentions.append(GoldMention(record, span.kb_id_, doubt))
        name = document_id(doc) or text_fingerprint(doc.text)
        documents[text_fingerprint(folded(doc.text))] = name
        words = [token.lower_ for token in doc if token.is_alpha]
        n_documents += 1
        n_words += len(words)
        n_english += sum(word in STOP_WORDS for word in words)
    return GoldCorpus(mentions, documents, n_documents, n_english / max(n_words, 1))


def _doubtful_offsets(spans: Sequence[Span], tokenizer: Tokenizer | None) -> list[str]:
    if not spans:
        return []
    text = spans[0].doc.text
    tokens = spans[0].doc if tokenizer is None else tokenizer(text)
    starts = {token.idx for token in tokens}
    ends = {token.idx + len(token) for token in tokens}
    doubts = []
    for start, end in ((span.start_char, span.end_char) for span in spans):
        if text[start].isspace() or text[end - 1].isspace():
            doubts.append(SPACE)
        elif _cuts(text, start) or _cuts(text, end):
            doubts.append(CUT)
        else:
            doubts.append("" if start in starts and end in ends else UNALIGNED)
    return doubts


def _cuts(text: str, place: int) -> bool:
    """Return whether a place is within a number, or a word of a script with case."""
    if not 0 < place < len(text):
        return False
    before = text[place - 1]
    after = text[place]
    return (_is_cased(before) and _is_cased(after)) or (
        before.isdigit() and after.isdigit()
    )


def _is_cased(character: str) -> bool:
    return character.lower() != character.upper()


@dataclass(frozen=True)
class KnownMentions:
    """Annotated mentions, looked up in a knowledge base.

    gold: The gold ids of each, as the knowledge base has them now.
    present: The gold ids that it has.
    owners: Positions of the entities whose name, case folded, is each surface form.
    """

    mentions: Sequence[GoldMention]
    gold: list[tuple[str, ...]]
    present: frozenset[str]
    owners: dict[str, list[int]]

    @classmethod
    def look_up(cls, kb: ArboKB, mentions: Sequence[GoldMention]) -> "KnownMentions":
        gold = current_ids(kb, [mention.record.kb_ids for mention in mentions])
        gold_ids = sorted({kb_id for ids in gold for kb_id in ids})
        positions = kb.entities.positions_of(gold_ids).tolist()
        present = frozenset(kb_id for kb_id, p in zip(gold_ids, positions) if p >= 0)
        forms = sorted({folded(mention.record.text) for mention in mentions})
        return cls(mentions, gold, present, kb.entities.with_names(forms))

    @property
    def linked(self) -> list[tuple[GoldMention, tuple[str, ...]]]:
        """The mentions with a gold id, and their ids."""
        return [
            (mention, ids) for mention, ids in zip(self.mentions, self.gold) if ids
        ]

    @property
    def meanings(self) -> dict[str, set[str]]:
        """The gold ids that each surface form has, case folded. NIL mentions are left out.

        Those of a composite mention are one, joined by "|".
        """
        ids_of_form: dict[str, set[str]] = {}
        for mention, ids in self.linked:
            joined = ID_SEPARATOR.join(sorted(ids))
            ids_of_form.setdefault(folded(mention.record.text), set()).add(joined)
        return ids_of_form
