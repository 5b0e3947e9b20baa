"""Compare the contexts of mentions with the descriptions of their candidates.

A sentence encoder was trained to bring texts of one subject together. So the text around a mention
is compared with the description of an entity, both encoded whole. Names need not be alike for
that, and where several entities share a name, nothing else tells them apart.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_matrix

from ..base.arrays import numbered, offsets_of, take_rows, unit
from ..encoders.dual import DualEncoder
from ..encoders.inputs import EncodingCache
from ..mentions.record import MentionRecord
from .features import CandidateFeatures, ContextFits

if TYPE_CHECKING:
    from ..retrieval.snapshot import Snapshot

# The most word pieces of a context, special tokens included.
CONTEXT_PIECES = 96
# How much a mention with no words around it counts: it says only what its name means mostly.
WITHOUT_CONTEXT = 0.5


def fits_of(
    records: Sequence[MentionRecord],
    candidates: CandidateFeatures,
    snapshot: "Snapshot",
    cache: EncodingCache | None = None,
) -> ContextFits:
    """Compare the texts of candidates with the contexts of mentions.

    Only the candidates that are worth it are looked at, and of a mention only if one of these has a
    description.

    cache: Keeps the vectors of contexts for the next call; None to keep none.
    """
    fits = ContextFits.none(candidates.entities.shape)
    mentions, columns = np.nonzero(candidates.worth_describing())
    if not len(mentions):
        return fits
    rows, vectors = snapshot.descriptions.of_entities(
        candidates.entities[mentions, columns]
    )
    has_description = rows[:, 0] != rows[:, 1]
    compared = np.unique(mentions[has_description])
    is_compared = np.isin(mentions, compared)
    if len(compared):
        records_compared = take_rows(records, compared)
        contexts = contexts_of(records_compared, snapshot.encoder, cache)
        place = np.searchsorted(compared, mentions[is_compared])
        texts, titles = vectors[rows[is_compared].T]
        cell = mentions[is_compared], columns[is_compared]
        fit = np.einsum("nd,nd->n", contexts[place], texts)
        shared = _of_same_string(records_compared, contexts)
        # Such as one in a cell of a table.
        is_bare = [
            len(record.sentences) == 1
            and record.sentences[0][0] == " ".join(record.text.split())
            for record in records_compared
        ]
        shared[is_bare] *= WITHOUT_CONTEXT
        fits.fit[cell] = fit
        fits.beyond[cell] = fit - np.einsum("nd,nd->n", contexts[place], titles)
        fits.shared[cell] = np.einsum("nd,nd->n", shared[place], texts)
        fits.described[cell] = has_description[is_compared]
    return fits


def contexts_of(
    records: Sequence[MentionRecord], encoder: DualEncoder, cache: EncodingCache | None
) -> np.ndarray:
    """The vectors of mentions' contexts: (n, width) float32 of length 1.

    A context is the mean of the sentences around a mention, each of which is encoded once.
    """
    pairs = [pair for record in records for pair in record.sentences]
    texts, shares = zip(*pairs) if pairs else ((), ())
    place = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    vectors = encode_contexts(encoder, list(place), cache)
    bounds = offsets_of([len(record.sentences) for record in records])
    cells = np.array(shares, dtype=np.float32), list(map(place.get, texts)), bounds
    return unit(csr_matrix(cells, shape=(len(records), len(place))) @ vectors)


def _of_same_string(
    records: Sequence[MentionRecord], contexts: np.ndarray
) -> np.ndarray:
    """The mean context of each mention's string in its document: (n, width) float32 of length 1.

    A string means one entity in a document, mostly.
    """
    keys = [(record.key[0], record.normalized.casefold()) for record in records]
    group = numbered(keys)
    sums = np.zeros((group.max(initial=-1) + 1, contexts.shape[1]), dtype=np.float32)
    np.add.at(sums, group, contexts)
    return unit(sums)[group]


def encode_contexts(
    encoder: DualEncoder, texts: Sequence[str], cache: EncodingCache | None = None
) -> np.ndarray:
    """The vectors of texts around mentions: (n, width) float32 of length 1. Equal ones are encoded
    once.
    """

    def encode(places: list[int]) -> np.ndarray:
        passages = [texts[place] for place in places]
        return unit(encoder.encode_passages("mention", passages, CONTEXT_PIECES))

    return (cache or EncodingCache()).of("contexts", texts, encode)
