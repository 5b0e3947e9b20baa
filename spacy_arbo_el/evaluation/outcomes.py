"""Gold mentions beside predicted ones."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from spacy.tokens import Span
from spacy.training import Example

from ..kb.entity import NIL
from ..kb.knowledge_base import ArboKB
from ..mentions.annotations import Link
from ..mentions.getters import Offsets, SpanGetter, find_mentions, offsets_of_span
from ..mentions.labels import current_ids
from ..mentions.record import gold_ids


class Outcome(NamedTuple):
    """A gold mention, a predicted one, or an aligned pair.

    label: The label of the gold mention, or of the predicted one if there is no gold mention.
    gold: The gold ids, empty for NIL; None if there is no gold mention.
    predicted: The predicted id, which can be "NIL"; None if there is no predicted mention.
    link: The link of the predicted mention; None if it has none.
    span: The gold mention, or the predicted one if there is no gold mention.
    """

    label: str
    gold: tuple[str, ...] | None
    predicted: str | None
    link: Link | None
    span: Span | None = None

    @property
    def is_correct(self) -> bool:
        """Return whether a gold mention is linked right. A NIL mention must not be linked."""
        if self.gold is None or self.predicted is None:
            return False
        return self.predicted in self.gold if self.gold else self.predicted == NIL


def outcomes(
    examples: Iterable[Example],
    get_spans: SpanGetter,
    extension: str,
    kb: ArboKB | None = None,
) -> list[Outcome]:
    """Match gold and predicted mentions by their character offsets.

    Of several labels over the same text, those of the same label are a pair.

    Gold mentions without annotation are left out: their ``kb_id_`` is empty, not "NIL".

    kb: The knowledge base that gold ids refer to. An id that leads to an entity, such as one that
        was merged, is that entity's. Without one, ids are compared literally.
    """
    results = []
    for example in examples:
        gold = _by_offsets(find_mentions(example.reference, get_spans))
        predicted = _by_offsets(find_mentions(example.predicted, get_spans))
        for offsets in sorted({*gold, *predicted}):
            pairs = _pairs(gold.get(offsets, []), predicted.get(offsets, []))
            results += [
                _outcome(span, prediction, extension)
                for span, prediction in pairs
                if span is None or span.kb_id_
            ]
    return results if kb is None else _with_current_ids(results, kb)


def _by_offsets(spans: Iterable[Span]) -> dict[Offsets, list[Span]]:
    spans_at: dict[Offsets, list[Span]] = {}
    for span in spans:
        spans_at.setdefault(offsets_of_span(span), []).append(span)
    return spans_at


def _pairs(
    gold: Sequence[Span], predicted: Sequence[Span]
) -> Iterator[tuple[Span | None, Span | None]]:
    """Pair the mentions of the same offsets: those of one label, then others in order."""
    by_label = {span.label_: span for span in predicted}
    unpaired = []
    for span in gold:
        if span.label_ in by_label:
            yield span, by_label.pop(span.label_)
        else:
            unpaired.append(span)
    yield from zip_longest(unpaired, by_label.values())


def _with_current_ids(results: Sequence[Outcome], kb: ArboKB) -> list[Outcome]:
    gold = current_ids(kb, [result.gold or () for result in results])
    return [
        result if result.gold is None else result._replace(gold=ids)
        for result, ids in zip(results, gold)
    ]


def _outcome(
    reference: Span | None, predicted: Span | None, extension: str
) -> Outcome:
    link = None
    if predicted is not None and Span.has_extension(extension):
        link = predicted._.get(extension)
    span = reference if reference is not None else predicted
    assert span is not None
    return Outcome(
        span.label_,
        None if reference is None else gold_ids(reference),
        None if predicted is None else (predicted.kb_id_ or NIL),
        link,
        span,
    )


def mean(values: Sequence[Any]) -> float | None:
    """The mean; None of nothing."""
    return sum(values) / len(values) if values else None
