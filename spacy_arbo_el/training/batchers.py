"""Batches by mention instead of by document. A document takes part with some of its mentions."""

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import registry

from ..base.settings import check_count
from ..mentions.getters import EntSpans, SpanGetter, find_mentions, offsets_of_span
from ..mentions.record import gold_ids

# In ``user_data`` of a reference: the offsets of the mentions to train on.
_CHOSEN = "arbo_train_on"

Batcher = Callable[[Iterable[Example]], Iterator[list[Example]]]


class CorpusMention(NamedTuple):
    """A labelled mention of a corpus.

    example: The number of its example.
    offsets: Where it begins and ends in the text.
    concept: Its gold ids.
    """

    example: int
    offsets: tuple[int, int]
    concept: tuple[str, ...]


@registry.batchers("spacy-arbo-el.batch_by_mention.v1")
def batch_by_mention(size: int, getter: SpanGetter | None = None) -> Batcher:
    """Batches of mentions drawn at random (paper, §A.1). They are of all documents.

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

    def batches(examples: Iterable[Example]) -> Iterator[list[Example]]:
        corpus = list(examples)
        mentions = labelled_mentions(corpus, getter)
        random.shuffle(mentions)
        for start in range(0, len(mentions), size):
            yield examples_of(mentions[start : start + size], corpus)

    return batches


def chosen_mentions(doc: Doc, mentions: Sequence[Span]) -> list[Span]:
    """The mentions of a reference that a batcher has chosen. All where none has."""
    chosen = doc.user_data.get(_CHOSEN)
    if chosen is None:
        return list(mentions)
    return [span for span in mentions if offsets_of_span(span) in chosen]


def labelled_mentions(
    corpus: Sequence[Example], getter: SpanGetter | None
) -> list[CorpusMention]:
    """The mentions of a corpus that have gold ids.

    getter: As in ``batch_by_mention``.
    """
    getter = getter or EntSpans()
    return [
        CorpusMention(
            number, offsets_of_span(span), tuple(sorted(set(gold_ids(span))))
        )
        for number, example in enumerate(corpus)
        for span in find_mentions(example.reference, getter)
        if gold_ids(span)
    ]


def examples_of(
    mentions: Sequence[CorpusMention], corpus: Sequence[Example]
) -> list[Example]:
    """Examples of mentions, each once; their references name the mentions."""
    offsets: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for mention in mentions:
        offsets[mention.example].append(mention.offsets)
    examples = []
    for number, chosen in offsets.items():
        reference = corpus[number].reference.copy()
        reference.user_data[_CHOSEN] = chosen
        examples.append(Example(corpus[number].predicted, reference))
    return examples
