"""What people have said of single mentions: that it is this entity, none, or not that one."""

from dataclasses import dataclass, replace
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
import srsly

from .exemplars import ExemplarStore, Key
from .neighbours import Neighbours
from .similarity import unit

CHANGED = (
    "entities",
    "entity_similarity",
    "exemplars",
    "exemplar_similarity",
    "exemplar_entity",
    "mentions",
    "mention_similarity",
)

# A mention of the same string this near to a corrected one (cosine) is corrected too.
ALIKE = 0.9


class Correction(NamedTuple):
    """What was said of a mention.

    kb_id: The entity that it is, "" for none in the knowledge base, None where only ``refused``
        was said: entities that it is not.
    before: The ids that the mention was stored with before, None where it was not stored.
    """

    kb_id: Optional[str]
    refused: Tuple[str, ...] = ()
    before: Optional[Tuple[str, ...]] = None


@dataclass(frozen=True)
class Asked:
    """Mentions that are being linked: their keys, what is read for them, vectors (prepared)."""

    keys: Sequence[Key]
    forms: Sequence[str]
    vectors: np.ndarray


class Corrections:
    """Corrections by the key of the mention, which is stored as an exemplar.

    They hold for the mention itself, and for mentions of the same string in much the same words.
    """

    def __init__(self) -> None:
        self.items: Dict[Key, Correction] = {}

    def __len__(self) -> int:
        return len(self.items)

    def to_bytes(self) -> bytes:
        return srsly.msgpack_dumps([[list(key), *item] for key, item in self.items.items()])

    @classmethod
    def from_bytes(cls, data: bytes) -> "Corrections":
        found = cls()
        for key, kb_id, refused, before in srsly.msgpack_loads(data) if data else ():
            before = None if before is None else tuple(before)
            found.items[tuple(key)] = Correction(kb_id, tuple(refused), before)
        return found

    def apply(
        self,
        neighbours: Neighbours,
        asked: Asked,
        store: ExemplarStore,
        positions_of: Callable[[Sequence[str]], np.ndarray],
    ) -> Neighbours:
        """Neighbours that leave corrected mentions no other choice."""
        matches = self._matches(asked, store)
        if not matches:
            return neighbours
        arrays = {name: getattr(neighbours, name).copy() for name in CHANGED}
        if not arrays["exemplars"].shape[1]:
            # An inference that looks at none still links what a person has said.
            for name in ("exemplars", "exemplar_entity"):
                arrays[name] = np.full((len(neighbours), 1), -1, dtype=np.int64)
            arrays["exemplar_similarity"] = np.full((len(neighbours), 1), -np.inf, np.float32)
        candidates = neighbours.candidates
        weighed = None if candidates is None else candidates.entities.copy()
        decided = np.zeros(len(neighbours), dtype=bool)
        corrected = np.zeros(len(neighbours), dtype=bool)
        corrected[list(matches)] = True
        for mention, row in matches.items():
            correction = self.items[store.items[row].key]
            # No other mention may carry it to an entity.
            arrays["mentions"][mention] = -1
            arrays["mention_similarity"][mention] = -np.inf
            position = int(positions_of([correction.kb_id])[0]) if correction.kb_id else -1
            if correction.kb_id is None or (correction.kb_id and position < 0):
                gone = positions_of(correction.refused)
                _leave_out(arrays, weighed, mention, gone[gone >= 0])
                continue
            _leave_out(arrays, weighed, mention, None)
            if position >= 0:
                arrays["exemplars"][mention, 0] = row
                arrays["exemplar_entity"][mention, 0] = position
                arrays["exemplar_similarity"][mention, 0] = 1.0
                decided[mention] = True
        if candidates is not None and weighed is not None:
            candidates = candidates._replace(entities=weighed)
        changed = replace(neighbours, candidates=candidates, decided=decided, corrected=corrected)
        return replace(changed, **arrays)

    def _matches(self, asked: Asked, store: ExemplarStore) -> Dict[int, int]:
        """For each mention that a correction holds for, the row of the corrected mention."""
        rows = {key: store.row(key) for key in self.items}
        by_form: Dict[str, List[int]] = {}
        for row in rows.values():
            item = store.items[row]
            by_form.setdefault((item.form or item.text).lower(), []).append(row)
        found = {}
        for mention, (key, form) in enumerate(zip(asked.keys, asked.forms)):
            if key in rows:
                found[mention] = rows[key]
                continue
            known = by_form.get(form.lower())
            if known:
                near = unit(store.vectors[known]) @ unit(asked.vectors[mention : mention + 1])[0]
                if near.max() >= ALIKE:
                    found[mention] = known[int(near.argmax())]
        return found


def _leave_out(
    arrays: Dict[str, np.ndarray],
    weighed: Optional[np.ndarray],
    mention: int,
    gone: Optional[np.ndarray],
) -> None:
    """Take entities out of what is near a mention, None for all; what is left moves up."""
    for owner, others in (
        ("entities", ("entity_similarity",)),
        ("exemplar_entity", ("exemplars", "exemplar_similarity")),
    ):
        out = np.ones(arrays[owner].shape[1], dtype=bool)
        if gone is not None:
            out = np.isin(arrays[owner][mention], gone)
        order = np.argsort(out, kind="stable")
        for name in (owner, *others):
            missing = -np.inf if arrays[name].dtype == np.float32 else -1
            arrays[name][mention] = np.where(out, missing, arrays[name][mention])[order]
    if weighed is not None:
        out = np.isin(weighed[mention], gone) if gone is not None else weighed[mention] >= 0
        weighed[mention][out] = -1
