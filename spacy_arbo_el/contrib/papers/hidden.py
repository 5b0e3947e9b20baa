"""Hidden synonyms: a dev set of mentions without annotation.

One name of an entity is taken out of the knowledge base. Where a text has it, the linker must find
the entity by its other names, by context and by spelling, as it must with real mentions. So the
reranker, the probabilities and the thresholds can be fitted without annotation.

For every second of these entities, the names with the same words in another order or number are
taken out too: "breast neoplasms" with "neoplasm, breast". Some real mentions differ from a name in
their words, and some in the spelling alone: the reranker must see both.
"""

import zlib
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc

from ...find.dictionary import Dictionary, key_of
from ...kb.entity import Entity
from ...names.words import words_of
from .errors import PaperMessages
from .silver import PER_NAME, Scan, choose, name_span

# What the ids of documents begin with that are a name alone.
BARE = "name:"
# The share of the documents that are in the dev set.
DEV_SHARE = 0.2
# Of the entities with several names that it mentions: the share that loses one of these names.
HIDE = 0.5


def is_dev(id_: str, seed: int) -> bool:
    """Return whether a document is in the dev set, and not in the training corpus."""
    return zlib.crc32(f"{seed}:{id_}".encode("utf8", "replace")) < DEV_SHARE * 2**32


@dataclass(frozen=True, eq=False)
class HiddenDev:
    """A dev set of mentions with known and hidden names.

    It has as many names of entities without mentions, each a separate document, as it has
    mentions of hidden names.

    chosen: (n,) bool, the mentions of the scan that are in the dev set.
    in_text: How many of these are of hidden names.
    bare: The hidden names that are separate documents.
    hidden: All hidden names, with those of the same words that are hidden too.
    """

    scan: Scan
    chosen: np.ndarray
    in_text: int
    bare: Sequence[int]
    hidden: frozenset[int]

    @classmethod
    def choose(
        cls, scan: Scan, share: float, per_name: int = PER_NAME, seed: int = 0
    ) -> "HiddenDev":
        """Choose the mentions and the names to hide.

        Raises ValueError if no entity can lose a name.

        share: The share of entities that lose a name, see ``HIDE``.
        per_name, seed: As in ``write_chosen``.
        """
        dictionary = scan.dictionary
        generator = np.random.default_rng(seed)
        chosen = choose(scan.names, per_name, seed)
        groups_of = _entities_with_several(dictionary)
        names_found = set(scan.names.tolist())
        occurring = [
            [g for g in groups if names_found.intersection(g)]
            for groups in groups_of.values()
        ]
        mentioned = [groups for groups in occurring if groups]
        _, hidden = _hide(
            mentioned, int(np.ceil(share * len(mentioned))), generator, names_found
        )
        in_text = int(np.isin(scan.names[chosen], hidden).sum())
        ids = {dictionary.names[number].kb_id for number in names_found}
        without = [groups for id_, groups in groups_of.items() if id_ not in ids]
        bare, hidden_too = _hide(without, in_text, generator)
        return cls(scan, chosen, in_text, bare, frozenset([*hidden, *hidden_too]))

    def write(self, nlp: Language, output: Path) -> None:
        """Write it as a ``.spacy`` file or a folder. Of ``nlp``, only the tokenizer is used."""
        bare = _bare_docs(nlp, self.scan.dictionary, self.bare)
        self.scan.write(output, self.chosen, bare)


def without_names(
    entities: Iterable[Entity], dictionary: Dictionary, hidden: Iterable[int]
) -> Iterator[Entity]:
    """The entities that have hidden names, without these. An alias takes the place of a title.

    hidden: The numbers of names in the dictionary.
    """
    keys: dict[str, set[str]] = {}
    for number in hidden:
        name = dictionary.names[number]
        keys.setdefault(name.kb_id or "", set()).add(key_of(name.text))
    for entity in entities:
        lost = keys.get(entity.id)
        if lost is not None:
            title, *aliases = (
                name for name in entity.names if key_of(name.strip()) not in lost
            )
            yield replace(entity, title=title, aliases=tuple(aliases))


def _entities_with_several(dictionary: Dictionary) -> dict[str, list[list[int]]]:
    """Names of entities with several different ones. Names of the same words are one group."""
    groups_of: dict[str, dict[frozenset[str], list[int]]] = {}
    for number, name in enumerate(dictionary.names):
        if name.kb_id is not None:
            groups = groups_of.setdefault(name.kb_id, {})
            groups.setdefault(frozenset(words_of(name.text)), []).append(number)
    several = {
        id_: [*groups.values()] for id_, groups in groups_of.items() if len(groups) > 1
    }
    if not several:
        raise PaperMessages.E842()
    return several


def _hide(
    entities: list[list[list[int]]],
    count: int,
    generator: np.random.Generator,
    names_found: Container[int] | None = None,
) -> tuple[list[int], list[int]]:
    """Draw one name each of so many entities.

    entities: The names of each, in groups of the same words.
    names_found: The names to draw from; None for all.
    RETURNS: The names, and all names to hide. For every second one, these are all of its group.
    """
    rows = np.sort(generator.permutation(len(entities))[:count])
    groups = [
        entities[row][int(generator.integers(len(entities[row])))] for row in rows
    ]
    drawn = [
        [name for name in group if names_found is None or name in names_found]
        for group in groups
    ]
    names = [int(generator.choice(group)) for group in drawn]
    return names, [*names, *chain(*groups[1::2])]


def _bare_docs(
    nlp: Language, dictionary: Dictionary, numbers: Iterable[int]
) -> Iterator[Doc]:
    for number in numbers:
        name = dictionary.names[number]
        doc = nlp.make_doc(name.text)
        doc.user_data["doc_id"] = f"{BARE}{name.kb_id}"
        doc.ents = [name_span(doc, 0, len(doc), name)]
        yield doc
