"""New entities as bytes, and checks of what was read. Nothing leads outside."""

import gc
from collections.abc import Mapping
from typing import Any

import numpy as np
import srsly

from ..base.arrays import check_vectors
from ..base.errors import ArboError, Errors
from ..encoders.inputs import SpanInputs, check_inputs
from ..mentions.record import MentionRecord, are_texts, check_records
from ..storage.files import pack_arrays, unpack_arrays
from .decision_log import DecisionLog, Entry, clusters_of
from .entities import NearestEntity
from .store import Clusters, Unlinked

FORMAT = 3
# Attributes of ``NewEntities`` beside its mentions and clusters.
SETTINGS = ("log", "threshold", "fingerprint", "documents")


def pack(mentions: Unlinked, clusters: Clusters, settings: Mapping[str, Any]) -> bytes:
    """New entities as bytes.

    settings: The attributes of ``SETTINGS``.
    """
    arrays = {
        "vectors": mentions.vectors,
        "documents": mentions.documents,
        "of_mention": clusters.of_mention,
        "merged_into": clusters.merged_into,
        **mentions.inputs.to_dict(),
    }
    return srsly.msgpack_dumps(
        {
            "format": FORMAT,
            "arrays": pack_arrays(arrays),
            "records": [record.values for record in mentions.records],
            "nearest": [[list(entity) for entity in row] for row in mentions.nearest],
            "ids": clusters.ids,
            "accepted": list(clusters.accepted.items()),
            "rejected": list(clusters.rejected),
            **settings,
        }
    )


def unpack(data: bytes) -> tuple[Unlinked, Clusters, dict[str, Any]]:
    """Unpack the result of ``pack``. ValueError where the bytes are something else."""
    collects_garbage = gc.isenabled()
    try:
        msg = srsly.msgpack_loads(data)
        if msg["format"] != FORMAT:
            raise ValueError(f"format {msg['format']}")
        arrays = unpack_arrays(msg["arrays"])
        mentions = Unlinked(
            list(map(MentionRecord.from_values, msg["records"])),
            arrays["documents"],
            [[NearestEntity(*values) for values in row] for row in msg["nearest"]],
            SpanInputs.from_dict(arrays),
            arrays["vectors"],
        )
        clusters = Clusters(
            arrays["of_mention"],
            arrays["merged_into"],
            msg["ids"],
            dict(msg["accepted"]),
            dict.fromkeys(msg["rejected"]),
        )
        check_mentions(mentions)
        check_clusters(clusters, len(mentions))
        settings = {name: msg[name] for name in SETTINGS}
        check_settings(**settings)
        check_decisions(settings["log"], clusters)
        return mentions, clusters, settings
    # What msgpack and NumPy raise on broken bytes has no common base class.
    except Exception as error:
        raise ArboError(Errors.E708.format(problem=error)) from error
    finally:
        # srsly turns it off to unpack, and leaves it off where that fails.
        if collects_garbage:
            gc.enable()


def check_mentions(mentions: Unlinked) -> None:
    """Raise ValueError for a field of mentions with another type or length than it should have."""
    check_records(mentions.records)
    check_inputs(mentions.inputs)
    count = len(mentions)
    if count != len(mentions.inputs) or count != len(mentions.nearest):
        raise ValueError("rows of different lengths")
    documents = mentions.documents
    _check_numbers("documents", documents, count)
    if (documents < 0).any() or (documents[1:] < documents[:-1]).any():
        raise ValueError("the documents are not in order")
    if mentions.vectors.dtype != np.float32:
        raise ValueError("the vectors are not of type float32")
    if count:
        check_vectors(mentions.vectors, count)
    for nearest in mentions.nearest:
        for entity in nearest:
            _check_nearest(entity)


def check_clusters(clusters: Clusters, count: int) -> None:
    """Raise ValueError for dangling cluster numbers or circular merges.

    count: The number of mentions.
    """
    total = len(clusters.ids)
    _check_numbers("of_mention", clusters.of_mention, count)
    _check_numbers("merged_into", clusters.merged_into, total)
    for array in (clusters.of_mention, clusters.merged_into):
        if len(array) and (array.min() < 0 or array.max() >= total):
            raise ValueError("a number leads to no cluster")
    _check_roots(clusters.merged_into)
    if not are_texts(clusters.ids) or len(set(clusters.ids)) < total:
        raise ValueError("the ids are not texts, or not distinct")
    for number in (*clusters.accepted, *clusters.rejected):
        if type(number) is not int or not 0 <= number < total:
            raise ValueError("a decision is on no cluster")
    if not are_texts(clusters.accepted.values()):
        raise ValueError("an entity was accepted as something else than an id")


def check_settings(log: Any, threshold: Any, fingerprint: Any, documents: Any) -> None:
    """Raise ValueError for a new-entity setting of the wrong type."""
    if not isinstance(log, list) or not all(map(_is_entry, log, range(len(log)))):
        raise ValueError("the log has something else than entries")
    if isinstance(threshold, bool) or not isinstance(threshold, (int, float)):
        raise ValueError("the threshold is no number")
    if not 0 <= threshold <= 1:
        raise ValueError(f"the threshold is {threshold!r}")
    if not isinstance(fingerprint, str) or type(documents) is not int or documents < 0:
        raise ValueError("the encoder or the number of documents has another type")


def check_decisions(log: list[Entry], clusters: Clusters) -> None:
    """Raise ValueError where a decision is on a new entity that is not there."""
    names = [name for entry in DecisionLog(log).standing() for name in clusters_of(entry)]
    if not all(name in clusters for name in names):
        raise ValueError("a decision is on no new entity")


def _check_numbers(name: str, array: np.ndarray, count: int) -> None:
    if not isinstance(array, np.ndarray) or array.dtype != np.int64 or array.shape != (count,):
        raise ValueError(f"{name} is no list of {count} numbers")


def _check_roots(merged_into: np.ndarray) -> None:
    """ValueError where following the numbers never ends."""
    roots = merged_into
    for _ in range(len(roots).bit_length() + 1):
        roots = roots[roots]
    if not np.array_equal(merged_into[roots], roots):
        raise ValueError("clusters are merged in a circle")


def _check_nearest(entity: NearestEntity) -> None:
    kb_id, title, probability = entity
    is_number = isinstance(probability, (int, float)) and not isinstance(probability, bool)
    if not are_texts((kb_id, title)) or not is_number or not 0 <= probability <= 1:
        raise ValueError(f"this is no nearest entity: {entity!r:.80}")


def _is_entry(entry: Any, number: int) -> bool:
    return (
        isinstance(entry, dict)
        and are_texts(entry)
        and all(isinstance(entry.get(name), str) for name in ("action", "at"))
        and entry.get("n") == number
        # What is not equal to itself, as NaN, would differ from what a later discovery has.
        and _has_no_fractions(entry)
    )


def _has_no_fractions(value: Any) -> bool:
    """True where no number in a value of JSON is a float: entries count and name, and no more."""
    if isinstance(value, dict):
        return all(map(_has_no_fractions, value.values()))
    if isinstance(value, list):
        return all(map(_has_no_fractions, value))
    return not isinstance(value, float)
