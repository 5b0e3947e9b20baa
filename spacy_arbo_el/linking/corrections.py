"""Corrections of single mentions by people: this entity, none, or not that one."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import srsly

from ..base.arrays import TopK, resized_table, unit
from ..mentions.record import MentionBatch, MentionKey, MentionRecord, are_texts, check_key
from ..ranking.ranking import Ranking
from ..retrieval.datastore import Datastore
from ..retrieval.neighbours import Neighbours

# A mention with the same surface form whose cosine to a corrected one is at least this is
# corrected too.
MIN_COSINE = 0.9
# Log-odds of what a person has said; a probability of 1 in double precision.
CERTAIN_LOGIT = 40.0


class Correction(NamedTuple):
    """A correction of a mention.

    kb_id: The entity that it is, "" for none in the knowledge base, None where only entities were
        rejected.
    rejected: Entities that it is not.
    before: The ids that the mention was stored with before, None where it was not stored.
    """

    kb_id: str | None
    rejected: tuple[str, ...] = ()
    before: tuple[str, ...] | None = None


class Corrections:
    """Corrections by the key of their mention, an exemplar.

    A correction holds for the mention itself, and for mentions with the same surface form in a
    similar context.
    """

    def __init__(self) -> None:
        self.items: dict[MentionKey, Correction] = {}

    def __len__(self) -> int:
        return len(self.items)

    def to_bytes(self) -> bytes:
        return srsly.msgpack_dumps([[list(key), *item] for key, item in self.items.items()])

    @classmethod
    def from_bytes(cls, data: bytes) -> "Corrections":
        """Load the result of ``to_bytes``. Raises ValueError for a field of another type."""
        corrections = cls()
        items: Any = srsly.msgpack_loads(data)
        for key, kb_id, rejected, before in items:
            before = None if before is None else tuple(before)
            correction = Correction(kb_id, tuple(rejected), before)
            check_key(tuple(key))
            if not are_texts([kb_id or "", *rejected, *(before or ())]):
                raise ValueError(f"a correction has something else than texts: {correction!r:.80}")
            corrections.items[tuple(key)] = correction
        return corrections

    def forget_outdated(self, keys: Iterable[MentionKey], kb_id: str) -> None:
        """Forget corrections older than a mention's acceptance. What was said before the mentions
        became an entity: "none", or "not it".

        keys: The mentions.
        kb_id: The entity that they have become.
        """
        for key in keys:
            correction = self.items.get(key)
            if correction is not None and (correction.kb_id == "" or kb_id in correction.rejected):
                del self.items[key]

    def is_learned(self, key: MentionKey, kb_id: str) -> bool:
        """Return whether a person linked a mention to an entity."""
        correction = self.items.get(key)
        return correction is not None and correction.kb_id == kb_id

    def take_labels(self, records: Iterable[MentionRecord]) -> None:
        """Note that mentions were annotated after they were corrected.

        A correction that says something else is forgotten. One that says the same stays, and to
        forget it later leaves the annotation.
        """
        for record in records:
            correction = self.items.get(record.key)
            if correction is None or not record.kb_ids:
                continue
            if record.kb_ids == (correction.kb_id,):
                self.items[record.key] = correction._replace(before=record.kb_ids)
            else:
                del self.items[record.key]

    def apply(
        self,
        batch: MentionBatch,
        neighbours: Neighbours,
        ranking: Ranking,
        datastore: Datastore,
    ) -> tuple[Neighbours, Ranking, np.ndarray]:
        """Neighbours and ranking that leave corrected mentions no other choice.

        A mention whose entity was given has this one candidate and this one exemplar. Rejected
        entities are no candidates.

        RETURNS: Also (m,) bool, the mentions that a correction holds for. No other mention may
            influence them: they have no mentions as neighbours.
        """
        corrected = np.zeros(len(batch), dtype=bool)
        matches = self.matches(batch, datastore)
        if not matches:
            return neighbours, ranking, corrected
        corrected[list(matches)] = True
        keep = np.ones(ranking.candidates.ids.shape, dtype=bool)
        keep_exemplars = np.ones(neighbours.exemplars.ids.shape, dtype=bool)
        keep_texts = np.ones(neighbours.entities.ids.shape, dtype=bool)
        given: list[tuple[int, int, int]] = []
        for mention, row in matches.items():
            correction = self.items[datastore.exemplars.records[row].key]
            positions = datastore.kb.entities.positions_of(
                [correction.kb_id or "", *correction.rejected]
            )
            position, rejected = int(positions[0]), positions[1:][positions[1:] >= 0]
            if correction.kb_id == "" or position >= 0:
                keep[mention] = keep_exemplars[mention] = keep_texts[mention] = False
                if position >= 0:
                    given.append((mention, row, position))
            else:
                keep[mention] = ~np.isin(ranking.candidates.ids[mention], rejected)
                keep_texts[mention] = ~np.isin(neighbours.entities.ids[mention], rejected)
                owners = neighbours.exemplar_entities[mention]
                keep_exemplars[mention] = ~np.isin(owners, rejected)
        mentions = neighbours.mentions.where(~corrected[:, None])
        neighbours = _with_given_exemplars(neighbours, keep_exemplars, given)
        neighbours = replace(neighbours, entities=neighbours.entities.where(keep_texts))
        ranking = _with_given_candidates(ranking.where(keep), given)
        return neighbours.with_mentions(mentions), ranking, corrected

    def matches(self, batch: MentionBatch, datastore: Datastore) -> dict[int, int]:
        """Row of the corrected exemplar for each covered mention.

        Where candidates must have the type of a mention, mentions of another label are not alike.
        """
        if not self.items:
            return {}
        store, by_label = datastore.exemplars, datastore.settings.match_types
        rows = {key: row for key in self.items if (row := store.row(key)) >= 0}
        by_surface_form: dict[tuple[str, str], list[int]] = {}
        for row in rows.values():
            form = _form(store.records[row], by_label)
            by_surface_form.setdefault(form, []).append(row)
        matches = {}
        for mention, record in enumerate(batch.records):
            row, form = rows.get(record.key, -1), _form(record, by_label)
            if row >= 0 and (not by_label or store.records[row].label == record.label):
                matches[mention] = row
                continue
            same_form = by_surface_form.get(form)
            if same_form:
                own = unit(batch.encoded[mention : mention + 1])[0]
                cosines = unit(store.vectors[same_form]) @ own
                if cosines.max() >= MIN_COSINE:
                    matches[mention] = same_form[int(cosines.argmax())]
        return matches


def _form(record: MentionRecord, by_label: bool) -> tuple[str, str]:
    """A key of mentions that a correction may cover."""
    return (record.normalized or record.text).lower(), record.label if by_label else ""


def _with_given_exemplars(
    neighbours: Neighbours, keep: np.ndarray, given: list[tuple[int, int, int]]
) -> Neighbours:
    owners = TopK(neighbours.exemplar_entities, neighbours.exemplars.scores).where(keep)
    exemplars = neighbours.exemplars.where(keep)
    width = max(exemplars.width, 1)
    ids, scores = (array.copy() for array in _arrays(exemplars.resized(width)))
    entities = owners.resized(width).ids.copy()
    for mention, row, position in given:
        ids[mention, 0], scores[mention, 0], entities[mention, 0] = row, np.inf, position
    return neighbours.with_exemplars(TopK(ids, scores), entities)


def _with_given_candidates(ranking: Ranking, given: list[tuple[int, int, int]]) -> Ranking:
    width = max(ranking.candidates.width, 1)
    exemplars = resized_table(ranking.exemplars, width, -1)
    ids, scores = (array.copy() for array in _arrays(ranking.candidates.resized(width)))
    presence = ranking.presence.copy()
    for mention, row, position in given:
        ids[mention, 0], scores[mention, 0] = position, CERTAIN_LOGIT
        exemplars[mention, 0] = row
        presence[mention] = CERTAIN_LOGIT
    return Ranking(TopK(ids, scores), exemplars, presence)


def _arrays(table: TopK) -> tuple[np.ndarray, np.ndarray]:
    return table.ids, table.scores
