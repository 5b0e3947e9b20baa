"""New entities as bytes, and checks of what was read. Nothing leads outside."""

import gc
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
import srsly
from pydantic import Field, StrictBool, StrictInt, StrictStr, TypeAdapter
from typing_extensions import TypeAliasType, TypedDict

from ..base.arrays import int_array
from ..base.errors import Errors
from ..encoders.inputs import SpanInputs
from ..mentions.record import MentionRecord, are_texts, check_encoded
from ..storage.files import pack_arrays, unpack_arrays
from .decision_log import DecisionLog, Entry, clusters_of
from .entities import NearestEntity
from .store import Clusters, Unlinked

FORMAT = 3
# Attributes of ``NewEntities`` beside its mentions and clusters.
SETTINGS = ("log", "threshold", "fingerprint", "documents")

Share = Annotated[float, Field(strict=True, ge=0, le=1)]
# A value of an entry. It is no fraction: what is not equal to itself, as NaN, would differ from
# what a later discovery has.
Value = TypeAliasType(
    "Value",
    "StrictBool | StrictInt | StrictStr | list[Value] | dict[StrictStr, Value] | None",
)


class Saved(TypedDict):
    """The content that ``pack`` writes. The arrays are checked separately."""

    format: Literal[3]
    arrays: bytes
    records: list[list[Any]]
    nearest: list[list[tuple[StrictStr, StrictStr, Share]]]
    ids: list[StrictStr]
    accepted: list[tuple[StrictInt, StrictStr]]
    rejected: list[StrictInt]
    log: list[dict[StrictStr, Value]]
    threshold: Share
    fingerprint: StrictStr
    documents: Annotated[StrictInt, Field(ge=0)]


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
        TypeAdapter(Saved).validate_python(msg)
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
        check_log(msg["log"], clusters)
        return mentions, clusters, {name: msg[name] for name in SETTINGS}
    # What msgpack and NumPy raise on broken bytes has no common base class.
    except Exception as error:
        raise Errors.E708(problem=error) from error
    finally:
        # srsly turns it off to unpack, and leaves it off where that fails.
        if collects_garbage:
            gc.enable()


def check_mentions(mentions: Unlinked) -> None:
    """Raise ValueError for records or arrays of mentions that do not fit together."""
    check_encoded(mentions.records, mentions.inputs, mentions.vectors)
    count = len(mentions)
    if count != len(mentions.nearest):
        raise ValueError("rows of different lengths")
    documents = mentions.documents
    _check_numbers("documents", documents, count)
    if (documents < 0).any() or (documents[1:] < documents[:-1]).any():
        raise ValueError("the documents are not in order")


def check_clusters(clusters: Clusters, count: int) -> None:
    """Raise ValueError for dangling cluster numbers or circular merges."""
    total = len(clusters.ids)
    _check_numbers("of_mention", clusters.of_mention, count)
    _check_numbers("merged_into", clusters.merged_into, total)
    decided = int_array([*clusters.accepted, *clusters.rejected])
    for numbers in (clusters.of_mention, clusters.merged_into, decided):
        if len(numbers) and (numbers.min() < 0 or numbers.max() >= total):
            raise ValueError("a number leads to no cluster")
    if len(set(clusters.ids)) < total:
        raise ValueError("the ids are not distinct")
    roots = clusters.merged_into
    for _ in range(total.bit_length() + 1):
        roots = roots[roots]
    # Following the numbers of a circle never ends.
    if not np.array_equal(clusters.merged_into[roots], roots):
        raise ValueError("clusters are merged in a circle")


def check_log(log: list[Entry], clusters: Clusters) -> None:
    """Raise ValueError for entries without a number, or on a new entity that is not there."""
    for number, entry in enumerate(log):
        if entry.get("n") != number or not are_texts(
            [entry.get("action"), entry.get("at")]
        ):
            raise ValueError("the log has something else than entries")
    names = [
        name for entry in DecisionLog(log).standing() for name in clusters_of(entry)
    ]
    if not all(name in clusters for name in names):
        raise ValueError("a decision is on no new entity")


def _check_numbers(name: str, array: np.ndarray, count: int) -> None:
    if (
        not isinstance(array, np.ndarray)
        or array.dtype != np.int64
        or array.shape != (count,)
    ):
        raise ValueError(f"{name} is no list of {count} numbers")
