"""Cells of tables as mentions. Each is linked in a document that has nothing but its row."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, BeforeValidator, field_validator, model_validator
from spacy.tokens import Doc, Span
from spacy.vocab import Vocab

from ....base.arrays import numbered
from ....kb.entity import Entity
from ....kb.lookup import similar_names
from ....linker import ArboLinker
from ....names.spellings import folded
from ....names.words import words_of
from ....records.lines import is_storable
from ....retrieval.datastore import Datastore
from ....retrieval.neighbours import AllowedEntities

# What the properties of entities are called that all knowledge bases have.
NAME = "name"
TYPE = "type"
DESCRIPTION = "description"
FREQUENCY = "frequency"

# Candidates of a cell where no other number is asked for, and at most.
LIMIT = 10
MOST = 1000

# So many candidates are looked at for others of the same name.
COMPARED = 10
# Characters of a cell, and of its row.
LONGEST = (1000, 4000)
# So many entities with a similar name are added where nothing links, and their least similarity.
SIMILAR = (3, 0.5)


def _texts_of(value: Any, keys: Sequence[str] = ("name", "id", "str")) -> list[Any]:
    """One or more values as texts.

    An object has that of its first filled key. What has none, as the null of an empty cell, is left
    out.
    """
    values = value if isinstance(value, list) else [value]
    named = [
        next(filter(None, map(item.get, keys)), None)
        if isinstance(item, dict)
        else item
        for item in values
    ]
    numbers = (int, float)  # a bool is one too
    return [
        str(item) if isinstance(item, numbers) else item
        for item in named
        if item is not None
    ]


def _text_of(value: Any) -> Any:
    """A value as a text, "" for null. What can be none stays, and is refused."""
    is_list = isinstance(value, list)
    return value if is_list else "".join(_texts_of(value))


Text = Annotated[str, BeforeValidator(_text_of)]


class Property(BaseModel):
    """A value of another column of the table.

    v: Texts; for an entity its name, or its id.
    """

    pid: Text = ""
    v: Annotated[list[str], BeforeValidator(_texts_of)] = []


class Query(BaseModel):
    """A cell: its text, and what the entity must be. See the Reconciliation API 0.2."""

    query: Text = ""
    type: list[str] = []
    limit: int = LIMIT
    properties: list[Property] = []
    type_strict: Annotated[
        Literal["any", "should", "all"], BeforeValidator(lambda value: value or "any")
    ] = "any"

    @field_validator("type", mode="before")
    @classmethod
    def _types(cls, value: Any) -> Any:
        return [item for item in _texts_of(value, ("id", "name")) if item]

    @field_validator("limit", mode="before")
    @classmethod
    def _limit(cls, value: Any) -> Any:
        """Null and 0 mean that none is given, as does anything but a number."""
        is_whole = isinstance(value, str) and value.strip().isdecimal()
        number = (
            int(value)
            if is_whole or isinstance(value, float) and value == value
            else value
        )
        is_number = isinstance(number, int) and not isinstance(number, bool)
        return min(number, MOST) if is_number and number > 0 else LIMIT

    @field_validator("properties", mode="before")
    @classmethod
    def _properties(cls, value: Any) -> Any:
        if isinstance(value, dict):
            return [value]
        is_listed = value is None or isinstance(value, list)
        return (
            [item for item in value or () if item is not None] if is_listed else value
        )

    @model_validator(mode="after")
    def _has_text(self) -> "Query":
        if not self.texts:
            raise ValueError("Give a query, or properties")
        if not all(map(is_storable, (*self.texts, *self.type))):
            raise ValueError("It has half a character or a null character")
        if (
            max(map(len, self.texts[:1])) > LONGEST[0]
            or sum(map(len, self.texts)) > LONGEST[1]
        ):
            raise ValueError(
                f"It has more than {LONGEST[0]} characters, or {LONGEST[1]} in its row"
            )
        return self

    @property
    def texts(self) -> list[str]:
        """Text of the cell or first property, then the others."""
        values = [text for item in self.properties for text in item.v]
        return [text for text in (self.query.strip(), *map(str.strip, values)) if text]

    def span(self, vocab: Vocab) -> Span:
        """The mention; the properties are its context."""
        text, *context = self.texts
        words = [text, ",", ", ".join(context)] if context else [text]
        doc = Doc(vocab, words, [False, True, False][: len(words)])
        return Span(doc, 0, 1, label=self.type[0] if self.type else "")


def candidates(
    linker: ArboLinker, queries: Sequence[Query]
) -> list[list[dict[str, Any]]]:
    """The candidates of each cell, best first. All cells are linked in one batch.

    Where no entity can be linked to, those with a similar name are candidates too: of a misspelled
    name, the encoder may make little. Their score is a share of the threshold.

    RETURNS: Candidates as the Reconciliation API describes them. ``score`` is the probability of
        ``Span._.arbo.candidates`` in percent; it is lowered where other columns fit another
        candidate better. ``match`` is true for the best one, where the linker would link to it,
        unless another one has the text of the cell as its name, or the linker is undecided between
        the two, and the other columns fit that one as well.
    """
    linker.encoder.require_ready(linker.name)
    entities = linker.kb.entities
    threshold = linker.threshold
    spans = [[query.span(linker.vocab)] for query in queries]
    with linker.datastore.snapshot():
        allowed = _allowed(linker.datastore, queries)
        links = linker.stages.link(spans, threshold, allowed).links
        scored = [
            dict(zip(entities.positions_of(link.ids[:count]).tolist(), link.scores))
            for link, count in zip(
                links, (max(query.limit, COMPARED) for query in queries)
            )
        ]
        for number, (query, of_cell) in enumerate(zip(queries, scored)):
            if max(of_cell.values(), default=0.0) < threshold:
                for position, similarity in similar_names(
                    entities, query.texts[0], *SIMILAR
                ):
                    if allowed is None or allowed.allows(number, position):
                        score = min(similarity, 0.99) * threshold
                        of_cell[position] = max(of_cell.get(position, 0.0), score)
        named_positions = entities.positions_of(
            [query.query.strip() for query in queries]
        ).tolist()
        entity_of = entities.at_all({*chain(*scored), *named_positions} - {-1})
    return [
        _of_cell(
            query,
            threshold,
            [(entity_of[position], score) for position, score in of_cell.items()],
            entity_of.get(named),
            [candidate.kb_id for candidate in link.undecided],
        )
        for query, of_cell, named, link in zip(queries, scored, named_positions, links)
    ]


@dataclass(frozen=True)
class _CellCandidate:
    """An entity for a cell. support: The share of what other columns say that it says too."""

    entity: Entity
    probability: float
    features: dict[str, bool | float]

    @property
    def support(self) -> float:
        return self.features.get("properties", 0.0)

    def answer(self, score: float, match: bool) -> dict[str, Any]:
        return {
            "id": self.entity.id,
            "name": self.entity.title,
            "description": self.entity.description,
            "type": [{"id": name, "name": name} for name in self.entity.types],
            "score": round(100 * score, 2),
            "match": match,
            "features": [{"id": k, "value": v} for k, v in self.features.items()],
        }


def _of_cell(
    query: Query,
    threshold: float,
    scored_entities: Sequence[tuple[Entity, float]],
    named: Entity | None,
    undecided: Collection[str],
) -> list[dict[str, Any]]:
    """The candidates of a cell.

    named: The entity that has the text of the cell as its id.
    undecided: The ids of entities that nothing tells apart for the linker.
    """
    pairs = [(entity, score) for entity, score in scored_entities if entity != named]
    pairs += [] if named is None else [(named, 1.0)]
    rows = [
        _CellCandidate(entity, score, _features(query, entity))
        for entity, score in pairs
    ]
    linkable = [row for row in rows if row.probability >= threshold]
    most = max((row.support for row in linkable), default=0.0)

    def score(row: _CellCandidate) -> float:
        lowered = row.probability * (1 + row.support) / (1 + most)
        return 1.0 if row.entity is named else min(lowered, row.probability)

    rows.sort(key=lambda row: (row.entity is not named, -score(row)))
    rivals = [
        row
        for row in rows[1:]
        if score(row) >= score(rows[0])
        or (
            row.support >= rows[0].support
            and (
                row.features["exact_name"]
                or {row.entity.id, rows[0].entity.id} <= set(undecided)
            )
        )
    ]
    links = bool(rows) and rows[0].probability >= threshold and not rivals
    match = named is not None or links
    return [
        row.answer(score(row), match and row is rows[0]) for row in rows[: query.limit]
    ]


def _features(query: Query, entity: Entity) -> dict[str, bool | float]:
    text = query.texts[0]
    words = set(words_of(text))
    word_sets = [set(words_of(name)) for name in entity.names]
    shared = [
        len(words & name_words) / len(words | name_words)
        for name_words in word_sets
        if words | name_words
    ]
    features: dict[str, bool | float] = {
        "exact_name": folded(text) in set(map(folded, entity.names)),
        "shared_words": round(max(shared, default=0.0), 4),
    }
    if query.type:
        features["type"] = bool(set(query.type) & set(entity.types))
    pairs = [(item.pid, text) for item in query.properties for text in item.v]
    if pairs:
        agreements = [is_said(text, values_of(entity, pid)) for pid, text in pairs]
        features["properties"] = round(sum(agreements) / len(agreements), 4)
    if entity.frequency:
        features["frequency"] = entity.frequency
    return features


def is_said(text: str, values: Sequence[Any]) -> bool:
    """Return whether one value has all words of a text."""
    words = set(words_of(text))
    return (
        any(words <= set(words_of(str(value))) for value in values) if words else False
    )


def values_of(entity: Entity, name: str) -> tuple[Any, ...]:
    """The values of a property of an entity: texts, numbers and booleans."""
    if name in (NAME, TYPE):
        return tuple(entity.names if name == NAME else entity.types)
    if name in (DESCRIPTION, FREQUENCY):
        value: Any = entity.description if name == DESCRIPTION else entity.frequency
        return (value,) if value else ()
    value = entity.meta.get(name)
    values = value if isinstance(value, (list, tuple)) else [value]
    return tuple(item for item in values if isinstance(item, (str, int, float)))


def _allowed(datastore: Datastore, queries: Sequence[Query]) -> AllowedEntities | None:
    """Entities of the types asked for; None for all. Entities without a type are allowed too."""
    type_filters = [
        (tuple(query.type), query.type_strict == "all") for query in queries
    ]
    if not (datastore.settings.match_types or any(types for types, _ in type_filters)):
        return None
    masks = [
        _mask(datastore, *type_filter) for type_filter in dict.fromkeys(type_filters)
    ]
    return AllowedEntities(numbered(type_filters), np.array(masks))


def _mask(datastore: Datastore, types: Sequence[str], has_all: bool) -> np.ndarray:
    """Entities of all or any of the types: (positions,) bool."""

    def of(name: str) -> np.ndarray:
        def build() -> np.ndarray:
            mask = np.zeros(datastore.kb.entities.positions, dtype=bool)
            mask[datastore.kb.entities.of_types([name])] = True
            return mask

        return datastore.derived(("of_type", name), build)

    # Only types that occur: they are cached.
    masks = [of(name if datastore.has_type(name) else "") for name in types]
    if not masks:
        return np.ones(datastore.kb.entities.positions, dtype=bool)
    return np.logical_and.reduce(masks) if has_all else np.logical_or.reduce(masks)
