"""Corrections of single mentions by people: this entity, none, or not that one."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import srsly

from ..base.arrays import TopK, resized_table
from ..base.calibration import log_odds
from ..encoders.inputs import EncodingCache
from ..mentions.record import (
    MentionBatch,
    MentionKey,
    MentionRecord,
    are_texts,
    check_key,
)
from ..ranking.ranking import Ranking
from ..retrieval.exemplars import ExemplarStore
from ..retrieval.neighbours import Neighbours
from ..retrieval.snapshot import Snapshot
from .reach import (
    NO_ENTITY,
    CorrectedMention,
    CorrectionKey,
    CorrectionMatch,
    CorrectionMatcher,
    form_of,
)

# Log-odds of what a person has said; a probability of 1 in double precision.
CERTAIN_LOGIT = 40.0
# The least log-odds of an entity that was given in another passage that says the same.
LIKELY_LOGIT = float(log_odds(0.95))


class Correction(NamedTuple):
    """A correction of a mention.

    kb_id: The entity that it is, "" for none in the knowledge base, None where this was not said.
    rejected: Entities that it is not.
    before: The ids that the mention was stored with before, None where it was not stored.
    """

    kb_id: str | None
    rejected: tuple[str, ...] = ()
    before: tuple[str, ...] | None = None


class Corrections:
    """Corrections by the key of their mention, an exemplar, and its label.

    A correction holds for the mention itself, and for mentions of the same string and label in its
    document and in passages that say the same, see ``CorrectionMatcher``.
    """

    def __init__(self) -> None:
        self.items: dict[CorrectionKey, Correction] = {}
        # The strings of corrected mentions. Those of a text and its offsets never change.
        self._forms: dict[MentionKey, str] = {}
        # The vectors of corrected passages, and the encoder that they are of.
        self._passages = EncodingCache()
        self._fingerprint = ""

    def __len__(self) -> int:
        return len(self.items)

    def to_bytes(self) -> bytes:
        return srsly.msgpack_dumps(
            [[list(key), *item] for key, item in self.items.items()]
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> "Corrections":
        """Load the result of ``to_bytes``. Raises ValueError for a field of another type."""
        corrections = cls()
        items: Any = srsly.msgpack_loads(data)
        for key, kb_id, rejected, before in items:
            before = None if before is None else tuple(before)
            correction = Correction(kb_id, tuple(rejected), before)
            check_key(tuple(key[:-1]))
            if not are_texts([key[-1], kb_id or "", *rejected, *(before or ())]):
                raise ValueError(
                    f"a correction has something else than texts: {correction!r:.80}"
                )
            corrections.items[tuple(key)] = correction
        return corrections

    def forget_outdated(self, keys: Iterable[MentionKey], kb_id: str) -> None:
        """Forget what was said before mentions became an entity: "none", or "not it"."""
        for key in self._at(keys):
            correction = self.items[key]
            if correction.kb_id == "" or kb_id in correction.rejected:
                del self.items[key]

    def is_learned(self, key: MentionKey, kb_id: str) -> bool:
        """Return whether a person linked a mention to an entity."""
        return any(
            self.items[corrected_key].kb_id == kb_id
            for corrected_key in self._at([key])
        )

    def forget_at(self, keys: Iterable[MentionKey]) -> None:
        """Forget the corrections of mentions."""
        for key in self._at(keys):
            del self.items[key]

    def others_at(self, key: CorrectionKey) -> list[Correction]:
        """Corrections of the same place by other labels."""
        return [
            self.items[corrected_key]
            for corrected_key in self._at([key[:3]])
            if corrected_key != key
        ]

    def _at(self, keys: Iterable[MentionKey]) -> list[CorrectionKey]:
        places = set(keys)
        return [key for key in self.items if key[:3] in places]

    def take_labels(self, records: Sequence[MentionRecord]) -> None:
        """Note that mentions were annotated after they were corrected.

        A correction that says something else is forgotten. One that says the same stays, as those
        of other labels do, and to forget it later leaves the annotation.
        """
        stored = {record.key: record.kb_ids for record in records}
        annotated = {(*record.key, record.label): record.kb_ids for record in records}
        for key in self._at(stored):
            correction = self.items[key]
            # An annotation as NIL has no ids.
            if (annotated.get(key, (correction.kb_id,)) or ("",)) == (
                correction.kb_id,
            ):
                self.items[key] = correction._replace(before=stored[key[:3]])
            else:
                del self.items[key]

    def apply(
        self,
        batch: MentionBatch,
        neighbours: Neighbours,
        ranking: Ranking,
        snapshot: Snapshot,
        cache: EncodingCache | None = None,
    ) -> tuple[Neighbours, Ranking, np.ndarray]:
        """Neighbours and ranking that leave corrected mentions no other choice.

        A mention whose entity was given has this one candidate and this one exemplar. Rejected
        entities are no candidates.

        cache: Keeps vectors of contexts; None to keep none.
        RETURNS: Also (m,) bool, the mentions that a correction holds for. No other mention may
            influence them: they have no mentions as neighbours.
        """
        corrected = np.zeros(len(batch), dtype=bool)
        matches = self.matches(batch, snapshot, cache)
        if not matches:
            return neighbours, ranking, corrected
        corrected[list(matches)] = True
        keep = np.ones(ranking.candidates.ids.shape, dtype=bool)
        keep_exemplars = np.ones(neighbours.exemplars.ids.shape, dtype=bool)
        keep_texts = np.ones(neighbours.entities.ids.shape, dtype=bool)
        # By mention: the exemplar of the correction, the entity, and its log-odds.
        given: dict[int, tuple[int, int, float]] = {}
        for mention, (corrected_mention, is_certain) in matches.items():
            correction = self.items[corrected_mention.key]
            positions = snapshot.kb.entities.positions_of(
                [correction.kb_id or "", *correction.rejected]
            )
            position = int(positions[0])
            rejected = positions[1:][positions[1:] >= 0]
            if correction.kb_id == "" or position >= 0:
                keep[mention] = keep_exemplars[mention] = keep_texts[mention] = False
                if position >= 0:
                    scores = ranking.candidates.scores[mention]
                    scores = scores[ranking.candidates.ids[mention] == position]
                    logit = float(scores.max(initial=LIKELY_LOGIT))
                    logit = CERTAIN_LOGIT if is_certain else logit
                    given[mention] = corrected_mention.row, position, logit
            else:
                keep[mention] = ~np.isin(ranking.candidates.ids[mention], rejected)
                keep_texts[mention] = ~np.isin(
                    neighbours.entities.ids[mention], rejected
                )
                owners = neighbours.exemplar_entities[mention]
                keep_exemplars[mention] = ~np.isin(owners, rejected)
        owners = TopK(neighbours.exemplar_entities, neighbours.exemplars.scores)
        neighbours = replace(
            neighbours,
            entities=neighbours.entities.where(keep_texts),
            exemplars=neighbours.exemplars.where(keep_exemplars),
            mentions=neighbours.mentions.where(~corrected[:, None]),
            exemplar_entities=owners.where(keep_exemplars).ids,
        )
        return *_with_given(neighbours, ranking.where(keep), given), corrected

    def matches(
        self,
        batch: MentionBatch,
        snapshot: Snapshot,
        cache: EncodingCache | None = None,
    ) -> dict[int, CorrectionMatch]:
        """The correction that holds for each mention that one holds for."""
        if not self.items:
            return {}
        store = snapshot.exemplars
        forms = {form_of(record) for record in batch.records}
        keys = [key for key in self.items if self._form_of(key, store) in forms]
        rows = [store.row(key[:3]) for key in keys]
        ids = [self.items[key].kb_id or "" for key in keys]
        entities = snapshot.kb.entities.positions_of(ids).tolist()
        corrected_mentions = [
            CorrectedMention(
                replace(store.records[row], label=key[3]),
                entity if kb_id else NO_ENTITY,
                row,
            )
            for key, row, kb_id, entity in zip(keys, rows, ids, entities)
        ]
        if self._fingerprint != snapshot.encoder.fingerprint:
            self._passages = EncodingCache()
            self._fingerprint = snapshot.encoder.fingerprint
        return CorrectionMatcher(
            corrected_mentions, snapshot, self._passages, cache
        ).match(batch.records)

    def _form_of(self, key: CorrectionKey, store: ExemplarStore) -> str | None:
        """The string of a corrected mention, None where it is not stored any more."""
        place = key[:3]
        row = store.row(place)
        if row < 0:
            return None
        if place not in self._forms:
            self._forms[place] = form_of(store.records[row])
        return self._forms[place]


def _with_given(
    neighbours: Neighbours, ranking: Ranking, given: dict[int, tuple[int, int, float]]
) -> tuple[Neighbours, Ranking]:
    """The same with the entities that were given, each by its exemplar. given: See ``apply``."""
    if not given:
        return neighbours, ranking
    mentions = list(given)
    rows, entities, logits = zip(*given.values())

    def with_first(table: np.ndarray, values: Any, missing: float = -1) -> np.ndarray:
        """A table with other values in its first column, which it has at least."""
        table = resized_table(table, max(table.shape[1], 1), missing).copy()
        table[mentions, 0] = values
        return table

    exemplars = neighbours.exemplars
    exemplar_scores = with_first(exemplars.scores, np.inf, -np.inf)
    neighbours = neighbours.with_exemplars(
        TopK(with_first(exemplars.ids, rows), exemplar_scores),
        with_first(neighbours.exemplar_entities, entities),
    )
    candidates = ranking.candidates
    scores = with_first(candidates.scores, logits, -np.inf)
    presence = ranking.presence.copy()
    presence[mentions] = logits
    return neighbours, Ranking(
        TopK(with_first(candidates.ids, entities), scores),
        with_first(ranking.exemplars, rows),
        presence,
    )
