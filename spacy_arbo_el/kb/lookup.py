"""Finding entities by the letters of their names: as they are, and alike."""

import json
from collections import defaultdict
from typing import Callable, Dict, List, Sequence, Set, Tuple

import numpy as np
from spacy.util import registry

from .store import EntityStore

# Of a query's trigrams the rarest are looked up, as long as they occur in so many names in all.
POSTINGS = 4000
# Names that have most of these are compared in full.
COMPARED = 200

# (entities, strings) -> (m, c) positions, -1 for none
Lookup = Callable[[EntityStore, Sequence[str]], np.ndarray]


def trigrams(folded: str) -> Set[str]:
    """All runs of three characters."""
    return {folded[i : i + 3] for i in range(len(folded) - 2)}


def alike(
    entities: EntityStore, string: str, count: int, least: float = 0.3
) -> List[Tuple[int, float]]:
    """Entities with a name alike, the most alike first: (position, likeness).

    Likeness is the share of common trigrams (Dice), of which there must be ``least``. Strings of
    less than three characters are like nothing.
    """
    folded = string.casefold()
    wanted = trigrams(folded)
    shared: Dict[int, int] = defaultdict(int)
    for trigram in _rarest(entities, wanted):
        for (number,) in entities.database.rows(
            "SELECT rowid FROM trigram WHERE trigram MATCH ?", (_quoted(trigram),)
        ):
            shared[number] += 1
    numbers = sorted(shared, key=lambda number: (-shared[number], number))[:COMPARED]
    best: Dict[int, float] = {}
    for position, name in entities.database.rows(
        "SELECT position, folded FROM name WHERE number IN (SELECT value FROM json_each(?))",
        (json.dumps(numbers),),
    ):
        other = trigrams(name)
        likeness = 2 * len(wanted & other) / (len(wanted) + len(other))
        best[position] = max(best.get(position, 0.0), likeness)
    ranked = sorted(best.items(), key=lambda item: (-item[1], item[0]))
    return [(position, likeness) for position, likeness in ranked if likeness >= least][:count]


def _rarest(entities: EntityStore, wanted: Set[str]) -> List[str]:
    """The trigrams that tell most, as many as can be looked up quickly."""
    found = entities.database.rows(
        "SELECT term, doc FROM trigram_count WHERE term IN (SELECT value FROM json_each(?)) "
        "ORDER BY doc, term",
        (json.dumps(sorted(wanted)),),
    )
    chosen: List[str] = []
    postings = 0
    for term, names in found:
        postings += names
        if postings > POSTINGS:
            break
        chosen.append(term)
    return chosen


def _quoted(trigram: str) -> str:
    return '"' + trigram.replace('"', '""') + '"'


@registry.misc("spacy-arbo-el.StringLookup.v1")
def string_lookup(exact: int = 8, fuzzy: int = 4, least: float = 0.5) -> Lookup:
    """Candidates by name beside those by vector.

    exact: At most so many entities with the mention's string for a name, the more frequent first.
    fuzzy: At most so many more with a name alike. 0 looks for none.
    least: The share of trigrams that names alike must have in common, 0 to 1.
    """

    def find(entities: EntityStore, strings: Sequence[str]) -> np.ndarray:
        found: Dict[str, List[int]] = {}
        for string in dict.fromkeys(strings):
            same = entities.named(string.casefold())
            if len(same) > exact:
                frequency = {p: e.frequency for p, e in entities.at_all(same).items()}
                same = sorted(same, key=lambda p: (-frequency[p], p))[:exact]
            near = alike(entities, string, fuzzy + len(same), least) if fuzzy else []
            rest = [position for position, _ in near if position not in same][:fuzzy]
            found[string] = [*same, *rest]
        table = np.full((len(strings), exact + fuzzy), -1, dtype=np.int64)
        for row, string in enumerate(strings):
            table[row, : len(found[string])] = found[string]
        return table

    return find
