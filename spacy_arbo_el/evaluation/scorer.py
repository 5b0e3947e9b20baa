"""Scores of linked documents, for ``nlp.evaluate`` and for reports.

Unlike in spaCy's ``score_links``, a gold mention that the pipeline did not find is a miss.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from spacy.scorer import PRFScore
from spacy.tokens import Span
from spacy.training import Example
from spacy.util import registry

from ..annotations import Link
from ..kb.entity import NIL
from ..kb.knowledge_base import ArboKB
from ..mentions.getters import EntSpans, SpanGetter, find_mentions, offsets_of_span
from ..mentions.labels import current_ids
from ..mentions.records import gold_ids

# The k of recall@k in figures, as in Table 1 of the arborescence paper; and all that are scored.
DRAWN_RECALLS = (1, 2, 4, 8, 16, 32, 64)
RECALLS = (1, 2, 4, 8, 10, 16, 32, 64)


class Outcome(NamedTuple):
    """A gold mention, a predicted mention, or both if they have the same offsets.

    label: The label of the gold mention, or of the predicted one if there is no gold mention.
    gold: The gold ids, empty for NIL; None if there is no gold mention.
    predicted: The predicted id, which can be "NIL"; None if there is no predicted mention.
    link: The link of the predicted mention; None if it has none.
    span: The gold mention, or the predicted one if there is no gold mention.
    """

    label: str
    gold: Optional[Tuple[str, ...]]
    predicted: Optional[str]
    link: Optional[Link]
    span: Optional[Span] = None

    @property
    def is_correct(self) -> bool:
        """Whether the gold mention has the correct link, or none if it is NIL."""
        if self.gold is None or self.predicted is None:
            return False
        return self.predicted in self.gold if self.gold else self.predicted == NIL


def outcomes(
    examples: Iterable[Example],
    get_spans: SpanGetter,
    extension: str,
    kb: Optional[ArboKB] = None,
) -> List[Outcome]:
    """Match gold and predicted mentions by their character offsets.

    Gold mentions without annotation are left out: their ``kb_id_`` is empty, not "NIL".

    examples: Linked examples.
    get_spans: Gives the mentions of a Doc.
    extension: The attribute with the link of a span.
    kb: The knowledge base that gold ids refer to. An id that leads to an entity, such as one that
        was merged, is that entity's. Without one, ids are compared as they are.
    """
    results = []
    for example in examples:
        gold = {offsets_of_span(s): s for s in find_mentions(example.reference, get_spans)}
        predicted = {offsets_of_span(s): s for s in find_mentions(example.predicted, get_spans)}
        for offsets in sorted({*gold, *predicted}):
            span = gold.get(offsets)
            if span is None or span.kb_id_:
                results.append(_outcome(span, predicted.get(offsets), extension))
    return results if kb is None else _with_current_ids(results, kb)


def _with_current_ids(results: Sequence[Outcome], kb: ArboKB) -> List[Outcome]:
    gold = current_ids(kb, [result.gold or () for result in results])
    return [
        result if result.gold is None else result._replace(gold=ids)
        for result, ids in zip(results, gold)
    ]


def _outcome(reference: Optional[Span], predicted: Optional[Span], extension: str) -> Outcome:
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


def score_outcomes(results: List[Outcome]) -> Dict[str, Any]:
    """The scores of outcomes. A score is None if there is nothing to score.

    RETURNS: These scores:
        nel_*: spaCy's keys, end to end. A gold entity without a link is a miss. A link without a
            gold entity is a false positive. A wrong link is both.
        arbo_acc: The share of gold mentions with the correct link, or NIL.
        arbo_mentions: The number of gold mentions.
        arbo_recall_at_k: The share of gold mentions with an entity that have it among the first k
            candidates.
        arbo_nil_p, _r, _f: Precision, recall and F1 of NIL.
    """
    per_type: Dict[str, PRFScore] = defaultdict(PRFScore)
    for result in results:
        _count_link(per_type[result.label], result)
    micro, nil = PRFScore(), PRFScore()
    for prf in per_type.values():
        micro += prf
    gold = [result for result in results if result.gold is not None]
    for result in gold:
        nil.tp += not result.gold and result.predicted == NIL
        nil.fp += bool(result.gold) and result.predicted == NIL
        nil.fn += not result.gold and result.predicted != NIL
    scored = [prf for prf in per_type.values() if len(prf)]
    scores: Dict[str, Any] = {
        **_prf("nel_micro", micro),
        "nel_macro_p": _mean([prf.precision for prf in scored]),
        "nel_macro_r": _mean([prf.recall for prf in scored]),
        "nel_macro_f": _mean([prf.fscore for prf in scored]),
        "nel_f_per_type": {label: prf.to_dict() for label, prf in sorted(per_type.items())},
        "nel_score": micro.fscore if len(micro) else None,
        "nel_score_desc": "micro F",
        "arbo_acc": _mean([result.is_correct for result in gold]),
        "arbo_mentions": len(gold),
        **_prf("arbo_nil", nil),
    }
    for k in RECALLS:
        scores[f"arbo_recall_at_{k}"] = recall_at(results, k)
    return scores


def recall_at(results: List[Outcome], k: int) -> Optional[float]:
    """The share of gold mentions with an entity that have it among the first k candidates."""
    return _mean([_is_candidate(result, k) for result in results if result.gold])


def _count_link(prf: PRFScore, result: Outcome) -> None:
    is_entity = bool(result.gold)
    is_link = result.predicted not in (None, NIL)
    if result.is_correct and is_entity:
        prf.tp += 1
        return
    prf.fn += is_entity
    prf.fp += is_link


def _is_candidate(result: Outcome, k: int) -> bool:
    candidates = result.link.ids[:k] if result.link else ()
    return any(kb_id in (result.gold or ()) for kb_id in candidates)


def _prf(name: str, prf: PRFScore) -> Dict[str, Optional[float]]:
    values = (prf.precision, prf.recall, prf.fscore) if len(prf) else (None, None, None)
    return dict(zip((f"{name}_p", f"{name}_r", f"{name}_f"), values))


def _mean(values: List[Any]) -> Optional[float]:
    return sum(values) / len(values) if values else None


@registry.scorers("spacy-arbo-el.linker_scorer.v1")
@dataclass(frozen=True)
class LinkerScorer:
    """The scorer of ``arbo_linker``, the default. For its scores, see ``score_outcomes``::

    [components.arbo_linker.scorer]
    @scorers = "spacy-arbo-el.linker_scorer.v1"
    """

    def __call__(
        self,
        examples: Iterable[Example],
        *,
        get_spans: Optional[SpanGetter] = None,
        extension: str = "arbo",
        kb: Optional[ArboKB] = None,
        **kwargs: Any,
    ) -> Dict[str, Any]:
        return score_outcomes(outcomes(examples, get_spans or EntSpans(), extension, kb))
