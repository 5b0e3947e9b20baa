"""The mentions of a part of a corpus as bytes, and as arrays by name."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import srsly

from ...base.arrays import OnAccess, TopK, int_array, offsets_of
from ...encoders.inputs import SpanInputs
from ...linking.corpus_mentions import CorpusPart
from ...mentions.record import MentionBatch, MentionRecord
from ...ranking.ranking import RankedMentions, Ranking
from ...retrieval.neighbours import Neighbours
from ...storage.files import pack_arrays, unpack_arrays

INPUTS = ("ids", "offsets", "passage", "first", "last", "marker")


def part_to_bytes(mentions: CorpusPart) -> bytes:
    """A part as bytes; scores are exact."""
    data, bounds = pack_records(mentions.ranked.batch.records)
    counts = int_array(mentions.counts)
    details = {"records": data, "record_bounds": bounds, "counts": counts}
    return pack_arrays({**arrays_of(mentions), **details})


def part_from_bytes(data: bytes) -> CorpusPart:
    """Load the result of ``part_to_bytes``."""
    arrays = unpack_arrays(data)
    bounds = arrays["record_bounds"]
    counts = arrays["counts"].tolist()
    records = list(packed_records(arrays["records"], bounds[:-1], bounds[1:]))
    numbers = arrays["documents"], len(counts)
    return CorpusPart(*mentions_of(arrays.__getitem__, records, *numbers), counts)


def arrays_of(mentions: CorpusPart) -> dict[str, np.ndarray]:
    """Everything of a part but the records, by name."""
    batch = mentions.ranked.batch
    neighbours = mentions.ranked.neighbours
    ranking = mentions.ranked.ranking
    tables = {
        "entities": neighbours.entities,
        "exemplars": neighbours.exemplars,
        "ranking": ranking.candidates,
        "candidates": mentions.candidates,
    }
    arrays = {
        "vectors": batch.encoded,
        "documents": batch.documents,
        "labels": batch.labels,
        "exemplar_entities": neighbours.exemplar_entities,
        "ranking_exemplars": ranking.exemplars,
        "presence": ranking.presence,
        "corrected": mentions.ranked.corrected,
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
    """The mentions and candidates of which ``arrays_of`` gave the arrays.

    array: Gives an array by its name.
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
    )
    ranking = Ranking(table("ranking"), array("ranking_exemplars"), array("presence"))
    return RankedMentions(batch, neighbours, ranking, array("corrected")), table(
        "candidates"
    )


def pack_records(records: Sequence[MentionRecord]) -> tuple[np.ndarray, np.ndarray]:
    """Pack records as bytes (uint8) with offsets (m + 1,). int64: where each begins and the last
    ends.
    """
    rows = [srsly.msgpack_dumps(record.values) for record in records]
    lengths = int_array([len(row) for row in rows])
    return np.frombuffer(b"".join(rows), dtype=np.uint8), offsets_of(lengths)


def packed_records(
    data: np.ndarray, starts: np.ndarray, stops: np.ndarray
) -> OnAccess[MentionRecord]:
    """Records that are unpacked one by one.

    data: (bytes,) uint8, mapped or in memory.
    starts, stops: (m,) int64, where each begins and ends.
    """

    def unpack(row: int) -> MentionRecord:
        values: Any = srsly.msgpack_loads(
            data[int(starts[row]) : int(stops[row])].tobytes()
        )
        return MentionRecord.from_values(values)

    return OnAccess(unpack, len(starts))
