"""The gold side of training: which mention belongs to which entities, texts and mentions."""

from typing import List, Tuple

import numpy as np
from scipy.sparse import csr_matrix

from ..encoders.sequences import offsets_of, ragged_ranges
from ..kb.knowledge_base import ArboKB
from ..kb.texts import DistinctTexts
from ..retrieval.exemplars import ExemplarStore


class GoldTable:
    """Gold labels of ``n`` stored mentions against a KB of ``r`` texts.

    Nodes are numbered texts first: 0..r-1 the KB's texts, r..r+n-1 the mentions.

    cluster: (n,) int64; mentions with the very same set of gold ids share a number.
        -1 for mentions without any, which are neither trained on nor used as negatives.
    mention_ids: (n, ids) sparse, the gold ids of each mention, in the KB or not.
    mention_texts: (n, r) sparse, the texts of each mention's gold entities.
    label: (n,) int64, the number of each mention's label (its type).
    text_types: (r, labels) bool, whether an entity of the text is of that type. An entity without
        types may be of any.
    """

    def __init__(self, store: ExemplarStore, kb: ArboKB, texts: DistinctTexts):
        self.texts = len(texts)
        labels: List[Tuple[str, ...]] = [tuple(sorted(set(item.kb_ids))) for item in store.items]
        numbers = {label: i for i, label in enumerate(dict.fromkeys(filter(None, labels)))}
        self.cluster = np.array([numbers.get(label, -1) for label in labels], dtype=np.int64)
        self._members = np.argsort(self.cluster, kind="stable")
        self._members = self._members[self.cluster[self._members] >= 0]
        self._bounds = offsets_of(
            np.bincount(self.cluster[self.cluster >= 0], minlength=len(numbers))
        )
        ids = {
            kb_id: i for i, kb_id in enumerate(dict.fromkeys(x for label in labels for x in label))
        }
        self.mention_ids = _incidence([[ids[x] for x in label] for label in labels], len(ids))
        place = dict(zip(ids, kb.entities.positions_of(list(ids)).tolist()))
        known = [[place[x] for x in label if place[x] >= 0] for label in labels]
        positions = kb.entities.positions
        mention_entities = _incidence(known, positions)
        links = (np.ones(len(texts.entity_rows), dtype=np.int8), texts.entity_rows)
        entity_texts = csr_matrix((*links, texts.entity_offsets), shape=(positions, self.texts))
        self.mention_texts = (mention_entities @ entity_texts).tocsr()
        labels_of = {item.label: 0 for item in store.items}
        labels_of = {label: number for number, label in enumerate(labels_of)}
        self.label = np.array([labels_of[item.label] for item in store.items], dtype=np.int64)
        types = np.zeros((positions, len(labels_of)), dtype=bool)
        for label, number in labels_of.items():
            types[kb.entities.of_types([label]), number] = True
        self.text_types = (entity_texts.T @ types) > 0

    def members(self, clusters: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        """The mentions of clusters, one cluster after the other, and their (c + 1,) bounds."""
        starts, lengths = self._bounds[clusters], np.diff(self._bounds)[clusters]
        return self._members[ragged_ranges(starts, lengths)], offsets_of(lengths)

    def texts_of(self, mention: int) -> np.ndarray:
        """The texts of the mention's gold entities, ascending."""
        matrix = self.mention_texts
        return np.sort(matrix.indices[matrix.indptr[mention] : matrix.indptr[mention + 1]])

    def same_mentions(self, mentions: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        """Pairs (i, mention) such that mention shares a gold id with ``mentions[i]``."""
        return (self.mention_ids[mentions] @ self.mention_ids.T).nonzero()

    def own_texts(self, mentions: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        """Pairs (i, text) such that the text is of a gold entity of ``mentions[i]``."""
        return self.mention_texts[mentions].nonzero()


def _incidence(columns_of_rows: List[List[int]], columns: int) -> csr_matrix:
    offsets = offsets_of(np.array([len(row) for row in columns_of_rows], dtype=np.int64))
    flat = np.array([column for row in columns_of_rows for column in row], dtype=np.int64)
    ones = np.ones(len(flat), dtype=np.int8)
    return csr_matrix((ones, flat, offsets), shape=(len(columns_of_rows), columns))
