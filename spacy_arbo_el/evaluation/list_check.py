"""Check of a list of entities alone. What linking to it lacks, such as short names of firms."""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ..find.top_terms import TopTerms
from ..kb.entity import Entity
from ..names.firms import is_legal_form
from ..names.spellings import folded
from ..names.words import without_qualifier
from .data_check import Finding, finding

# Names of so many letters are words of some language, or symbols.
SHORT = 2
# Keys of ``meta`` that the package itself reads.
OWN_KEYS = frozenset(("unnamed", "paragraph", "parents", "xrefs", "synonyms"))


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


@dataclass
class _Owners:
    """The entities of one name: how many, how many described, and their frequencies."""

    name: str
    count: int = 0
    described: int = 0
    frequencies: set[float] = field(default_factory=set)

    @property
    def is_told(self) -> bool:
        """Return whether frequencies, or descriptions of all but one, tell them apart."""
        return len(self.frequencies) > 1 or self.described >= self.count - 1


def check_list(
    entities: Iterable[Entity], stop_words: Container[str], words: Container[str] = ()
) -> tuple[list[Finding], dict[str, list[str]]]:
    """Find what a list lacks, in one pass over its entities.

    stop_words: Of the language, in lower case.
    words: Further words of it, in lower case.
    RETURNS: The findings, and aliases to add, by the ids of their entities.
    """
    tally = _Tally(ShortNames(words))
    for entity in entities:
        tally.add(entity, stop_words, words)
    short_names = tally.short_names.missing()
    aliases: dict[str, list[str]] = defaultdict(list)
    for titles in short_names.values():
        for entity_id, name in titles.items():
            aliases[entity_id].append(name)
    return [_of_short_names(short_names), *tally.findings()], aliases


def _of_short_names(short_names: Mapping[str, Mapping[str, str]]) -> Finding:
    most_shared = sorted(
        short_names.values(), key=lambda titles: (-len(titles), *titles.values())
    )
    return finding(
        "short names of firms that are not among their aliases",
        [
            f"{next(iter(titles.values()))!r} of {', '.join(titles)}"
            for titles in most_shared
        ],
        0,
        "--write COPY adds them. Of a firm that the list lacks, more is linked wrongly then.",
    )


@dataclass
class _Tally:
    """Counts of what the entities of a list have and lack.

    short_names: Gathers short names of firms.
    owners: The entities of each name, by its folded form.
    qualified: Titles with a qualifier that nothing else explains.
    words: Names that are words, with their entities.
    symbols: Names in capitals that are words, and legal forms, with their entities.
    titles: The title of each entity.
    top: Gathers the top terms.
    keys: How many entities have each key that is not read.
    total, described: The entities, and those with a description.
    """

    short_names: ShortNames
    owners: dict[str, _Owners] = field(default_factory=dict)
    qualified: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    titles: dict[str, str] = field(default_factory=dict)
    top: TopTerms = field(default_factory=TopTerms)
    keys: Counter[str] = field(default_factory=Counter)
    total: int = 0
    described: int = 0

    def add(
        self, entity: Entity, stop_words: Container[str], words: Container[str]
    ) -> None:
        self.total += 1
        self.top.add(entity)
        self.short_names.add(entity)
        self.titles[entity.id] = entity.title
        symbols = (
            name for name in entity.names if _is_symbol(name, stop_words, words)
        )
        self.symbols += [f"{name!r} of {entity.id}" for name in symbols]
        self.described += bool(entity.description)
        self.keys.update(str(key) for key in entity.meta if key not in OWN_KEYS)
        of_language = (name for name in entity.names if _is_word(name, stop_words))
        self.words += [f"{name!r} of {entity.id}" for name in of_language]
        for key, name in {
            folded(name): name for name in reversed(entity.names)
        }.items():
            of_name = self.owners.setdefault(key, _Owners(name))
            of_name.count += 1
            of_name.described += bool(entity.description)
            of_name.frequencies.add(entity.frequency)
        bare = without_qualifier(entity.title)
        if bare and not (entity.description or entity.types):
            self.qualified.append(f"{entity.title!r}")

    def findings(self) -> list[Finding]:
        shared = [owner for owner in self.owners.values() if owner.count > 1]
        untold = [owner for owner in shared if not owner.is_told]
        untold.sort(key=lambda owner: (-owner.count, owner.name))
        return [
            finding(
                "shared names that nothing tells apart",
                [f"{owner.name!r} of {owner.count} entities" for owner in untold],
                len(shared),
                "A mention of one is NIL: a tie is no link. Give the entities a description, or a "
                "frequency (how often each is meant).",
            ),
            finding(
                "titles with a qualifier in brackets, and no description or type",
                self.qualified,
                self.total,
                "Texts write the bare name, which is found too. Move the qualifier to the "
                "description or the types: a description is compared with the context.",
            ),
            finding(
                "names that are words of the language, or two small letters",
                self.words,
                len(self.owners),
                "Texts are full of these words. Leave the names out, or write symbols in capitals: "
                "those are found in capitals only.",
            ),
            finding(
                "symbols that are words, or legal forms of firms",
                self.symbols,
                len(self.owners),
                "They are not found in capitals, in headings and at the beginning of a sentence "
                "unless the text has them elsewhere too, nor behind the name of a firm. Leave out "
                "those that texts do not use.",
            ),
            finding(
                "top terms, which nearly all entities are",
                self._top_terms(),
                self.total,
                "arbo_names does not find them. If they are meant, set its top_terms = true.",
            ),
            finding(
                "columns that linking does not read",
                [
                    f"{key!r}, which {count} entities have"
                    for key, count in self.keys.most_common()
                ],
                0,
                "They are kept in meta. What tells entities apart belongs into the description, a "
                "kind into types: arbo kb build LIST KB --column types=COLUMN.",
            ),
            finding(
                "entities without a description",
                [""] * (self.total - self.described),
                self.total,
                "Without one, the context of a mention says nothing about an entity. It matters "
                "where names are shared, and for names that are words.",
            ),
        ]

    def _top_terms(self) -> list[str]:
        titles = [
            repr(self.titles[key]) for key in self.top.ids() if key in self.titles
        ]
        words = [repr(word) for word in self.top.words() if word in self.owners]
        return sorted({*titles, *words})


def _is_symbol(name: str, stop_words: Container[str], words: Container[str]) -> bool:
    lower = name.lower()
    is_word = len(name) > SHORT and (lower in words or lower in stop_words)
    return is_legal_form(name) or (name.isupper() and is_word)


def _is_word(name: str, stop_words: Container[str]) -> bool:
    """Return whether a name is a stop word, or two small letters. Capitals are a symbol."""
    is_short = len(name) <= SHORT and name.islower()
    return is_short or (name.lower() in stop_words and not name.isupper())
