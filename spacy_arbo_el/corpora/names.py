"""Mentions by a dictionary: where a text has a name of an entity."""

from dataclasses import dataclass
from typing import Iterable, Iterator, List, Tuple

from spacy.language import Language
from spacy.matcher import PhraseMatcher
from spacy.tokens import Doc, Span
from spacy.util import filter_spans

from ..kb.entity import Entity
from ..mentions.getters import SpanGetter, set_mentions
from .spans import LABEL

# Shorter names are found in their own spelling only: "ALL" is a disease, "all" is none.
SHORT = 4


@dataclass(frozen=True)
class NameFinder:
    """Finds the names of entities in documents, the longest where they overlap.

    The label of a mention is the first type of an entity of that name.

    matchers: For long names in any case, and for short names as they are.
    getter: Where mentions are put.
    """

    matchers: Tuple[PhraseMatcher, PhraseMatcher]
    getter: SpanGetter

    @classmethod
    def build(cls, nlp: Language, entities: Iterable[Entity], getter: SpanGetter) -> "NameFinder":
        """A finder of the names of these entities. Of ``nlp``, only the tokenizer is used."""
        folded, exact = PhraseMatcher(nlp.vocab, attr="LOWER"), PhraseMatcher(nlp.vocab)
        for name, label in _names(entities):
            doc = nlp.tokenizer(name)
            if len(doc):
                (exact if len(name) <= SHORT else folded).add(label, [doc])
        return cls((folded, exact), getter)

    def __call__(self, docs: Iterable[Doc]) -> Iterator[Doc]:
        for doc in docs:
            spans: List[Span] = []
            for matcher in self.matchers:
                spans += matcher(doc, as_spans=True)
            set_mentions(doc, filter_spans(spans), self.getter)
            yield doc


def _names(entities: Iterable[Entity]) -> Iterator[Tuple[str, str]]:
    """Each name once, with the first type of the first entity that has it."""
    seen = set()
    for entity in entities:
        for name in entity.names:
            name = name.strip()
            # A single character or a number is rarely a mention.
            if len(name) > 1 and not name.isdigit() and name not in seen:
                seen.add(name)
                yield name, entity.types[0] if entity.types else LABEL
