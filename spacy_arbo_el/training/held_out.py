"""Mentions that the encoder is not trained on, so that a ranker can be fitted on them."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from ..mentions.record import MentionKey, MentionRecord

# With fewer of them, all mentions are trained on.
MIN_MENTIONS = 200
# The share of entities, as a part of that of documents: new documents are mostly about known ones.
OF_ENTITIES = 0.5
# Hashes are below this.
HASHES = 1 << 32


@dataclass(frozen=True)
class HeldOut:
    """Mentions that the encoder is not trained on.

    keys: What identifies them.
    documents: The fingerprints of the documents that are held out as a whole.
    """

    keys: frozenset[MentionKey]
    documents: frozenset[str]

    @classmethod
    def of(cls, records: Sequence[MentionRecord], share: float) -> "HeldOut":
        """Hold out a share of the documents, and all mentions of half as many entities.

        Hashes choose them, so a resumed training holds out the same. Nothing is held out where that
        would be fewer than ``MIN_MENTIONS``.
        """
        documents = frozenset(
            record.key[0] for record in records if _is_chosen(record.key[0], share)
        )
        keys = frozenset(
            record.key
            for record in records
            if record.key[0] in documents
            or any(_is_chosen(kb_id, share * OF_ENTITIES) for kb_id in record.kb_ids)
        )
        if len(keys) < MIN_MENTIONS:
            return cls(frozenset(), frozenset())
        return cls(keys, documents)


def _is_chosen(text: str, share: float) -> bool:
    return zlib.crc32(text.encode("utf8", "surrogatepass")) < share * HASHES
