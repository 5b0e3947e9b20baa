"""The texts an entity is encoded from.

A verbalization is a function from an ``Entity`` to a list of ``(title, description)`` pairs.
Each pair becomes one vector, ``[CLS] title [TITLE] description [SEP]``; where there are
several, the one nearest to a mention counts.
"""

import re
from typing import Callable, List, Tuple

from spacy.util import registry

from .entity import Entity

Text = Tuple[str, str]
# One that ends a phrase, not one within a number or a word.
_PUNCTUATION = re.compile(r"[.,;:!?)\]](?=\s|$)")

Verbalization = Callable[[Entity], List[Text]]


def describe(entity: Entity, *, aliases: bool, types: bool) -> str:
    """The description, and in brackets what else is known, as plain text."""
    extras = []
    if types and entity.types:
        extras.append(", ".join(entity.types))
    if aliases and entity.aliases:
        extras.append("; ".join(entity.aliases))
    parts = [entity.description] if entity.description else []
    return " ".join([*parts, *(f"({extra})" for extra in extras)])


@registry.misc("spacy-arbo-el.TitleDescription.v1")
def title_description(aliases: bool = True, types: bool = True) -> Verbalization:
    """One text an entity: title, description, types and aliases (arborescence paper, §2.2)."""

    def verbalize(entity: Entity) -> List[Text]:
        return [(entity.title, describe(entity, aliases=aliases, types=types))]

    return verbalize


@registry.misc("spacy-arbo-el.Names.v1")
def names(description: bool = False, types: bool = False) -> Verbalization:
    """One text a name, for dictionaries of synonyms (BioCoM, §2).

    description: Follow each name by the entity's description, which tells apart
        the entities that share it.
    types: Follow it by the types too.
    """

    def verbalize(entity: Entity) -> List[Text]:
        rest = entity.description if description else ""
        if types and entity.types:
            rest = f"{rest} ({', '.join(entity.types)})".strip()
        return [(name, rest) for name in entity.names]

    return verbalize


@registry.misc("spacy-arbo-el.Parts.v1")
def parts(
    description: bool = True,
    types: bool = False,
    aliases: bool = False,
    paragraph: bool = False,
    limit: int = 50,
    paragraph_limit: int = 100,
) -> Verbalization:
    """One text an entity: its title and the parts wanted, each not too long (VERBALIZED, §3.1).

    description: The short description. types: Semantic types. aliases: Other names.
    paragraph: ``meta["paragraph"]``, such as the first of an encyclopedia's article.
    limit, paragraph_limit: Characters of the parts but the paragraph, and of the paragraph, after
        which a part ends at the next punctuation; 0 for no limit.
    """

    def verbalize(entity: Entity) -> List[Text]:
        found = []
        if description:
            found.append(soft_limit(entity.description, limit))
        if types:
            found.append(soft_limit(", ".join(entity.types), limit))
        if aliases:
            found.append(soft_limit(", ".join(entity.aliases), limit))
        if paragraph:
            text = entity.meta.get("paragraph", "")
            found.append(soft_limit(text if isinstance(text, str) else "", paragraph_limit))
        return [(entity.title, ", ".join(filter(None, found)))]

    return verbalize


def soft_limit(text: str, limit: int) -> str:
    """A text up to the first punctuation after so many characters; all where there is none."""
    if not limit or len(text) <= limit:
        return text
    end = _PUNCTUATION.search(text, limit)
    return text[: end.start()].rstrip() if end else text


@registry.misc("spacy-arbo-el.NoText.v1")
def no_text() -> Verbalization:
    """No text at all: entities are known by their exemplars alone (MOLEMAN, §3)."""

    def verbalize(entity: Entity) -> List[Text]:
        return []

    return verbalize
