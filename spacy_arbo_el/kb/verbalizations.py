"""Verbalizations: the texts that an entity is encoded from.

A verbalization is a function from an ``Entity`` to a list of ``(title, description)`` pairs. Each
pair becomes one vector, that of ``[CLS] title [TITLE] description [SEP]``. Where an entity has
several, the one that is most similar to a mention counts. An entity has none if it has no name
(``Entity.is_unnamed``) and no description: only exemplars lead to it.

Write your own as a frozen dataclass with ``__call__``. Its ``repr`` is stored with the vectors.
When the knowledge base is loaded with an equal ``repr``, its texts need not be compared.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass

from spacy.util import registry

from ..encoders.protocol import Text
from ..names.spellings import compatible
from .entity import Entity

Verbalization = Callable[[Entity], list[Text]]

_WIKIDATA_ID = re.compile(r"[PQ]\d+")
# Punctuation that ends a phrase, not that within a number or a word.
_PUNCTUATION = re.compile(r"[.,;:!?)\]](?=\s|$)")
# After so many characters a part of a text ends, and a paragraph, at the next punctuation.
_PART, _PARAGRAPH = 50, 100


@registry.misc("spacy-arbo-el.TitleDescription.v1")
@dataclass(frozen=True)
class TitleDescription:
    """One text per entity: title, description, types and aliases (arborescence paper, §2.2).

    The default. Use it where entities have descriptions, as in Wikipedia or UMLS::

        [components.arbo_linker.retriever.verbalization]
        @misc = "spacy-arbo-el.TitleDescription.v1"
        aliases = true

    aliases: Whether the aliases follow the description, in brackets.
    types: Whether the types follow the description, in brackets.
    """

    aliases: bool = True
    types: bool = True

    def __call__(self, entity: Entity) -> list[Text]:
        details = [entity.description] if entity.description else []
        if self.types and entity.types:
            details.append(f"({', '.join(entity.types)})")
        if self.aliases and entity.aliases:
            details.append(f"({'; '.join(entity.aliases)})")
        return _one_text(entity, " ".join(details))


@registry.misc("spacy-arbo-el.Names.v1")
@dataclass(frozen=True)
class Names:
    """One text per name, so every synonym has a vector.

    Use it for dictionaries of synonyms without descriptions, such as MEDIC::

        [components.arbo_linker.retriever.verbalization]
        @misc = "spacy-arbo-el.Names.v1"

    description: Whether the entity's description follows each name. It distinguishes entities
        that share a name.
    types: Whether the types follow each name, in brackets.
    """

    description: bool = False
    types: bool = False

    def __call__(self, entity: Entity) -> list[Text]:
        details = entity.description if self.description else ""
        if self.types and entity.types:
            details = f"{details} ({', '.join(entity.types)})".strip()
        if not entity.names:
            return _one_text(entity, details) if self.description else []
        return [
            (name, details)
            for name in dict.fromkeys(map(compatible, entity.names_in_text))
        ]


@registry.misc("spacy-arbo-el.Parts.v1")
@dataclass(frozen=True)
class Parts:
    """One text per entity. Its title and chosen parts, each cut to a length (VERBALIZED, §3.1).

    A part ends at the next punctuation after 50 characters, a paragraph after 100.

    Use it where descriptions are long, or where ``meta`` holds a paragraph of an encyclopedia::

        [components.arbo_linker.retriever.verbalization]
        @misc = "spacy-arbo-el.Parts.v1"
        types = true

    description: Whether the description is a part.
    types: Whether the semantic types are a part, but for ids of Wikidata, which say nothing.
    aliases: Whether the other names are a part.
    paragraph: Whether ``meta["paragraph"]`` is a part, such as an encyclopedia's first paragraph.
    """

    description: bool = True
    types: bool = False
    aliases: bool = False
    paragraph: bool = False

    def __call__(self, entity: Entity) -> list[Text]:
        parts = []
        if self.description:
            parts.append(entity.description)
        if self.types:
            parts.append(
                ", ".join(t for t in entity.types if not _WIKIDATA_ID.fullmatch(t))
            )
        if self.aliases:
            parts.append(", ".join(entity.aliases))
        details = [soft_limit(part, _PART) for part in parts]
        if self.paragraph:
            text = entity.meta.get("paragraph", "")
            details.append(
                soft_limit(text if isinstance(text, str) else "", _PARAGRAPH)
            )
        return _one_text(entity, ", ".join(filter(None, details)))


@registry.misc("spacy-arbo-el.NoText.v1")
@dataclass(frozen=True)
class NoText:
    """No text: only exemplars lead to entities (MOLEMAN, §3).

    Use it for entities without names, with a corpus that has labelled mentions of them::

        [components.arbo_linker.retriever.verbalization]
        @misc = "spacy-arbo-el.NoText.v1"
    """

    def __call__(self, entity: Entity) -> list[Text]:
        return []


def _one_text(entity: Entity, details: str) -> list[Text]:
    """The title, if it is a name, with the rest of a text.

    An unnamed entity without a description has none: all those of a type would have one text.
    """
    if not entity.is_unnamed:
        return [(compatible(entity.title), details)]
    if details and (entity.description or entity.aliases):
        return [("", details)]
    return []


def verbalization_identity(verbalize: Verbalization) -> str:
    """The ``repr`` of a verbalization; "" where that is only an address in memory."""
    text = repr(verbalize)
    if is_dataclass(verbalize) or " at 0x" not in text:
        return text
    return ""


def soft_limit(text: str, limit: int) -> str:
    """The text up to the first punctuation after ``limit`` characters, if any."""
    end = _PUNCTUATION.search(text, limit)
    if end:
        return text[: end.start()].rstrip()
    return text
