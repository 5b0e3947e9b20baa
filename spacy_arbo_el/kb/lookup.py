"""Finding entities by similar names."""

import unicodedata
from collections import defaultdict

from ..names.spellings import folded, without_accents
from .database import IN
from .respelling import match_spellings
from .store import EntityStore

# The rarest trigrams of a query are looked up, as long as at most this many names contain them.
POSTINGS = 4000
# The names that share the most trigrams with the query are compared in full, up to this many.
COMPARED = 200
# ASCII characters that are rarely written with an accent: a name of the same letters has them.
PLAIN = frozenset("bdfghjklmpqtvwx0123456789")


def trigrams(folded: str) -> set[str]:
    """All runs of three characters."""
    return {folded[i : i + 3] for i in range(len(folded) - 2)}


def same_name(entities: EntityStore, string: str) -> list[int]:
    """Positions of entities of a name: in its spelling, else another one, else its letters."""
    (match,) = match_spellings(entities, [string])
    respelled = match.positions if match is not None else []
    return entities.with_name(string) or respelled or same_letters(entities, string)


def same_letters(entities: EntityStore, string: str) -> list[int]:
    """Positions of entities whose names share letters and digits: "IL2" for "IL-2".

    Reads all names of about this length.
    """
    characters = letters(string)
    if not characters:
        return []
    # Chinese characters have no accents either.
    plain = [char for char in characters if char in PLAIN or char >= "\u3400"]
    rows = entities.database.rows(
        "SELECT position, folded FROM name WHERE length(folded) BETWEEN ? AND ? "
        "AND folded LIKE ? ORDER BY position",
        (len(characters), 2 * len(characters) + 2, f"%{'%'.join(plain)}%"),
    )
    return list(
        dict.fromkeys(
            position for position, name in rows if letters(name) == characters
        )
    )


def letters(string: str) -> str:
    """The letters and digits of a string, case folded and without accents."""
    decomposed = unicodedata.normalize("NFKD", without_accents(folded(string)))
    # Marks of other scripts are vowels, or make another letter.
    return "".join(
        char
        for char in decomposed
        if not "\u0300" <= char <= "\u036f" and unicodedata.category(char)[0] in "LNM"
    )


def similar_names(
    entities: EntityStore, string: str, count: int, min_similarity: float = 0.3
) -> list[tuple[int, float]]:
    """Entities with a similar name, the most similar first.

    Similarity is the Dice coefficient of the two sets of trigrams: the share of trigrams that they
    have in common. Strings of less than three characters are similar to nothing.

    string: Compared whatever the case, also without its accents.
    min_similarity: The least similarity, 0 to 1.
    RETURNS: (position, similarity) of each.
    """
    spelling = folded(string)
    similarity: dict[int, float] = {}
    for form in dict.fromkeys((spelling, without_accents(spelling))):
        searched = trigrams(form)
        for position, name in _names_to_compare(entities, searched):
            compared = trigrams(name)
            dice = 2 * len(searched & compared) / (len(searched) + len(compared))
            similarity[position] = max(similarity.get(position, 0.0), dice)
    ranked = sorted(similarity.items(), key=lambda item: (-item[1], item[0]))
    return [(position, dice) for position, dice in ranked if dice >= min_similarity][
        :count
    ]


def _names_to_compare(
    entities: EntityStore, searched: set[str]
) -> list[tuple[int, str]]:
    shared: dict[int, int] = defaultdict(int)
    for trigram in _rarest(entities, searched):
        for (number,) in entities.database.rows(
            "SELECT rowid FROM trigram WHERE trigram MATCH ?",
            ('"' + trigram.replace('"', '""') + '"',),
        ):
            shared[number] += 1
    numbers = sorted(shared, key=lambda number: (-shared[number], number))[:COMPARED]
    statement = f"SELECT position, folded FROM name WHERE number {IN}"
    return entities.database.rows_among(statement, numbers)


def _rarest(entities: EntityStore, searched: set[str]) -> list[str]:
    """The rarest trigrams, few enough to look up quickly."""
    statement = (
        f"SELECT term, doc FROM trigram_count WHERE term {IN} ORDER BY doc, term"
    )
    counts = entities.database.rows_among(statement, sorted(searched))
    chosen: list[str] = []
    postings = 0
    for term, names in counts:
        postings += names
        if postings > POSTINGS:
            break
        chosen.append(term)
    return chosen
