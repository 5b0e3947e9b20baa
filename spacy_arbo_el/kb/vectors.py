"""The vectors of a knowledge base: one row a distinct text, shared by all entities that have it."""

from typing import Callable, Dict, Iterable, List, Tuple

import numpy as np

from ..encoders.sequences import offsets_of
from ..errors import Errors

Text = Tuple[str, str]
Encode = Callable[[List[Text]], np.ndarray]


class TextVectors:
    """Distinct entity texts, their vectors, and which entities have them.

    texts: the ``(title, description)`` pairs; row ``r`` of ``vectors`` belongs to ``texts[r]``.
    vectors: (rows, width) float32.
    row_offsets, row_entities: the entities (positions in the store, ascending) of row
        ``r`` are ``row_entities[row_offsets[r]:row_offsets[r + 1]]``.
    entity_offsets, entity_rows: the other way round, rows in the order of the verbalization.

    Two entities with the very same text share a row, so that they tie exactly.
    """

    def __init__(self) -> None:
        self.texts: List[Text] = []
        self.vectors = np.zeros((0, 0), dtype=np.float32)
        self._set_links([])

    def __len__(self) -> int:
        return len(self.texts)

    def rebuild(self, texts_of_entities: Iterable[List[Text]], encode: Encode) -> int:
        """Take over the texts; texts that have a vector already are not encoded again.

        RETURNS: the number of texts encoded.
        """
        rows: Dict[Text, int] = {}
        links = [
            [rows.setdefault(text, len(rows)) for text in texts] for texts in texts_of_entities
        ]
        known = {text: row for row, text in enumerate(self.texts)}
        new = [text for text in rows if text not in known]
        encoded = check_vectors(encode(new), len(new)) if new else None
        width = encoded.shape[1] if encoded is not None else self.vectors.shape[1]
        if known and len(new) < len(rows) and width != self.vectors.shape[1]:
            raise ValueError(Errors.E007.format(got=width, expected=self.vectors.shape[1]))
        vectors = np.empty((len(rows), width), dtype=np.float32)
        kept = [(row, known[text]) for text, row in rows.items() if text in known]
        if kept:
            targets, sources = np.array(kept).T
            vectors[targets] = self.vectors[sources]
        if encoded is not None:
            vectors[[rows[text] for text in new]] = encoded
        self.texts, self.vectors = list(rows), vectors
        self._set_links(links)
        return len(new)

    def encode_again(self, encode: Encode) -> None:
        """Fresh vectors for all texts: the encoder has changed."""
        if self.texts:
            self.vectors = check_vectors(encode(self.texts), len(self.texts))

    def of_entity(self, position: int) -> np.ndarray:
        """(texts, width) float32, the vectors of an entity, in the order of its texts."""
        start, end = self.entity_offsets[position : position + 2]
        return self.vectors[self.entity_rows[start:end]]

    def _set_links(self, links: List[List[int]]) -> None:
        self.entity_offsets = offsets_of(np.array([len(rows) for rows in links], dtype=np.int64))
        self.entity_rows = np.array([row for rows in links for row in rows], dtype=np.int64)
        owners = np.repeat(np.arange(len(links)), np.diff(self.entity_offsets))
        order = np.argsort(self.entity_rows, kind="stable")
        self.row_entities = owners[order]
        counts = np.bincount(self.entity_rows, minlength=len(self.texts))
        self.row_offsets = offsets_of(counts)


def check_vectors(vectors: np.ndarray, rows: int) -> np.ndarray:
    """``vectors`` as float32 (rows, width); an error where the shape is off or one isn't finite."""
    vectors = np.asarray(vectors, dtype=np.float32)
    if vectors.ndim != 2 or len(vectors) != rows:
        raise ValueError(Errors.E004.format(shape=vectors.shape, rows=rows))
    bad = ~np.isfinite(vectors).all(axis=1)
    if bad.any():
        raise ValueError(
            Errors.E005.format(count=int(bad.sum()), rows=rows, first=int(bad.argmax()))
        )
    return vectors
