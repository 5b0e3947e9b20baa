"""Vectors of exemplars in place of reading mentions again."""

from typing import Dict, List, Sequence, Tuple

import numpy as np

from ..mentions.record import MentionRecord


class KnownForms:
    """Surface forms whose exemplars are all of one entity.

    records: The exemplars.
    owners: (n,) int64, the entity of each, -1 for none.
    least: The number of exemplars that a form must have.
    """

    def __init__(self, records: Sequence[MentionRecord], owners: np.ndarray, least: int):
        rows_of: Dict[str, List[int]] = {}
        for row, record in enumerate(records):
            rows_of.setdefault(record.normalized.casefold(), []).append(row)
        self._first = {
            form: rows[0]
            for form, rows in rows_of.items()
            if len(rows) >= least and owners[rows[0]] >= 0 and len(set(owners[rows].tolist())) == 1
        }

    def find(self, records: Sequence[MentionRecord]) -> Tuple[np.ndarray, np.ndarray]:
        """Mentions with such a form.

        RETURNS: (k,) int64 their numbers, and (k,) int64 the first exemplar of each one's form.
        """
        first = [self._first.get(record.normalized.casefold(), -1) for record in records]
        rows = np.array(first, dtype=np.int64)
        found = np.flatnonzero(rows >= 0)
        return found, rows[found]
