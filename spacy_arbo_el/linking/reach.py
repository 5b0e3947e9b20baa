"""Which mentions a correction holds for: its own, and those whose passages say the same."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..base.arrays import int_array
from ..encoders.dual import DualEncoder
from ..encoders.inputs import EncodingCache
from ..mentions.record import MentionRecord
from ..ranking.contexts import encode_contexts
from ..retrieval.snapshot import Snapshot

# Passages whose vectors have at least this cosine say the same. Two sentences on different things
# of one name have 0.7 at most, paraphrases mostly more than this.
SAME_PASSAGE = 0.8
# By how much more than the corrected passage a text must speak for another entity of the name.
FITS_BETTER = 0.1
# The other entities of a name that are compared.
MOST_OTHERS = 64
# No entity of the knowledge base.
NO_ENTITY = -1

# What identifies a corrected mention: its key and its label.
CorrectionKey = tuple[str, int, int, str]
# Those of passages, by passage; none where the encoder can't read passages.
Vectors = dict[str, np.ndarray]


class CorrectedMention(NamedTuple):
    """A mention that a person corrected.

    record: The mention. Its label is that of the correction.
    entity: The position of its entity, ``NO_ENTITY`` where it has none or some were rejected.
    row: Its exemplar, -1 before it is corrected.
    """

    record: MentionRecord
    entity: int
    row: int = -1

    @property
    def key(self) -> CorrectionKey:
        return (*self.record.key, self.record.label)


class CorrectionMatch(NamedTuple):
    """A correction that holds for a mention.

    is_certain: Whether the mention is the corrected one, or its passage is the same.
    """

    mention: CorrectedMention
    is_certain: bool


@dataclass(frozen=True)
class CorrectionMatcher:
    """Finds the mentions that corrections hold for.

    A correction holds for its own mention, and for mentions of the same string and label in its
    document and in passages that say the same. An entity that was given doesn't hold where another
    one of the name fits the text better.

    corrected: The corrected mentions, the last of equal ones counts.
    snapshot: The entities and the exemplars.
    passages: Keeps the vectors of the corrected passages.
    cache: Keeps those of the others for the next call; None to keep none.
    """

    corrected: Sequence[CorrectedMention]
    snapshot: Snapshot
    passages: EncodingCache = field(default_factory=EncodingCache)
    cache: EncodingCache | None = None

    def match(self, records: Sequence[MentionRecord]) -> dict[int, CorrectionMatch]:
        """The correction that holds for each of some mentions, by the number of the mention."""
        by_form: dict[str, list[int]] = {}
        for number, corrected in enumerate(self.corrected):
            by_form.setdefault(form_of(corrected.record), []).append(number)
        match_of: dict[int, CorrectionMatch] = {}
        pairs: list[tuple[int, int]] = []
        for mention, record in enumerate(records):
            same = [
                n for n in by_form.get(form_of(record), ()) if self._agree(n, record)
            ]
            certain = [n for n in same if self.corrected[n].record.key == record.key]
            certain = certain or [
                n for n in same if _words(self.corrected[n].record) == _words(record)
            ]
            if certain:
                match_of[mention] = CorrectionMatch(self.corrected[certain[-1]], True)
            else:
                pairs += [(mention, number) for number in same]
        if pairs:
            self._compare(records, pairs, match_of)
        return match_of

    def _agree(self, number: int, record: MentionRecord) -> bool:
        """Whether labels are the same. One without a label is of any, unless types must match."""
        label = self.corrected[number].record.label
        is_open = not self.snapshot.settings.match_types and not (
            label and record.label
        )
        return label == record.label or is_open

    def _compare(
        self,
        records: Sequence[MentionRecord],
        pairs: Sequence[tuple[int, int]],
        match_of: dict[int, CorrectionMatch],
    ) -> None:
        """Compare passages: (mention, number of a correction), in order of mentions."""
        best: dict[int, tuple[float, int]] = {}
        vectors = self._vectors(records, pairs)
        for mention, number in pairs:
            corrected = self.corrected[number]
            record = records[mention]
            cosine = _cosine(vectors, corrected.record, record)
            if corrected.record.key[0] != record.key[0] and cosine < SAME_PASSAGE:
                continue
            if corrected.entity != NO_ENTITY and self._is_better_for_others(
                vectors, corrected, record
            ):
                continue
            best[mention] = max(best.get(mention, (-np.inf, number)), (cosine, number))
        for mention, (_, number) in best.items():
            match_of[mention] = CorrectionMatch(self.corrected[number], False)

    def _vectors(
        self, records: Sequence[MentionRecord], pairs: Sequence[tuple[int, int]]
    ) -> Vectors:
        mentions, numbers = zip(*pairs)
        encoder = self.snapshot.encoder
        vectors: Vectors = {}
        if encoder.reads_passages:
            corrected = [
                self.corrected[number].record for number in dict.fromkeys(numbers)
            ]
            compared = [records[mention] for mention in dict.fromkeys(mentions)]
            vectors |= _encoded(compared, encoder, self.cache)
            vectors |= _encoded(corrected, encoder, self.passages)
        return vectors

    def _is_better_for_others(
        self, vectors: Vectors, corrected: CorrectedMention, record: MentionRecord
    ) -> bool:
        """Return whether another entity of a mention's name fits its text better.

        It does where it fits better than the given entity, and by more than in the corrected
        passage, where the given one is right.
        """
        owners = self.snapshot.kb.entities.with_name(record.normalized or record.text)
        namesakes = [position for position in owners if position != corrected.entity]
        if not vectors or not namesakes:
            return False
        entities = int_array([corrected.entity, *namesakes[:MOST_OTHERS]])
        rows, texts = self.snapshot.descriptions.of_entities(entities)
        texts = texts[rows[:, 0]]
        here = texts @ vectors[record.surroundings]
        gain = here - texts @ vectors[corrected.record.surroundings]
        is_better = (here[1:] > here[0]) & (gain[1:] > gain[0] + FITS_BETTER)
        return bool(is_better.any())


def _encoded(
    records: Sequence[MentionRecord], encoder: DualEncoder, cache: EncodingCache | None
) -> Vectors:
    passages = list(dict.fromkeys(record.surroundings for record in records))
    return dict(zip(passages, encode_contexts(encoder, passages, cache)))


def _cosine(vectors: Vectors, first: MentionRecord, second: MentionRecord) -> float:
    """The cosine of two passages; of their words where there are no vectors."""
    if vectors:
        return float(vectors[first.surroundings] @ vectors[second.surroundings])
    first_words = set(first.surroundings.casefold().split())
    second_words = set(second.surroundings.casefold().split())
    size = (len(first_words) * len(second_words)) ** 0.5
    return len(first_words & second_words) / max(size, 1.0)


def form_of(record: MentionRecord) -> str:
    """The string of a mention. Another case is another string."""
    return " ".join(unicodedata.normalize("NFKC", record.text).split())


def _words(record: MentionRecord) -> tuple[str, str, str]:
    """A passage and the mention's place in it, without line breaks."""
    before = " ".join(record.before.split())
    return before, form_of(record), " ".join(record.after.split())
