"""The gold labels of training. It says which mentions, entities and texts belong together."""

from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from typing import TypeVar

import numpy as np
from scipy.sparse import csr_matrix, vstack

from ..base.arrays import int_array, minus_ones, offsets_of, ragged_ranges
from ..kb.knowledge_base import ArboKB
from ..kb.texts import DistinctTexts
from ..mentions.labels import current_ids
from ..mentions.record import MentionRecord

T = TypeVar("T", bound=Hashable)


class GoldTable:
    """Gold labels of ``n`` mentions, over ``r`` distinct texts.

    Texts and mentions are numbered as nodes: 0 to r-1 are the texts, r to r+n-1 the mentions.

    records: The mentions.
    n_texts: The number of texts, r.
    cluster: (n,) int64, equal for mentions with the same set of gold ids. -1 for mentions without
        gold ids, which are neither trained on nor used as negatives.
    mention_ids: (n, ids) sparse, the gold ids of each mention, in the knowledge base or not.
    mention_entities: (n, entities) sparse, the gold entities of each mention.
    text_entities: (r, entities) sparse, the entities that have each text.
    entity_texts: (entities, r) sparse, the same the other way round.
    mention_texts: (n, r) sparse, the texts of each mention's gold entities.
    text_entity: (r,) int64, the first entity with each text.
    text_lengths: (r,) int64, the word pieces of each text.
    """

    def __init__(
        self,
        records: Sequence[MentionRecord],
        kb: ArboKB,
        texts: DistinctTexts,
        text_lengths: np.ndarray,
    ):
        """Number texts, mentions and entities. text_lengths: (r,) int64, their word pieces."""
        self.text_lengths = text_lengths
        self.records = list(records)
        self.n_texts = len(texts)
        self.text_entity = texts.row_entities[texts.row_offsets[:-1]]
        kb_ids = current_ids(kb, [record.kb_ids for record in records])
        gold = [tuple(sorted(ids)) for ids in kb_ids]
        clusters = _numbered(ids for ids in gold if ids)
        self.cluster = int_array([clusters.get(ids, -1) for ids in gold])
        labelled = np.flatnonzero(self.cluster >= 0)
        self._sorted = labelled[np.argsort(self.cluster[labelled], kind="stable")]
        counts = np.bincount(self.cluster[labelled], minlength=len(clusters))
        self._offsets = offsets_of(counts)
        numbers = _numbered(kb_id for ids in gold for kb_id in ids)
        self.mention_ids = _incidence(
            [[numbers[x] for x in ids] for ids in gold], len(numbers)
        )
        position = dict(zip(numbers, kb.entities.positions_of(list(numbers)).tolist()))
        existing = [[position[x] for x in ids if position[x] >= 0] for ids in gold]
        self.entity_texts = csr_matrix(
            (
                np.ones(len(texts.entity_rows), bool),
                texts.entity_rows,
                texts.entity_offsets,
            ),
            shape=(kb.entities.positions, self.n_texts),
        )
        self.text_entities = self.entity_texts.T.tocsr()
        self.mention_entities = _incidence(existing, kb.entities.positions)
        self.mention_texts = (self.mention_entities @ self.entity_texts).tocsr()
        self._texts = texts.texts

    @property
    def n_labelled(self) -> int:
        """The number of mentions with gold ids."""
        return len(self._sorted)

    @property
    def cluster_sizes(self) -> np.ndarray:
        """(clusters,) int64, the number of mentions of each."""
        return np.diff(self._offsets)

    def members(self, clusters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The mentions of ``c`` clusters, cluster by cluster, with offsets (c + 1,)."""
        starts = self._offsets[clusters]
        lengths = self.cluster_sizes[clusters]
        return self._sorted[ragged_ranges(starts, lengths)], offsets_of(lengths)

    def texts_of(self, mention: int) -> np.ndarray:
        """The texts of the mention's gold entities, ascending."""
        matrix = self.mention_texts
        return np.sort(
            matrix.indices[matrix.indptr[mention] : matrix.indptr[mention + 1]]
        )

    def is_text(self, nodes: np.ndarray) -> np.ndarray:
        """(b,) bool, which nodes are texts; the others are mentions."""
        return nodes < self.n_texts

    def entities_of(self, nodes: np.ndarray) -> csr_matrix:
        """Entities of texts or mentions: (b, entities) sparse. Those that have a text, or the
        gold ones of a mention.
        """
        is_text = self.is_text(nodes)
        if is_text.all():
            return self.text_entities[nodes]
        if not is_text.any():
            return self.mention_entities[nodes - self.n_texts]
        order = np.argsort(~is_text, kind="stable")
        of_texts = self.text_entities[nodes[is_text]]
        of_mentions = self.mention_entities[nodes[~is_text] - self.n_texts]
        return vstack([of_texts, of_mentions], format="csr")[np.argsort(order)]

    def text_pairs(self, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Pairs (i, text) with each text of node i's entity, with itself too."""
        return (self.entities_of(nodes) @ self.entity_texts).nonzero()

    def mention_pairs(self, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Pairs (i, mention) sharing an entity with ``nodes[i]``.

        Mentions share a gold id even where no entity has it.
        """
        row, mention = (self.entities_of(nodes) @ self.mention_entities.T).nonzero()
        is_mention = np.flatnonzero(~self.is_text(nodes))
        if not len(is_mention):
            return row, mention
        ids = self.mention_ids[nodes[is_mention] - self.n_texts]
        row_by_id, mention_by_id = (ids @ self.mention_ids.T).nonzero()
        row = np.concatenate([row, is_mention[row_by_id]])
        return row, np.concatenate([mention, mention_by_id])

    def same_entity(self, mentions: np.ndarray) -> np.ndarray:
        """Mark mentions that share a gold id: (b, b) bool, each with itself too."""
        ids = self.mention_ids[mentions]
        return (ids @ ids.T).toarray() > 0

    def synonym_pairs(self, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Pairs (i, text) with other texts of the same entity.

        Names that differ only in upper and lower case are the same. A mention has its normalized
        surface form as a name.
        """
        row, text = self.text_pairs(nodes)
        differs = self.spelling[text] != self.spelling[nodes[row]]
        return row[differs], text[differs]

    @cached_property
    def spelling(self) -> np.ndarray:
        """A number per case-insensitive spelling: (r + n,) int64. Equal for nodes whose names
        differ only in case.

        -1 for a mention that no text has the name of.
        """
        titles = [title.casefold() for title, _ in self._texts]
        forms = [
            (record.normalized or record.text).casefold() for record in self.records
        ]
        numbers = _numbered(titles)
        return int_array([numbers.get(name, -1) for name in (*titles, *forms)])

    @cached_property
    def texts_with_synonyms(self) -> np.ndarray:
        """The texts of entities that have another text, ascending."""
        entity, text = self.entity_texts.nonzero()
        spelling = self.spelling[text]
        first = minus_ones(self.entity_texts.shape[0])
        first[entity[::-1]] = spelling[::-1]
        has_several = np.zeros(len(first), dtype=bool)
        has_several[entity[spelling != first[entity]]] = True
        return np.unique(text[has_several[entity]])


def _numbered(values: Iterable[T]) -> dict[T, int]:
    """Distinct values, numbered in order of occurrence."""
    return {value: number for number, value in enumerate(dict.fromkeys(values))}


def _incidence(columns_of_rows: Sequence[Sequence[int]], n_columns: int) -> csr_matrix:
    """A sparse matrix with 1 at given columns per row."""
    offsets = offsets_of([len(columns) for columns in columns_of_rows])
    flat = int_array([c for columns in columns_of_rows for c in columns])
    ones = np.ones(len(flat), dtype=bool)
    return csr_matrix((ones, flat, offsets), shape=(len(columns_of_rows), n_columns))
