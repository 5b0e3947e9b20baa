"""New entities as bytes."""

import gc
from dataclasses import fields
from typing import Any, Dict, List, NamedTuple

import srsly

from ..encoders.inputs import SpanInputs
from ..errors import Errors
from ..mentions.records import MentionRecord
from ..storage.files import pack_arrays, unpack_arrays
from .checks import check_clusters, check_mentions, check_settings
from .clusters import Clusters
from .entities import NearestEntity
from .unlinked import Unlinked

FORMAT = 2
FIELDS = tuple(field.name for field in fields(MentionRecord))


class Contents(NamedTuple):
    """The contents of a ``NewEntities``, see there."""

    mentions: Unlinked
    clusters: Clusters
    log: List[Dict[str, Any]]
    threshold: float
    fingerprint: str
    documents: int


def pack(contents: Contents) -> bytes:
    """The contents as bytes."""
    mentions, clusters = contents.mentions, contents.clusters
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
            "records": [[getattr(record, name) for name in FIELDS] for record in mentions.records],
            "nearest": [[list(entity) for entity in row] for row in mentions.nearest],
            "ids": clusters.ids,
            "accepted": [list(pair) for pair in clusters.accepted.items()],
            "rejected": list(clusters.rejected),
            "kept_apart": [list(pair) for pair in clusters.kept_apart],
            "log": contents.log,
            "threshold": contents.threshold,
            "fingerprint": contents.fingerprint,
            "documents": contents.documents,
        }
    )


def unpack(data: bytes) -> Contents:
    """The contents that ``pack`` gave as bytes; ValueError where the bytes are something else."""
    collects_garbage = gc.isenabled()
    try:
        msg = srsly.msgpack_loads(data)
        if msg["format"] != FORMAT:
            raise ValueError(f"format {msg['format']}")
        arrays = unpack_arrays(msg["arrays"])
        mentions = Unlinked(
            [_record(*values) for values in msg["records"]],
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
            [(a, b) for a, b in msg["kept_apart"]],
        )
        check_mentions(mentions)
        check_clusters(clusters, len(mentions))
        settings = msg["threshold"], msg["fingerprint"], msg["documents"]
        check_settings(msg["log"], *settings)
        return Contents(mentions, clusters, msg["log"], *settings)
    # What msgpack and NumPy raise on broken bytes has no common base class.
    except Exception as error:
        raise ValueError(Errors.E708.format(problem=error)) from error
    finally:
        # srsly turns it off to unpack, and leaves it off where that fails.
        if collects_garbage:
            gc.enable()


def _record(key: List[Any], kb_ids: List[str], *texts: str) -> MentionRecord:
    fingerprint, start, end = key
    return MentionRecord((str(fingerprint), int(start), int(end)), tuple(kb_ids), *texts)
