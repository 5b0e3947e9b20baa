"""Mentions of a part of a corpus as bytes; those of all parts, their index and decisions in files.

A corpus may have more mentions than fit into memory. Whoever works on some of them, or on some of
their values, reads only these.
"""

import json
import os
from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import srsly

from ...base.arrays import OnAccess, TopK, int_array, offsets_of, resized_table
from ...encoders.inputs import SpanInputs
from ...linking.corpus import CorpusDecisions
from ...linking.corpus_mentions import (
    CorpusMentions,
    CorpusPart,
    canonical_order,
    numbered,
)
from ...mentions.record import MentionBatch, MentionRecord
from ...ranking.decisions import Decisions, Step
from ...ranking.ranking import RankedMentions, Ranking
from ...retrieval.index.approximate import read_index
from ...retrieval.mention_search import AllPairs, Cells, CorpusSearch
from ...retrieval.neighbours import Neighbours
from ...retrieval.similarity import Cosine, Dot, NegativeSquaredEuclidean, Similarity
from ...storage.files import pack_arrays, unpack_arrays, write_json
from ...storage.folders import FolderKind, replacing_folder

# Gives the parts of a corpus, in the order in which their documents were read, anew each time.
ReadParts = Callable[[], Iterable[CorpusPart]]
FOLDER = FolderKind(
    "values of a corpus", lambda folder: r"[a-z_]+\.(npy|bin|json|faiss)"
)
RECORDS = "records.bin"
COVERAGE = "coverage.json"
# The arrays of the spans that mentions are encoded from.
INPUTS = ("ids", "offsets", "passage", "first", "last", "marker")
# Arrays of word pieces and passages, which stay in the order in which documents were read.
_AS_READ = ("inputs_ids", "inputs_offsets")
# What kinds of steps are written as.
KINDS = ("entity", "exemplar", "mention")
# Mentions whose paths are in memory as lists at a time.
PATHS = 1 << 16
ABOUT = "search.json"
ROWS = "searched.npy"
CELLS = "cells.faiss"
# Whether FAISS can map a file of cells.
MAPS_CELLS = os.name == "posix"
# The arrays with several values per mention.
_TABLES = frozenset(
    ["vectors", "exemplar_entities", "ranking_exemplars"]
    + [
        f"{table}_{values}"
        for table in ("entities", "exemplars", "ranking", "candidates")
        for values in ("ids", "scores")
    ]
)


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


def mapped_array(folder: Path, name: str) -> np.ndarray:
    """An array of a folder, mapped. Changes would stay in memory."""
    return np.asarray(
        np.load(folder / f"{name}.npy", mmap_mode="c", allow_pickle=False)
    )


def write_mentions(folder: Path, read: ReadParts) -> None:
    """Write all parts' mentions. ``CorpusMentions.joined`` says how they are joined.

    One part is in memory at a time, and some numbers for each mention. A folder that is there is
    replaced in one step.

    read: Gives the parts; it is called twice.
    """
    with replacing_folder(folder, FOLDER) as new:
        layout = _Layout(new, read())
        layout.fill(read())


def read_mentions(folder: Path) -> CorpusMentions:
    """Map the result of ``write_mentions``."""
    mapped = partial(mapped_array, folder)
    # The first mention of each document and the one behind its last.
    bounds = mapped("places")
    places = OnAccess(lambda document: range(*bounds[document].tolist()), len(bounds))
    records = _records(folder, mapped("record_starts"), mapped("record_stops"))
    mentions = mentions_of(mapped, records, mapped("numbers"), len(places))
    return CorpusMentions(places, mapped("documents"), *mentions)


def _records(
    folder: Path, starts: np.ndarray, stops: np.ndarray
) -> OnAccess[MentionRecord]:
    # An empty file cannot be mapped.
    data = (
        np.memmap(folder / RECORDS, mode="r")
        if len(starts)
        else np.zeros(0, dtype=np.uint8)
    )
    return packed_records(np.asarray(data), starts, stops)


class _Layout:
    """Places of the mentions of each part.

    folder: Where the files are put. The records are written here.
    """

    def __init__(self, folder: Path, batches: Iterable[CorpusPart]) -> None:
        self.folder = folder
        self._shapes: dict[str, tuple[np.dtype, int]] = {}
        self._passages = 0
        self._pieces = 0
        counts = array("q")
        lengths = array("q")
        with (folder / RECORDS).open("wb") as file:
            for batch in batches:
                counts.extend(batch.counts)
                data, record_bounds = pack_records(batch.ranked.batch.records)
                lengths.extend(np.diff(record_bounds).tolist())
                file.write(data.tobytes())
                self._measure(batch)
        bounds = offsets_of(int_array(lengths))
        records = _records(folder, bounds[:-1], bounds[1:])
        rows, places = canonical_order(records, counts)
        # From the mentions as they were read to their rows.
        self._row_of = np.empty(len(rows), dtype=np.int64)
        self._row_of[rows] = np.arange(len(rows))
        self._save(
            "places", np.array([(p.start, p.stop) for p in places]).reshape(-1, 2)
        )
        self._save("record_starts", bounds[:-1][rows])
        self._save("record_stops", bounds[1:][rows])

    def _measure(self, batch: CorpusPart) -> None:
        for name, values in arrays_of(batch).items():
            width = values.shape[1] if values.ndim == 2 else 0
            if len(batch.ranked.batch) or name not in self._shapes:
                widest = self._shapes.get(name, (values.dtype, 0))[1]
                self._shapes[name] = values.dtype, max(width, widest)
        inputs = batch.ranked.batch.inputs
        self._passages += inputs.passages
        self._pieces += len(inputs.ids)

    def _save(self, name: str, numbers: np.ndarray) -> None:
        np.save(self.folder / f"{name}.npy", numbers.astype(np.int64, copy=False))

    def fill(self, batches: Iterable[CorpusPart]) -> None:
        """Write the arrays.

        batches: The same as before.
        """
        out = {name: self._new(name) for name in self._shapes}
        start = document = passage = piece = 0
        for batch in batches:
            rows = self._row_of[start : start + len(batch.ranked.batch)]
            arrays = arrays_of(batch)
            inputs = batch.ranked.batch.inputs
            arrays["documents"] = arrays["documents"] + document
            arrays["inputs_passage"] = arrays["inputs_passage"] + passage
            pieces = inputs.ids
            passages = inputs.offsets[1:] + piece
            out["inputs_ids"][piece : piece + len(pieces)] = pieces
            out["inputs_offsets"][passage + 1 : passage + 1 + len(passages)] = passages
            for name in out.keys() - set(_AS_READ):
                values = arrays[name]
                if values.ndim == 2:
                    # Padded as ``TopK`` is.
                    missing = -np.inf if values.dtype.kind == "f" else -1
                    values = resized_table(values, out[name].shape[1], missing)
                out[name][rows] = values
            start += len(rows)
            document += len(batch.counts)
            passage += len(passages)
            piece += len(pieces)
        self._save("numbers", numbered(out["documents"]))
        for written in out.values():
            written.flush()

    def _new(self, name: str) -> np.memmap:
        dtype, width = self._shapes[name]
        sizes = {"inputs_ids": self._pieces, "inputs_offsets": self._passages + 1}
        count = sizes.get(name, len(self._row_of))
        shape = (count, width) if name in _TABLES else (count,)
        path = self.folder / f"{name}.npy"
        return np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)


def write_search(folder: Path, search: CorpusSearch) -> None:
    """Write a search index to a folder."""
    index = search.index
    if isinstance(index, Cells):
        faiss.write_index(index.index, str(folder / CELLS))
    else:
        np.save(folder / ROWS, index.rows, allow_pickle=False)
    details = {
        "count": search.count,
        "metric": index.similarity.metric,
        "normalize": index.similarity.normalize,
    }
    write_json(folder / ABOUT, details)


def read_search(folder: Path, vectors: np.ndarray) -> CorpusSearch:
    """Load the result of ``write_search``. The cells stay in their file, which is mapped.

    vectors: Those that the search was built over.
    """
    details = json.loads((folder / ABOUT).read_bytes())
    similarity: Similarity = NegativeSquaredEuclidean()
    if details["metric"] != similarity.metric:
        similarity = Cosine() if details["normalize"] else Dot()
    if not (folder / CELLS).is_file():
        rows = np.load(folder / ROWS, allow_pickle=False)
        return CorpusSearch(
            vectors, details["count"], AllPairs.over(vectors, rows, similarity)
        )
    index = read_index(folder / CELLS, faiss.IO_FLAG_MMAP if MAPS_CELLS else 0)
    if MAPS_CELLS:
        # FAISS would read ahead with 32 threads for each search.
        faiss.downcast_InvertedLists(index.invlists).prefetch_nthread = 0
    return CorpusSearch(
        vectors, details["count"], Cells.over(vectors, similarity, index)
    )


def write_decisions(folder: Path, decided: CorpusDecisions) -> None:
    """Write decisions on a corpus's mentions, all or none of them."""
    decisions = decided.decisions
    count = len(decided.decisions.entities)
    number_of: dict[str, int] = {}
    numbers = np.fromiter(
        (number_of.setdefault(id_, len(number_of)) for id_ in decided.cluster_ids),
        np.int64,
        count,
    )
    starts = range(0, count, PATHS)
    blocks = [_steps(decisions.paths[start : start + PATHS]) for start in starts] or [
        _steps([])
    ]
    lengths, kinds, refs, logits = (np.concatenate(arrays) for arrays in zip(*blocks))
    with replacing_folder(folder, FOLDER) as new:
        for name, array in {
            "entities": decisions.entities,
            "logits": decisions.logits,
            "cluster_numbers": numbers,
            "cluster_ids": np.array(list(number_of), dtype=str),
            "step_bounds": offsets_of(lengths),
            "step_kinds": kinds,
            "step_refs": refs,
            "step_logits": logits,
        }.items():
            np.save(new / f"{name}.npy", array, allow_pickle=False)
        write_json(new / COVERAGE, decided.coverage)


def _steps(paths: Sequence[list[Step]]) -> tuple[np.ndarray, ...]:
    """Lengths of paths, and their steps' kinds, numbers, log-odds."""
    steps = [step for path in paths for step in path]
    return (
        int_array([len(path) for path in paths]),
        np.array([KINDS.index(step.kind) for step in steps], dtype=np.uint8),
        int_array([step.ref for step in steps]),
        np.array([step.logit for step in steps], dtype=np.float64),
    )


def read_decisions(folder: Path) -> CorpusDecisions:
    """Map the result of ``write_decisions``."""
    mapped = partial(mapped_array, folder)
    entities = mapped("entities")
    bounds = mapped("step_bounds")
    kinds, refs, logits = (
        mapped(f"step_{name}") for name in ("kinds", "refs", "logits")
    )
    ids = mapped("cluster_ids")
    numbers = mapped("cluster_numbers")

    def path(mention: int) -> list[Step]:
        steps = range(int(bounds[mention]), int(bounds[mention + 1]))
        return [
            Step(KINDS[kinds[step]], int(refs[step]), float(logits[step]))
            for step in steps
        ]

    def cluster_id(mention: int) -> str:
        return str(ids[numbers[mention]])

    decisions = Decisions(entities, mapped("logits"), OnAccess(path, len(entities)))
    coverage = json.loads((folder / COVERAGE).read_bytes())
    return CorpusDecisions(decisions, OnAccess(cluster_id, len(numbers)), coverage)
