"""What an import left out and why, and which ids lead to others."""

from collections import Counter
from typing import Counter as CounterType
from typing import Dict, Iterable


class ImportReport:
    """Filled in by a reader while its entities are taken.

    count: How many entities were taken over.
    skipped: How many entries were left out, by reason.
    redirects: Other ids that an entity is known by, to its id.
    """

    def __init__(self) -> None:
        self.count = 0
        self.skipped: CounterType[str] = Counter()
        self.redirects: Dict[str, str] = {}

    def skip(self, reason: str) -> None:
        self.skipped[reason] += 1

    def lead(self, ids: Iterable[str], entity_id: str) -> None:
        """Other ids lead to an entity."""
        for other in ids:
            if other and other != entity_id:
                self.redirects.setdefault(other, entity_id)
