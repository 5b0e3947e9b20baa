"""Mentions by a dictionary: where a text has a name of an entity."""

from dataclasses import dataclass
from typing import Container, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Tuple

import numpy as np
from spacy.language import Language
from spacy.matcher import PhraseMatcher
from spacy.tokens import Doc, Span
from spacy.util import filter_spans
from spacy.vocab import Vocab

from ..kb.entity import Entity
from ..mentions.getters import SpanGetter, find_mentions, set_mentions
from .spans import LABEL

# Shorter names are found in their own spelling only: "ALL" is a disease, "all" is none.
SHORT = 4
# The most tokens of a span that is drawn where a document has no mention and no name.
DRAWN_TOKENS = 3


def is_exact(name: str) -> bool:
    """Whether a name is found in its own spelling only: a short one, or a word in capitals."""
    return len(name) <= SHORT or (name.isupper() and " " not in name)


def is_usable(name: str, stop_words: Container[str] = ()) -> bool:
    """Whether a name can be a mention: not a single character, a number, or a stop word.

    stop_words: Of the language, in lower case. "IT" can be a mention, "it" is none, and "It" begins
        a sentence.
    """
    is_word = name.isupper() or name.lower() not in stop_words
    return len(name) > 1 and not name.isdigit() and is_word


class Name(NamedTuple):
    """A name of the dictionary.

    text: The name in its first spelling.
    kb_id: The id of its entity; None for a name of several entities.
    label: The first type of its first entity.
    """

    text: str
    kb_id: Optional[str]
    label: str


class Hit(NamedTuple):
    """A name in a document: the tokens from ``start`` to ``end``, and the number of the name."""

    start: int
    end: int
    name: int


@dataclass(frozen=True, eq=False)
class Dictionary:
    """The names of entities, and matchers for them.

    vocab: That of the tokenizer, which documents must have too.
    names: Each name once.
    unusable: How many names were left out because they are no mentions, see ``is_usable``.
    exact: Finds names in their own spelling.
    folded: Finds names in any case.
    numbers: From the key of a match to the number of its name.
    """

    vocab: Vocab
    names: List[Name]
    unusable: int
    exact: PhraseMatcher
    folded: PhraseMatcher
    numbers: Mapping[int, int]

    @classmethod
    def build(cls, nlp: Language, entities: Iterable[Entity]) -> "Dictionary":
        """The dictionary of these entities. Of ``nlp``, only the tokenizer is used."""
        names: Dict[str, Name] = {}
        unusable = 0
        for entity in entities:
            label = entity.types[0] if entity.types else LABEL
            # Spellings that differ in case alone are one name.
            spellings: Dict[str, str] = {}
            for text in map(str.strip, entity.names):
                spellings.setdefault(key_of(text), text)
            for key, text in spellings.items():
                if not is_usable(text, nlp.Defaults.stop_words):
                    unusable += 1
                    continue
                first = names.setdefault(key, Name(text, entity.id, label))
                if first.kb_id not in (None, entity.id):
                    names[key] = first._replace(kb_id=None)
        exact = PhraseMatcher(nlp.vocab)
        folded = PhraseMatcher(nlp.vocab, attr="LOWER")
        numbers = {}
        for number, (key, name) in enumerate(names.items()):
            matcher = exact if is_exact(name.text) else folded
            # Some tokenizers split words in lower case in other places.
            patterns = [nlp.tokenizer(text) for text in dict.fromkeys((name.text, key))]
            matcher.add(str(number), [pattern for pattern in patterns if len(pattern)])
            numbers[nlp.vocab.strings[str(number)]] = number
        return cls(nlp.vocab, list(names.values()), unusable, exact, folded, numbers)

    def hits(self, doc: Doc) -> List[Hit]:
        """The names in a document, in order: the longest where they overlap."""
        # A name in its own spelling comes before the same word in any case.
        found: Dict[Tuple[int, int], int] = {}
        for matcher in (self.exact, self.folded):
            for key, start, end in matcher(doc):
                found.setdefault((start, end), self.numbers[key])
        spans = filter_spans([Span(doc, start, end) for start, end in found])
        return [Hit(span.start, span.end, found[span.start, span.end]) for span in spans]


@dataclass(frozen=True)
class NameFinder:
    """Finds the names of entities in documents, the longest where they overlap.

    The label of a mention is the first type of the first entity of that name.

    dictionary: The names.
    getter: Where mentions are put.
    """

    dictionary: Dictionary
    getter: SpanGetter

    @classmethod
    def build(cls, nlp: Language, entities: Iterable[Entity], getter: SpanGetter) -> "NameFinder":
        """A finder of the names of these entities. Of ``nlp``, only the tokenizer is used."""
        return cls(Dictionary.build(nlp, entities), getter)

    def __call__(self, docs: Iterable[Doc]) -> Iterator[Doc]:
        names = self.dictionary.names
        for doc in docs:
            hits = self.dictionary.hits(doc)
            spans = [Span(doc, hit.start, hit.end, label=names[hit.name].label) for hit in hits]
            set_mentions(doc, spans, self.getter)
            yield doc


def spans_to_read(
    docs: Iterable[Doc],
    nlp: Language,
    entities: Iterable[Entity],
    getter: SpanGetter,
    seed: int = 0,
) -> Iterator[List[Span]]:
    """Spans that are like mentions, of each document that has any.

    They are its mentions. In a document without any, they are the names of entities that are in
    it, and as many spans that are drawn at random, one at least, each of which begins with a word.
    So what is read is not only what the dictionary has.

    nlp: Of it, only the tokenizer is used.
    entities: Those whose names are sought.
    getter: Where mentions are.
    """
    rng = np.random.default_rng(seed)
    dictionary: Optional[Dictionary] = None
    for doc in docs:
        spans = find_mentions(doc, getter)
        if not spans:
            dictionary = dictionary or Dictionary.build(nlp, entities)
            spans = [doc[hit.start : hit.end] for hit in dictionary.hits(doc)]
            spans += _drawn(doc, max(len(spans), 1), rng)
        if spans:
            yield spans


def _drawn(doc: Doc, count: int, rng: np.random.Generator) -> List[Span]:
    """At most so many different spans at random, each beginning with a word."""
    words = [token.i for token in doc if token.is_alpha]
    if not words:
        return []
    starts = rng.choice(words, min(count, len(words)), replace=False).tolist()
    return [doc[start : start + 1 + int(rng.integers(DRAWN_TOKENS))] for start in starts]


def key_of(name: str) -> str:
    """What two names have in common that are found in the same places of a text."""
    return name if is_exact(name) else name.lower()
