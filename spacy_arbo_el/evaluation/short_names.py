"""Short names of firms without a legal form in their titles: "Halix" of "Halix Oil & Gas"."""

from collections import Counter, defaultdict
from collections.abc import Container, Iterator
from dataclasses import dataclass, field

from ..kb.entity import Entity
from ..names.spellings import folded

# The label of firms in most pipelines.
FIRM = "ORG"
# What ends so many titles, such as "Pharma", says what firms do, and is no part of a short name.
LEAST_ENDINGS = 3


@dataclass
class ShortNames:
    """Gathers the words that titles of firms begin with, and the names that entities have.

    A firm has the type ``FIRM``. One with a legal form has its short names: see
    ``Entity.names_in_text``.

    words: Words of the language, in lower case; a short name has another one.
    """

    words: Container[str]
    _titles: dict[str, dict[str, tuple[str, str]]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    _endings: Counter[str] = field(default_factory=Counter)
    _named: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def add(self, entity: Entity) -> None:
        for name in entity.names_in_text:
            self._named[folded(name)].add(entity.id)
        if FIRM in entity.types:
            for beginning, ending in _parted(entity.title):
                self._titles[folded(beginning)].setdefault(
                    entity.id, (beginning, ending)
                )
                self._endings[ending] += 1

    def missing(self) -> dict[str, dict[str, str]]:
        """The entities that lack a short name.

        RETURNS: By the short name, folded: as the title has it, by the id of the entity.
        """
        missing = {}
        for name, titles in self._titles.items():
            if not all(word in self.words for word in name.split()):
                named = self._named.get(name, set())
                is_shared = len(titles.keys() | named) > 1
                lacking = {
                    key: text
                    for key, (text, ending) in titles.items()
                    if key not in named
                    and (is_shared or self._endings[ending] >= LEAST_ENDINGS)
                }
                if lacking:
                    missing[name] = lacking
        return missing


def _parted(name: str) -> Iterator[tuple[str, str]]:
    """A name in two, behind each of its words. The second part is folded."""
    words = name.split()
    for count in range(1, len(words) + 1):
        if any(map(str.isalpha, words[count - 1])):
            yield " ".join(words[:count]), folded(" ".join(words[count:]))
