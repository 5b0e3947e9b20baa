"""The entries that an import left out, and the ids that lead to others."""

from collections import Counter
from typing import Counter as CounterType
from typing import Dict, Iterable, List

from ...errors import Errors
from ...storage.lines import is_storable

# So many errors of invalid lines are kept.
MOST_PLACES = 5


class ImportReport:
    """What happened during an import. A reader fills it while it yields entities.

    count: The number of entities imported.
    skipped: The number of entries left out, by reason.
    redirects: From an entity's other ids to its id.
    places: The first errors of lines that are left out.
    """

    def __init__(self) -> None:
        self.count = 0
        self.skipped: CounterType[str] = Counter()
        self.redirects: Dict[str, str] = {}
        self.places: List[str] = []

    def skip(self, reason: str) -> None:
        """Count an entry that is left out."""
        self.skipped[reason] += 1

    def skip_bad(self, error: ValueError) -> None:
        """Count an invalid line, and keep its error if it is one of the first."""
        self.skip("invalid")
        if len(self.places) < MOST_PLACES:
            self.places.append(str(error))

    def redirect(self, ids: Iterable[str], entity_id: str) -> None:
        """Let other ids lead to an entity. The first entity of an id counts.

        ValueError where an id has characters that can't be stored.
        """
        for other in ids:
            if other and other != entity_id:
                if not is_storable(other):
                    raise ValueError(Errors.E037.format(id=entity_id, value=other))
                self.redirects.setdefault(other, entity_id)
