"""Hidden synonyms: a dev set of mentions without annotation.

One name of an entity is taken out of the knowledge base. Where a text has it, the linker must find
the entity by its other names, by context and by spelling, as it must with real mentions. So the
reranker, the probabilities and the thresholds can be fitted without annotation.

For every second of these entities, the names with the same words in another order or number are
taken out too: "breast neoplasms" with "neoplasm, breast". Some real mentions differ from a name in
their words, and some in the spelling alone: the reranker must see both.
"""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Span

from ...base.errors import ArboError
from ...base.words import words_of
from ...corpora.names import Dictionary, key_of
from ...kb.entity import Entity
from .errors import PaperMessages
from .silver import PER_NAME, Scan, SilverReport, choose

# What the ids of documents begin with that are a name alone.
BARE = "name:"
# The share of the documents that are in the dev set.
DEV_SHARE = 0.2
# Of the entities with several names that it mentions: the share that loses one of these names.
HIDE = 0.5


def is_dev(id_: str, seed: int) -> bool:
    """Return whether a document is in the dev set, and not in the training corpus."""
    return zlib.crc32(f"{seed}:{id_}".encode("utf8", "replace")) < DEV_SHARE * 2**32


class HiddenReport(NamedTuple):
    """Contents of the dev set.

    silver: The mentions in texts.
    in_text: How many of these are of hidden names.
    bare: The number of hidden names that are separate documents.
    hidden: The numbers of all hidden names, with those of the same words that are hidden too.
    """

    silver: SilverReport
    in_text: int
    bare: int
    hidden: frozenset[int]


@dataclass(frozen=True, eq=False)
class HiddenDev:
    """A dev set of mentions with known and hidden names.

    It has as many names of entities without mentions, each a separate document, as it has
    mentions of hidden names.

    scan: The mentions.
    chosen: (n,) bool, those that are in the dev set.
    bare: The hidden names that are separate documents.
    report: What it has.
    """

    scan: Scan
    chosen: np.ndarray
    bare: Sequence[int]
    report: HiddenReport

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
        hidden = _hide_found(scan, groups_of, share, generator)
        in_text = int(np.isin(scan.names[chosen], hidden).sum())
        bare, others = _hide_others(scan, groups_of, in_text, generator)
        every = frozenset([*hidden, *others])
        report = HiddenReport(scan.report(chosen), in_text, len(bare), every)
        return cls(scan, chosen, bare, report)

    def write(self, nlp: Language, output: Path) -> None:
        """Write it as a ``.spacy`` file or a folder. Of ``nlp``, only the tokenizer is used."""
        bare = _bare_docs(nlp, self.scan.dictionary, self.bare)
        self.scan.write(output, self.chosen, bare)


def without_names(
    entities: Iterable[Entity], dictionary: Dictionary, hidden: Iterable[int]
) -> Iterator[Entity]:
    """The entities that have hidden names, without these. An alias takes the place of a title.

    entities: Those of the dictionary.
    hidden: The numbers of names in the dictionary.
    """
    keys: dict[str, set[str]] = {}
    for number in hidden:
        name = dictionary.names[number]
        keys.setdefault(name.kb_id or "", set()).add(key_of(name.text))
    for entity in entities:
        lost = keys.get(entity.id)
        if lost is not None:
            title, *aliases = (name for name in entity.names if key_of(name.strip()) not in lost)
            yield replace(entity, title=title, aliases=tuple(aliases))


def _entities_with_several(dictionary: Dictionary) -> dict[str, list[list[int]]]:
    """Names of entities with several different ones. Names of the same words are one group."""
    groups_of: dict[str, dict[frozenset[str], list[int]]] = {}
    for number, name in enumerate(dictionary.names):
        if name.kb_id is not None:
            groups = groups_of.setdefault(name.kb_id, {})
            groups.setdefault(frozenset(words_of(name.text)), []).append(number)
    several = {id_: [*groups.values()] for id_, groups in groups_of.items() if len(groups) > 1}
    if not several:
        raise ArboError(PaperMessages.E842)
    return several


def _hide_found(
    scan: Scan,
    groups_of: dict[str, list[list[int]]],
    share: float,
    generator: np.random.Generator,
) -> list[int]:
    found = set(scan.names.tolist())
    in_text = [[g for g in groups if found.intersection(g)] for groups in groups_of.values()]
    mentioned = [groups for groups in in_text if groups]
    chosen = _one_of_some(mentioned, int(np.ceil(share * len(mentioned))), generator)
    occurring = [[number for number in group if number in found] for group in chosen]
    return _hidden_with(_one_of_each(occurring, generator), chosen)


def _hide_others(
    scan: Scan,
    groups_of: dict[str, list[list[int]]],
    count: int,
    generator: np.random.Generator,
) -> tuple[list[int], list[int]]:
    """Choose one name each of some entities without mentions. All names to hide are given too."""
    names = scan.dictionary.names
    mentioned = {names[number].kb_id for number in set(scan.names.tolist())}
    others = [groups for id_, groups in groups_of.items() if id_ not in mentioned]
    chosen = _one_of_some(others, count, generator)
    bare = _one_of_each(chosen, generator)
    return bare, _hidden_with(bare, chosen)


def _one_of_some(
    entities: list[list[list[int]]], count: int, generator: np.random.Generator
) -> list[list[int]]:
    """Draw one group of names for each of some entities."""
    rows = np.sort(generator.permutation(len(entities))[:count])
    return [entities[row][int(generator.integers(len(entities[row])))] for row in rows]


def _one_of_each(groups: Sequence[Sequence[int]], generator: np.random.Generator) -> list[int]:
    return [int(generator.choice(group)) for group in groups]


def _hidden_with(names: list[int], groups: list[list[int]]) -> list[int]:
    """Names to hide, with some of their groups. For every second name, the others of its group
    are hidden too.
    """
    second = zip(names[1::2], groups[1::2])
    return [*names, *(other for name, group in second for other in group if other != name)]


def _bare_docs(nlp: Language, dictionary: Dictionary, numbers: Iterable[int]) -> Iterator[Doc]:
    for number in numbers:
        name = dictionary.names[number]
        doc = nlp.make_doc(name.text)
        doc.user_data["doc_id"] = f"{BARE}{name.kb_id}"
        doc.ents = [Span(doc, 0, len(doc), label=name.label, kb_id=name.kb_id or "")]
        yield doc
