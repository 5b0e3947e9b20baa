"""The mentions of a corpus in a canonical order, and parts of them as .npz files.

The order does not depend on the order of reading.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, overload

import numpy as np
import srsly

from ..base.arrays import TopK, offsets_of, ragged_ranges
from ..encoders.inputs import SpanInputs
from ..mentions.record import MentionBatch, MentionRecord
from ..ranking.decisions import MAX_CONSIDERED
from ..ranking.ranking import RankedMentions, Ranking
from ..retrieval.neighbours import Neighbours
from ..storage.files import pack_arrays, unpack_arrays

INPUTS = ("ids", "offsets", "passage", "first", "last", "marker")


@dataclass(frozen=True)
class CorpusPart:
    """The mentions of some documents, before any decision.

    ranked: The mentions, without neighbours among each other; their rankings hold the
        ``MAX_CONSIDERED`` best candidates.
    candidates: All ranked candidates, for people to read; ids are int32.
    counts: How many mentions each document has.
    """

    ranked: RankedMentions
    candidates: TopK
    counts: list[int]

    @classmethod
    def of(cls, ranked: RankedMentions, counts: list[int], n_exemplars: int) -> "CorpusPart":
        """The stored part of mentions.

        n_exemplars: How many exemplars the inference procedure looks at; it may look at as many
            texts.
        """
        full = ranked.ranking.candidates
        candidates = TopK(full.ids.astype(np.int32), full.scores)
        return cls(_narrowed(ranked, n_exemplars), candidates, counts)

    @classmethod
    def concat(cls, parts: Sequence["CorpusPart"]) -> "CorpusPart":
        """The documents of one or more parts, one after the other."""
        return cls(
            RankedMentions.concat([part.ranked for part in parts]),
            TopK.concat([part.candidates for part in parts]),
            [count for part in parts for count in part.counts],
        )

    def to_bytes(self) -> bytes:
        """The part as bytes; scores are exact."""
        data, bounds = pack_records(self.ranked.batch.records)
        metric = np.array(self.ranked.neighbours.metric)
        counts = np.array(self.counts, np.int64)
        own = {"records": data, "record_bounds": bounds, "metric": metric, "counts": counts}
        return pack_arrays({**self.arrays(), **own})

    @classmethod
    def from_bytes(cls, data: bytes) -> "CorpusPart":
        """Load the result of ``to_bytes``."""
        arrays = unpack_arrays(data)
        bounds = arrays["record_bounds"]
        counts = arrays["counts"].tolist()
        records = list(PackedRecords(arrays["records"], bounds[:-1], bounds[1:]))
        numbers = arrays["documents"], len(counts)
        return cls(*mentions_of(arrays.__getitem__, records, *numbers), counts)

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything but the records, by name."""
        batch = self.ranked.batch
        neighbours = self.ranked.neighbours
        ranking = self.ranked.ranking
        tables = {
            "entities": neighbours.entities,
            "exemplars": neighbours.exemplars,
            "ranking": ranking.candidates,
            "candidates": self.candidates,
        }
        arrays = {
            "vectors": batch.encoded,
            "documents": batch.documents,
            "labels": batch.labels,
            "exemplar_entities": neighbours.exemplar_entities,
            "ranking_exemplars": ranking.exemplars,
            "presence": ranking.presence,
            "corrected": self.ranked.corrected,
            **{f"{name}_ids": table.ids for name, table in tables.items()},
            **{f"{name}_scores": table.scores for name, table in tables.items()},
        }
        return {**arrays, **{f"inputs_{k}": v for k, v in batch.inputs.to_dict().items()}}


def mentions_of(
    array: Callable[[str], np.ndarray],
    records: Sequence[MentionRecord],
    documents: np.ndarray,
    n_documents: int,
) -> tuple[RankedMentions, TopK]:
    """The mentions and candidates of which ``CorpusPart.arrays`` gave the arrays.

    array: Gives an array by its name; "metric" is that of the neighbours.
    documents: (m,) int64, the number of each mention's document.
    """

    def table(name: str) -> TopK:
        return TopK(array(f"{name}_ids"), array(f"{name}_scores"))

    inputs = SpanInputs.from_dict({name: array(f"inputs_{name}") for name in INPUTS})
    labels = array("labels")
    vectors = array("vectors")
    batch = MentionBatch(records, inputs, documents, labels, n_documents, vectors)
    neighbours = Neighbours(
        table("entities"),
        table("exemplars"),
        TopK.empty(len(batch)),
        array("exemplar_entities"),
        str(array("metric")),
    )
    ranking = Ranking(table("ranking"), array("ranking_exemplars"), array("presence"))
    return RankedMentions(batch, neighbours, ranking, array("corrected")), table("candidates")


def pack_records(records: Sequence[MentionRecord]) -> tuple[np.ndarray, np.ndarray]:
    """Pack records as bytes (uint8) with offsets (m + 1,). int64: where each begins and the last
    ends.
    """
    rows = [srsly.msgpack_dumps(record.values) for record in records]
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    return np.frombuffer(b"".join(rows), dtype=np.uint8), offsets_of(lengths)


class PackedRecords(Sequence[MentionRecord]):
    """Records that are unpacked one by one on access.

    data: (bytes,) uint8, mapped or in memory.
    starts, stops: (m,) int64, where each begins and ends.
    """

    def __init__(self, data: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> None:
        self._data = data
        self._starts = starts
        self._stops = stops

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, which: int) -> MentionRecord: ...

    @overload
    def __getitem__(self, which: slice) -> list[MentionRecord]: ...

    def __getitem__(self, which: int | slice) -> MentionRecord | list[MentionRecord]:
        if isinstance(which, slice):
            return [self[row] for row in range(*which.indices(len(self)))]
        data = self._data[int(self._starts[which]) : int(self._stops[which])]
        values: Any = srsly.msgpack_loads(data.tobytes())
        return MentionRecord.from_values(values)


def _narrowed(ranked: RankedMentions, n_exemplars: int) -> RankedMentions:
    """Keep only the neighbours and candidates that decisions need."""
    n_entities = max(MAX_CONSIDERED, n_exemplars)
    neighbours = ranked.neighbours.narrowed(n_entities, n_exemplars)
    return replace(ranked, neighbours=neighbours, ranking=ranked.ranking.first(MAX_CONSIDERED))


@dataclass(frozen=True)
class CorpusMentions:
    """The mentions of a corpus.

    The documents are in the order of their texts' fingerprints, so that nothing depends on the
    order in which they were read.

    places: For each document, in the order in which they were read, its mentions.
    documents: (m,) int64, the number of each mention's document in that order.
    ranked: The mentions; their rankings hold the ``MAX_CONSIDERED`` best candidates.
    candidates: All ranked candidates, for people to read; ids are int32.
    """

    places: Sequence[range]
    documents: np.ndarray
    ranked: RankedMentions
    candidates: TopK

    @classmethod
    def joined(cls, parts: Sequence[CorpusPart]) -> "CorpusMentions":
        """Join all parts' mentions, without mutual neighbours.

        parts: In the order in which their documents were read; at least one.
        """
        part = CorpusPart.concat(parts)
        rows, places = canonical_order(part.ranked.batch.records, part.counts)
        documents = part.ranked.batch.documents[rows]
        return cls(places, documents, _reordered(part.ranked, rows), part.candidates.take(rows))


def canonical_order(
    records: Sequence[MentionRecord], counts: Sequence[int]
) -> tuple[np.ndarray, list[range]]:
    """Order documents independently of the order of reading.

    records: The mentions of all documents.
    counts: How many mentions each document has.
    RETURNS: The numbers of the mentions in that order, (m,) int64; and for each document, in the
        order in which they were read, where its mentions are in it.
    """
    lengths = np.array(counts, dtype=np.int64)
    starts = offsets_of(lengths)

    def mentions(number: int) -> list[tuple[object, ...]]:
        own = records[int(starts[number]) : int(starts[number + 1])]
        return [(record.key, record.label, record.doc_id) for record in own]

    texts = [records[first].key[0] if n else "" for first, n in zip(starts.tolist(), counts)]
    by_text = sorted(range(len(texts)), key=texts.__getitem__)
    # Of documents with the same text, all mentions are compared.
    groups = (list(group) for _, group in groupby(by_text, key=texts.__getitem__))
    order = [n for group in groups for n in (sorted(group, key=mentions) if group[1:] else group)]
    rows = ragged_ranges(starts[order], lengths[order])
    places = [range(0)] * len(texts)
    at = 0
    for number in order:
        places[number] = range(at, at + counts[number])
        at += counts[number]
    return rows, places


def numbered(documents: np.ndarray) -> np.ndarray:
    """Renumber documents (m,) int64 from 0 in given order."""
    return np.cumsum(np.diff(documents, prepend=documents[:1]) != 0)


def _reordered(ranked: RankedMentions, rows: np.ndarray) -> RankedMentions:
    """Reorder mentions that have no mutual neighbours yet."""
    batch = ranked.batch.take(rows)
    neighbours = ranked.neighbours
    return RankedMentions(
        # Whole documents move: they are numbered anew.
        replace(batch, documents=numbered(batch.documents)),
        Neighbours(
            neighbours.entities.take(rows),
            neighbours.exemplars.take(rows),
            TopK.empty(len(rows)),
            neighbours.exemplar_entities[rows],
            neighbours.metric,
        ),
        ranked.ranking.take(rows),
        ranked.corrected[rows],
    )
