"""Exemplars: labelled mentions, searched beside entities (MOLEMAN, §3)."""

from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import srsly

from ..base.arrays import AppendOnly, check_vectors, has_vector, int_array, take_rows
from ..base.errors import Errors
from ..encoders.inputs import SpanInputs
from ..kb.knowledge_base import ArboKB
from ..mentions.record import MentionKey, MentionRecord, check_encoded
from ..storage.files import pack_arrays, unpack_arrays


class ExemplarStore:
    """Labelled mentions with encoder inputs and vectors. They are in order of arrival.

    records: The ``n`` mentions, in plain values.
    inputs: The n spans that they are encoded from. A passage may hold several.
    vectors: (n, width) float32, after a ``sync``. They are raw, as the mention encoder gave them;
        those of accepted new entities are prepared, which makes no difference to comparisons.
    fingerprint: The encoder that the vectors come from.
    version: A number that grows with every new mention and every changed label.
    epoch: A number that grows when vectors are replaced or removed, but not when some are added.
    """

    def __init__(self) -> None:
        self.records: list[MentionRecord] = []
        self.inputs = SpanInputs.empty()
        self.fingerprint = ""
        self.version = 0
        self.epoch = 0
        self._vectors = AppendOnly.empty()
        self._readable = np.zeros(0, dtype=bool)
        self._entities: tuple[Any, np.ndarray] = (None, int_array())
        self._rows_with: dict[str, list[int]] = {}
        self._rows: dict[MentionKey, int] = {}

    def __len__(self) -> int:
        return len(self.records)

    @property
    def vectors(self) -> np.ndarray:
        """(n, width) float32, after a ``sync``."""
        return self._vectors.rows

    @property
    def readable(self) -> np.ndarray:
        """(n,) bool, whether the encoder can read a mention. The vectors of others are zeros."""
        start = len(self._readable)
        if start < len(self.vectors):
            self._readable = np.append(
                self._readable, has_vector(self.vectors[start:])
            )
        return self._readable

    def _set_vectors(self, vectors: np.ndarray) -> None:
        self._vectors = AppendOnly.of(np.ascontiguousarray(vectors, dtype=np.float32))
        self._readable = np.zeros(0, dtype=bool)
        self.epoch += 1

    def row(self, key: MentionKey) -> int:
        """Row of a mention, -1 if it is not stored."""
        return self._rows.get(key, -1)

    def with_form(self, form: str) -> list[int]:
        """Rows of the mentions with a surface form, which is in lower case."""
        return self._rows_with.get(form, [])

    def _index_forms(self, row: int) -> None:
        for form in forms_of(self.records[row]):
            insort(self._rows_with.setdefault(form, []), row)

    def extend(
        self,
        records: Sequence[MentionRecord],
        inputs: SpanInputs,
        vectors: np.ndarray | None = None,
    ) -> np.ndarray:
        """Store mentions. One that is stored already keeps its row and gets the new record.

        A mention that occurs several times, in copies of a document, is stored once, with its last
        record.

        inputs: One span per mention.
        vectors: (n, width) float32 of the present encoder; None to encode them at the next
            ``sync``.
        RETURNS: (n,) int64, the row of each.
        """
        if len(records) != len(inputs):
            raise Errors.E302(records=len(records), inputs=len(inputs))
        new = []
        for i in {record.key: i for i, record in enumerate(records)}.values():
            record = records[i]
            row = self.row(record.key)
            if row >= 0:
                if record != self.records[row]:
                    self._set_record(row, record)
                continue
            row = self._rows[record.key] = len(self.records)
            self.records.append(record)
            self._index_forms(row)
            new.append(i)
        if new:
            self.version += 1
            self.inputs = SpanInputs.concat([self.inputs, inputs.take(np.array(new))])
            complete = len(self.vectors) == len(self) - len(new)
            if vectors is not None and complete:
                self._vectors = self._vectors.with_rows(
                    check_vectors(vectors, len(records))[new]
                )
        return int_array([self._rows[record.key] for record in records])

    def remove(self, keys: Iterable[MentionKey]) -> None:
        """Remove mentions; those behind them move up."""
        removed = {self._rows[key] for key in keys if key in self._rows}
        if not removed:
            return
        remaining = int_array([row for row in range(len(self)) if row not in removed])
        if len(self.vectors):
            self._set_vectors(self.vectors[remaining[remaining < len(self.vectors)]])
        self.inputs = self.inputs.take(remaining)
        self._set_records(take_rows(self.records, remaining))

    def _set_record(self, row: int, record: MentionRecord) -> None:
        for form in forms_of(self.records[row]):
            self._rows_with[form].remove(row)
        self.records[row] = record
        self._index_forms(row)
        self.version += 1
        self._entities = None, int_array()

    def _set_records(self, records: list[MentionRecord]) -> None:
        self.records = records
        self.version += 1
        self._rows = {record.key: row for row, record in enumerate(records)}
        self._entities = None, int_array()
        self._rows_with = {}
        for row in range(len(self)):
            self._index_forms(row)

    def relabel(self, key: MentionKey, kb_ids: tuple[str, ...]) -> None:
        """Replace the gold ids of a mention. It counts as a change, whatever they were."""
        row = self._rows[key]
        self._set_record(row, replace(self.records[row], kb_ids=kb_ids))

    def sync(
        self,
        encode: Callable[[SpanInputs], np.ndarray],
        fingerprint: str,
        keep_old: bool = False,
    ) -> int:
        """Encode mentions without vectors, or all for another encoder. RETURNS: How many.

        keep_old: Whether mentions keep their vectors, whatever encoder they are of.
        """
        is_other = self.fingerprint != fingerprint
        if is_other and not keep_old:
            self._set_vectors(AppendOnly.empty().rows)
        missing = np.arange(len(self.vectors), len(self))
        if is_other and len(self.vectors):
            # Vectors of several encoders are of none.
            fingerprint = "" if len(missing) else self.fingerprint
        if len(missing):
            vectors = check_vectors(encode(self.inputs.take(missing)), len(missing))
            self._vectors = self._vectors.with_rows(vectors)
        self.fingerprint = fingerprint
        return len(missing)

    def entities(self, kb: ArboKB) -> np.ndarray:
        """Entity of each exemplar: (n,) int64. -1 where none of its ids is in the KB.

        A composite mention belongs to the first of its ids that is in the KB.
        """
        state = kb, kb.edits
        entities = self._entities[1] if self._entities[0] == state else int_array()
        new = self.records[len(entities) :]
        if new:
            ids = [kb_id for record in new for kb_id in record.kb_ids]
            position_of = dict(zip(ids, kb.entities.positions_of(ids).tolist()))
            options = (map(position_of.__getitem__, record.kb_ids) for record in new)
            first = [next((p for p in group if p >= 0), -1) for group in options]
            entities = np.append(entities, int_array(first))
            self._entities = state, entities
        return entities

    def to_bytes(self) -> bytes:
        records = [record.values for record in self.records]
        arrays = {"vectors": self.vectors, **self.inputs.to_dict()}
        return srsly.msgpack_dumps(
            {
                "records": records,
                "arrays": pack_arrays(arrays),
                "fingerprint": self.fingerprint,
            }
        )

    def from_bytes(self, data: bytes) -> "ExemplarStore":
        """Load the result of ``to_bytes``. Raises ValueError for what can't be searched."""
        msg = srsly.msgpack_loads(data)
        arrays = unpack_arrays(msg["arrays"])
        records = list(map(MentionRecord.from_values, msg["records"]))
        inputs = SpanInputs.from_dict(arrays)
        check_encoded(records, inputs, arrays["vectors"])
        if len({record.key for record in records}) < len(records):
            raise ValueError("a mention is stored twice")
        if not isinstance(msg["fingerprint"], str):
            raise ValueError("the fingerprint of the encoder is no text")
        self._set_records(records)
        self.inputs = inputs
        self.fingerprint = msg["fingerprint"]
        self._set_vectors(arrays["vectors"])
        return self


def forms_of(record: MentionRecord) -> list[str]:
    """The surface forms of a mention, as it is and normalized: in lower case, each once."""
    forms = record.text, record.normalized or record.text
    return list(dict.fromkeys(form.lower() for form in forms))
