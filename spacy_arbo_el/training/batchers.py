"""Batches by mention instead of by document: a document takes part with some of its mentions."""

import random
from collections import defaultdict
from typing import Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import registry

from ..errors import Errors
from ..mentions.getters import EntSpans, SpanGetter, find_mentions, offsets_of_span
from ..mentions.records import gold_ids
from ..settings import check_count

# In ``user_data`` of a reference: the offsets of the mentions to train on.
_CHOSEN = "arbo_train_on"

Batcher = Callable[[Iterable[Example]], Iterator[List[Example]]]


class _Mention(NamedTuple):
    """A labelled mention of a corpus.

    example: The number of its example.
    offsets: Where it begins and ends in the text.
    concept: Its gold ids.
    """

    example: int
    offsets: Tuple[int, int]
    concept: Tuple[str, ...]


@registry.batchers("spacy-arbo-el.batch_by_mention.v1")
def batch_by_mention(size: int, getter: Optional[SpanGetter] = None) -> Batcher:
    """Batches of so many mentions, drawn at random from all documents (arborescence paper, §A.1).

    Mentions of one document repeat its entities, so that a batch of few documents has few different
    ones. Other components of the pipeline train on the whole documents::

        [training.batcher]
        @batchers = "spacy-arbo-el.batch_by_mention.v1"
        size = 128

    The corpus is read into memory. In an epoch, each labelled mention occurs once.

    size: The number of mentions in a batch.
    getter: Where mentions are, as in the component's ``mentions.getter``; None for ``doc.ents``.
    """
    check_count("batcher.size", size, least=1)

    def batches(examples: Iterable[Example]) -> Iterator[List[Example]]:
        corpus = list(examples)
        mentions = _labelled(corpus, getter)
        random.shuffle(mentions)
        for start in range(0, len(mentions), size):
            yield _examples_of(mentions[start : start + size], corpus)

    return batches


# paper: BIOCOM
@registry.batchers("spacy-arbo-el.batch_by_concept.v1")
def batch_by_concept(
    n_concepts: int,
    n_mentions: int,
    getter: Optional[SpanGetter] = None,
) -> Batcher:
    """Batches of different concepts with some mentions of each, from all documents.

    Use it where positives are mentions, and with in-batch negatives. A concept is a set of gold
    ids::

        [training.batcher]
        @batchers = "spacy-arbo-el.batch_by_concept.v1"
        n_concepts = 32
        n_mentions = 4

    The corpus is read into memory. In an epoch, each labelled mention occurs once. Concepts are
    drawn by how many of their mentions are left, and the last batches have fewer. A corpus with
    fewer concepts is an error.

    n_concepts: The number of concepts in a batch.
    n_mentions: The number of mentions of each. Concepts with fewer give all.
    getter: Where mentions are, as in the component's ``mentions.getter``; None for ``doc.ents``.
    """
    check_count("batcher.n_concepts", n_concepts, least=1)
    check_count("batcher.n_mentions", n_mentions, least=1)

    def batches(examples: Iterable[Example]) -> Iterator[List[Example]]:
        corpus = list(examples)
        groups = _groups(_labelled(corpus, getter), n_mentions)
        if len(groups) < n_concepts:
            raise ValueError(Errors.E615.format(count=len(groups), wanted=n_concepts))
        rng = np.random.default_rng(random.getrandbits(63))
        left = np.array([len(of_concept) for of_concept in groups])
        while left.any():
            count = min(n_concepts, int((left > 0).sum()))
            concepts = rng.choice(len(left), count, replace=False, p=left / left.sum())
            left[concepts] -= 1
            yield _examples_of([m for c in concepts for m in groups[c][left[c]]], corpus)

    return batches


def chosen_mentions(doc: Doc, mentions: Sequence[Span]) -> List[Span]:
    """The mentions of a reference that a batcher has chosen; all where none has."""
    chosen = doc.user_data.get(_CHOSEN)
    if chosen is None:
        return list(mentions)
    return [span for span in mentions if offsets_of_span(span) in chosen]


def _labelled(corpus: Sequence[Example], getter: Optional[SpanGetter]) -> List[_Mention]:
    getter = getter or EntSpans()
    return [
        _Mention(number, offsets_of_span(span), tuple(sorted(set(gold_ids(span)))))
        for number, example in enumerate(corpus)
        for span in find_mentions(example.reference, getter)
        if gold_ids(span)
    ]


def _groups(mentions: List[_Mention], size: int) -> List[List[List[_Mention]]]:
    """The mentions of each concept, at random, in groups of a size; the last may be smaller."""
    random.shuffle(mentions)
    by_concept: Dict[Tuple[str, ...], List[_Mention]] = defaultdict(list)
    for mention in mentions:
        by_concept[mention.concept].append(mention)
    return [
        [members[start : start + size] for start in range(0, len(members), size)]
        for members in by_concept.values()
    ]


def _examples_of(mentions: Sequence[_Mention], corpus: Sequence[Example]) -> List[Example]:
    """The examples of mentions, each once, with references that name the mentions."""
    offsets: Dict[int, List[Tuple[int, int]]] = defaultdict(list)
    for mention in mentions:
        offsets[mention.example].append(mention.offsets)
    examples = []
    for number, chosen in offsets.items():
        reference = corpus[number].reference.copy()
        reference.user_data[_CHOSEN] = chosen
        examples.append(Example(corpus[number].predicted, reference))
    return examples
