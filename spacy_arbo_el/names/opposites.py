"""Words that make two names those of different entities."""

from collections.abc import Collection

from .words import NEGATING, numbers_among

_PAIRS = (
    "left right, upper lower, anterior posterior, superior inferior, dorsal ventral, "
    "proximal distal, medial lateral, internal external, inner outer, acute chronic, "
    "benign malignant, primary secondary, maternal paternal, male female, boy girl, "
    "senior junior, sr jr, major minor, north south, east west, northern southern, "
    "eastern western, northeast southwest, northwest southeast, import export, "
    "positive negative, high low, hot cold, early late, large small"
)
_OTHER_OF: dict[str, str] = {}
for _pair in _PAIRS.split(", "):
    _first, _second = _pair.split()
    _OTHER_OF.update({_first: _second, _second: _first})


def are_opposed(words: Collection[str], other_words: Collection[str]) -> bool:
    """Return whether two names differ in their numbers, in a negation or in an opposed word.

    words, other_words: As ``words_of`` gives them. A number that only one name has counts not:
        "diabetes" may be "type 2 diabetes".
    """
    numbers, other_numbers = numbers_among(words), numbers_among(other_words)
    if numbers and other_numbers and numbers != other_numbers:
        return True
    only = set(words) - set(other_words)
    other_only = set(other_words) - set(words)
    if not NEGATING.isdisjoint(only | other_only):
        return True
    return any(_OTHER_OF.get(word) in other_only for word in only)
