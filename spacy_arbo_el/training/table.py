"""The gold labels of training: which mentions, entities and texts belong to each other."""

from typing import Dict, Hashable, Iterable, Sequence, Tuple, TypeVar

import numpy as np
from scipy.sparse import csr_matrix

from ..arrays import offsets_of, ragged_ranges
from ..kb.knowledge_base import ArboKB
from ..kb.texts import DistinctTexts
from ..mentions.records import MentionRecord

T = TypeVar("T", bound=Hashable)


class GoldTable:
    """The gold labels of ``n`` mentions against a knowledge base with ``r`` distinct texts.

    Texts and mentions are numbered as nodes: 0 to r-1 are the texts, r to r+n-1 the mentions.

    records: The mentions.
    n_texts: The number of texts, r.
    cluster: (n,) int64, equal for mentions with the same set of gold ids. -1 for mentions without
        gold ids, which are neither trained on nor used as negatives.
    mention_ids: (n, ids) sparse, the gold ids of each mention, in the knowledge base or not.
    mention_texts: (n, r) sparse, the texts of each mention's gold entities.
    text_entity: (r,) int64, the first entity with each text.
    label: (n,) int64, a number for the label (type) of each mention.
    text_types: (r, labels) bool, whether an entity with the text has the type. An entity without
        types counts as having all.
    """

    def __init__(self, records: Sequence[MentionRecord], kb: ArboKB, texts: DistinctTexts):
        """records: The mentions.
        kb: The knowledge base that their ids refer to.
        texts: The texts of the knowledge base.
        """
        self.records = list(records)
        self.n_texts = len(texts)
        self.text_entity = texts.row_entities[texts.row_offsets[:-1]]
        gold = [tuple(sorted(set(record.kb_ids))) for record in records]
        clusters = _numbered(ids for ids in gold if ids)
        self.cluster = np.array([clusters.get(ids, -1) for ids in gold], dtype=np.int64)
        labelled = np.flatnonzero(self.cluster >= 0)
        self._sorted = labelled[np.argsort(self.cluster[labelled], kind="stable")]
        counts = np.bincount(self.cluster[labelled], minlength=len(clusters))
        self._offsets = offsets_of(counts)
        numbers = _numbered(kb_id for ids in gold for kb_id in ids)
        self.mention_ids = _incidence([[numbers[x] for x in ids] for ids in gold], len(numbers))
        position = dict(zip(numbers, kb.entities.positions_of(list(numbers)).tolist()))
        existing = [[position[x] for x in ids if position[x] >= 0] for ids in gold]
        entity_texts = csr_matrix(
            (np.ones(len(texts.entity_rows), np.int8), texts.entity_rows, texts.entity_offsets),
            shape=(kb.entities.positions, self.n_texts),
        )
        mention_entities = _incidence(existing, kb.entities.positions)
        self.mention_texts = (mention_entities @ entity_texts).tocsr()
        labels = _numbered(record.label for record in records)
        self.label = np.array([labels[record.label] for record in records], dtype=np.int64)
        types = np.zeros((kb.entities.positions, len(labels)), dtype=bool)
        for label, number in labels.items():
            types[kb.entities.of_types([label]), number] = True
        self.text_types = (entity_texts.T @ types) > 0

    @property
    def n_labelled(self) -> int:
        """The number of mentions with gold ids."""
        return len(self._sorted)

    def members(self, clusters: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        """The mentions of ``c`` clusters, cluster by cluster, and their (c + 1,) offsets."""
        starts, lengths = self._offsets[clusters], np.diff(self._offsets)[clusters]
        return self._sorted[ragged_ranges(starts, lengths)], offsets_of(lengths)

    def texts_of(self, mention: int) -> np.ndarray:
        """The texts of the mention's gold entities, ascending."""
        matrix = self.mention_texts
        return np.sort(matrix.indices[matrix.indptr[mention] : matrix.indptr[mention + 1]])

    def text_pairs(self, mentions: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        """All pairs (i, text) in which the text is one of a gold entity of ``mentions[i]``."""
        return self.mention_texts[mentions].nonzero()

    def mention_pairs(self, mentions: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        """All pairs (i, mention) in which the mention shares a gold id with ``mentions[i]``."""
        return (self.mention_ids[mentions] @ self.mention_ids.T).nonzero()


def _numbered(values: Iterable[T]) -> Dict[T, int]:
    """Distinct values, numbered in the order in which they first occur."""
    return {value: number for number, value in enumerate(dict.fromkeys(values))}


def _incidence(columns_of_rows: Sequence[Sequence[int]], n_columns: int) -> csr_matrix:
    """A sparse matrix with a 1 at the given columns of each row."""
    offsets = offsets_of(np.array([len(columns) for columns in columns_of_rows], dtype=np.int64))
    flat = np.array([c for columns in columns_of_rows for c in columns], dtype=np.int64)
    ones = np.ones(len(flat), dtype=np.int8)
    return csr_matrix((ones, flat, offsets), shape=(len(columns_of_rows), n_columns))
