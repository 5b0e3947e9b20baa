"""Exemplars: labelled mentions that are searched beside the entities (MOLEMAN, §3)."""

from dataclasses import dataclass, replace
from typing import Callable, Dict, Iterable, List, Optional, Sequence, Tuple

import numpy as np
import srsly

from ..encoders.sequences import Sequences
from ..errors import Errors
from ..io import pack_arrays, unpack_arrays
from ..kb.vectors import check_vectors

Key = Tuple[str, int, int]


@dataclass(frozen=True)
class Labelled:
    """What is known of one labelled mention.

    key: Identifies it: fingerprint of its document's text, start and end character.
    kb_ids: Its gold ids, several for a composite mention, none for one outside the KB.
    text, context: The mention and the text round it, for people to read.
    label: The span's label, such as "Disease"; may be empty.
    form: What is read for the mention: its text, unless abbreviations are written out.
    document: Its document's ``doc.user_data["doc_id"]``, if it has one.
    """

    key: Key
    kb_ids: Tuple[str, ...]
    text: str
    context: str
    label: str = ""
    form: str = ""
    document: str = ""


class ExemplarStore:
    """Labelled mentions, their windows and their vectors, in order of arrival.

    items: n ``Labelled``.
    windows: their n ``Sequences``.
    vectors: (n, width) float32, after a ``sync``: raw as the mention encoder gave them; those of
        new entities that were accepted are prepared for comparing, which comes to the same.
    fingerprint: Names the encoder they come from.
    version: A number that grows with every new mention and every changed label.
    """

    def __init__(self) -> None:
        self.items: List[Labelled] = []
        self.windows = Sequences.empty()
        self.vectors = np.zeros((0, 0), dtype=np.float32)
        self.fingerprint = ""
        self.version = 0
        self._rows: Dict[Key, int] = {}

    def __len__(self) -> int:
        return len(self.items)

    def row(self, key: Key) -> int:
        """Where the mention stands, -1 where it is not stored."""
        return self._rows.get(key, -1)

    def extend(
        self,
        items: Sequence[Labelled],
        windows: Sequences,
        vectors: Optional[np.ndarray] = None,
    ) -> np.ndarray:
        """Store mentions that are not there yet; one that is keeps its row and gets the new label.

        vectors: (len(items), width) float32 of the present encoder, where they are known.
        RETURNS: (len(items),) int64, the row of each.
        """
        if len(items) != len(windows):
            raise ValueError(Errors.E302.format(items=len(items), windows=len(windows)))
        new = []
        for i, item in enumerate(items):
            row = self.row(item.key)
            if row >= 0:
                self.version += self.items[row] != item
                self.items[row] = item
                continue
            self._rows[item.key] = len(self.items)
            self.items.append(item)
            new.append(i)
        if new:
            self.version += 1
            self.windows = Sequences.concat([self.windows, windows.take(np.array(new))])
            complete = len(self.vectors) == len(self) - len(new)
            if vectors is not None and complete:
                known = [self.vectors] if len(self.vectors) else []
                self.vectors = np.concatenate([*known, check_vectors(vectors, len(items))[new]])
        return np.array([self._rows[item.key] for item in items], dtype=np.int64)

    def remove(self, keys: Iterable[Key]) -> None:
        """Take mentions out; the others move up."""
        gone = {self._rows[key] for key in keys if key in self._rows}
        if not gone:
            return
        kept = np.array([row for row in range(len(self)) if row not in gone], dtype=np.int64)
        if len(self.vectors):
            self.vectors = self.vectors[kept[kept < len(self.vectors)]]
        self.windows = self.windows.take(kept)
        self.items = [self.items[row] for row in kept.tolist()]
        self._rows = {item.key: row for row, item in enumerate(self.items)}
        self.version += 1

    def relabel(self, key: Key, kb_ids: Tuple[str, ...]) -> None:
        """Give a mention other gold ids."""
        row = self._rows[key]
        self.items[row] = replace(self.items[row], kb_ids=kb_ids)
        self.version += 1

    def sync(self, encode: Callable[[Sequences], np.ndarray], fingerprint: str) -> int:
        """Encode what has no vector yet, or all of it where the vectors are another encoder's.

        RETURNS: The number of mentions encoded.
        """
        if self.fingerprint != fingerprint:
            self.vectors = np.zeros((0, 0), dtype=np.float32)
        known = len(self.vectors)
        missing = len(self) - known
        if missing:
            new = check_vectors(encode(self.windows.take(np.arange(known, len(self)))), missing)
            self.vectors = np.concatenate([self.vectors, new]) if known else new
        self.fingerprint = fingerprint
        return missing

    def entities(self, positions_of: Callable[[Sequence[str]], np.ndarray]) -> np.ndarray:
        """(n,) int64, the entity of each exemplar, -1 where none of its ids is in the KB.

        positions_of: Function from ids to the entities' places in the KB, -1 for none. A composite
            mention stands for the first of its ids that is there.
        """
        ids = [kb_id for item in self.items for kb_id in item.kb_ids]
        place = dict(zip(ids, positions_of(ids).tolist()))
        options = ((place[kb_id] for kb_id in item.kb_ids) for item in self.items)
        found = [next((p for p in group if p >= 0), -1) for group in options]
        return np.array(found, dtype=np.int64)

    def to_bytes(self) -> bytes:
        items = [
            [list(i.key), list(i.kb_ids), i.text, i.context, i.label, i.form, i.document]
            for i in self.items
        ]
        arrays = {"vectors": self.vectors, **self.windows.to_dict()}
        return srsly.msgpack_dumps(
            {"items": items, "arrays": pack_arrays(arrays), "fingerprint": self.fingerprint}
        )

    def from_bytes(self, data: bytes) -> "ExemplarStore":
        msg = srsly.msgpack_loads(data)
        arrays = unpack_arrays(msg["arrays"])
        self.items = [
            Labelled(tuple(key), tuple(kb_ids), *rest) for key, kb_ids, *rest in msg["items"]
        ]
        self._rows = {item.key: row for row, item in enumerate(self.items)}
        self.windows = Sequences.from_dict(arrays)
        self.vectors = arrays["vectors"]
        self.fingerprint = msg["fingerprint"]
        if not len(self.items) == len(self.windows) == len(self.vectors):
            raise ValueError(Errors.E302.format(items=len(self.items), windows=len(self.windows)))
        return self
