"""The mentions of a corpus in an order that does not depend on the order of reading."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from ..base.arrays import Rows, TopK, int_array, offsets_of, ragged_ranges
from ..mentions.record import MentionRecord
from ..ranking.decisions import MAX_CONSIDERED
from ..ranking.ranking import RankedMentions


@dataclass(frozen=True)
class CorpusPart(Rows):
    """The mentions of some documents, before any decision. Parts are joined, never taken apart.

    ranked: The mentions, without neighbours among each other; their rankings hold the
        ``MAX_CONSIDERED`` best candidates.
    candidates: All ranked candidates, for people to read; ids are int32.
    counts: How many mentions each document has.
    """

    ranked: RankedMentions
    candidates: TopK
    counts: list[int]

    @classmethod
    def of(
        cls, ranked: RankedMentions, counts: list[int], n_exemplars: int
    ) -> "CorpusPart":
        """The stored part of mentions.

        n_exemplars: How many exemplars the inference procedure looks at; it may look at as many
            texts.
        """
        full = ranked.ranking.candidates
        candidates = TopK(full.ids.astype(np.int32), full.scores)
        n_entities = max(MAX_CONSIDERED, n_exemplars)
        ranked = replace(
            ranked,
            neighbours=ranked.neighbours.narrowed(n_entities, n_exemplars),
            ranking=ranked.ranking.first(MAX_CONSIDERED),
        )
        return cls(ranked, candidates, counts)


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
    def joined(cls, batches: Sequence[CorpusPart]) -> "CorpusMentions":
        """Join all parts' mentions, without mutual neighbours.

        batches: In the order in which their documents were read; at least one.
        """
        documents_read = CorpusPart.concat(batches)
        rows, places = canonical_order(
            documents_read.ranked.batch.records, documents_read.counts
        )
        documents = documents_read.ranked.batch.documents[rows]
        return cls(
            places,
            documents,
            _reordered(documents_read.ranked, rows),
            documents_read.candidates.take(rows),
        )


def canonical_order(
    records: Sequence[MentionRecord], counts: Sequence[int]
) -> tuple[np.ndarray, list[range]]:
    """Order documents independently of the order of reading.

    records: The mentions of all documents.
    counts: How many mentions each document has.
    RETURNS: The numbers of the mentions in that order, (m,) int64; and for each document, in the
        order in which they were read, where its mentions are in it.
    """
    lengths = int_array(counts)
    starts = offsets_of(lengths)

    def mentions(number: int) -> list[tuple[object, ...]]:
        of_document = records[int(starts[number]) : int(starts[number + 1])]
        return [(record.key, record.label, record.doc_id) for record in of_document]

    texts = [
        records[first].key[0] if n else "" for first, n in zip(starts.tolist(), counts)
    ]
    by_text = sorted(range(len(texts)), key=texts.__getitem__)
    # Of documents with the same text, all mentions are compared.
    groups = (list(group) for _, group in groupby(by_text, key=texts.__getitem__))
    order = [
        n
        for group in groups
        for n in (sorted(group, key=mentions) if group[1:] else group)
    ]
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
    ranked = ranked.take(rows)
    # Whole documents move: they are numbered anew.
    documents = numbered(ranked.batch.documents)
    return replace(ranked, batch=replace(ranked.batch, documents=documents))
