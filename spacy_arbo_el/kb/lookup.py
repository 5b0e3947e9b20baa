"""Finding entities by name: by the exact string, and by similar strings."""

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import Callable, Dict, List, Sequence, Set, Tuple

import numpy as np
from spacy.util import registry

from ..settings import check_count, check_share
from .store import EntityStore

# The rarest trigrams of a query are looked up, as long as at most this many names contain them.
POSTINGS = 4000
# The names that share the most trigrams with the query are compared in full, up to this many.
COMPARED = 200

# (entities, strings) -> (m, c) int64 positions, -1 for none
Lookup = Callable[[EntityStore, Sequence[str]], np.ndarray]


def trigrams(folded: str) -> Set[str]:
    """All runs of three characters."""
    return {folded[i : i + 3] for i in range(len(folded) - 2)}


def similar_names(
    entities: EntityStore, string: str, count: int, min_similarity: float = 0.3
) -> List[Tuple[int, float]]:
    """Entities with a similar name, the most similar first.

    Similarity is the Dice coefficient of the two sets of trigrams: the share of trigrams that they
    have in common. Strings of less than three characters are similar to nothing.

    string: Compared whatever the case.
    count: At most so many entities.
    min_similarity: The least similarity, 0 to 1.
    RETURNS: (position, similarity) of each.
    """
    wanted = trigrams(string.casefold())
    similarity: Dict[int, float] = {}
    for position, name in _names_to_compare(entities, wanted):
        other = trigrams(name)
        dice = 2 * len(wanted & other) / (len(wanted) + len(other))
        similarity[position] = max(similarity.get(position, 0.0), dice)
    ranked = sorted(similarity.items(), key=lambda item: (-item[1], item[0]))
    return [(position, dice) for position, dice in ranked if dice >= min_similarity][:count]


def _names_to_compare(entities: EntityStore, wanted: Set[str]) -> List[Tuple[int, str]]:
    """(position, case folded name) of the names that share the most trigrams."""
    shared: Dict[int, int] = defaultdict(int)
    for trigram in _rarest(entities, wanted):
        for (number,) in entities.database.rows(
            "SELECT rowid FROM trigram WHERE trigram MATCH ?", (_quoted(trigram),)
        ):
            shared[number] += 1
    numbers = sorted(shared, key=lambda number: (-shared[number], number))[:COMPARED]
    return entities.database.rows(
        "SELECT position, folded FROM name WHERE number IN (SELECT value FROM json_each(?))",
        (json.dumps(numbers),),
    )


def _rarest(entities: EntityStore, wanted: Set[str]) -> List[str]:
    """The rarest trigrams, as many as can be looked up quickly."""
    counts = entities.database.rows(
        "SELECT term, doc FROM trigram_count WHERE term IN (SELECT value FROM json_each(?)) "
        "ORDER BY doc, term",
        (json.dumps(sorted(wanted)),),
    )
    chosen: List[str] = []
    postings = 0
    for term, names in counts:
        postings += names
        if postings > POSTINGS:
            break
        chosen.append(term)
    return chosen


def _quoted(trigram: str) -> str:
    return '"' + trigram.replace('"', '""') + '"'


@registry.misc("spacy-arbo-el.StringLookup.v1")
@dataclass(frozen=True)
class StringLookup:
    """Candidates by name, in addition to those by vector.

    Use it where mentions are often an entity's very name, or where the encoder has not seen the
    domain. It is off by default::

        [components.arbo_linker.retriever.lookup]
        @misc = "spacy-arbo-el.StringLookup.v1"
        n_exact = 8
        n_fuzzy = 4

    n_exact: At most so many entities that have the mention's string as a name. The more frequent
        ones come first.
    n_fuzzy: At most so many more entities with a similar name; 0 for none.
    min_similarity: The least share of trigrams that similar names have in common, 0 to 1.
    """

    n_exact: int = 8
    n_fuzzy: int = 4
    min_similarity: float = 0.5

    def __post_init__(self) -> None:
        check_count("lookup.n_exact", self.n_exact)
        check_count("lookup.n_fuzzy", self.n_fuzzy)
        check_share("lookup.min_similarity", self.min_similarity)

    def __call__(self, entities: EntityStore, strings: Sequence[str]) -> np.ndarray:
        """The positions of candidates, (m, c) int64, -1 for none; c is what the most have."""
        candidates = {string: self._candidates(entities, string) for string in set(strings)}
        most = max(map(len, candidates.values()), default=0)
        table = np.full((len(strings), most), -1, dtype=np.int64)
        for row, string in enumerate(strings):
            table[row, : len(candidates[string])] = candidates[string]
        return table

    def _candidates(self, entities: EntityStore, string: str) -> List[int]:
        exact = entities.with_name(string.casefold())
        if len(exact) > self.n_exact:
            frequency = {p: e.frequency for p, e in entities.at_all(exact).items()}
            exact = sorted(exact, key=lambda p: (-frequency[p], p))[: self.n_exact]
        if not self.n_fuzzy:
            return exact
        count = self.n_fuzzy + len(exact)
        similar = similar_names(entities, string, count, self.min_similarity)
        others = [position for position, _ in similar if position not in exact]
        return [*exact, *others[: self.n_fuzzy]]
