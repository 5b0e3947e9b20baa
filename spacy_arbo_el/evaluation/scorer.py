"""Scores of linked Docs, for ``nlp.evaluate`` and for reports.

Unlike spaCy's own ``score_links``, a gold mention that the pipeline did not find counts as missed.
"""

from collections import defaultdict
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple

from spacy.scorer import PRFScore
from spacy.tokens import Span
from spacy.training import Example
from spacy.util import registry

from ..annotations import Link
from ..kb.entity import NIL
from ..mentions import SpanGetter, ent_spans, find_mentions, gold_ids, offsets_of_span

RECALLS = (1, 2, 4, 8, 16, 32, 64)


class Outcome(NamedTuple):
    """A gold mention or a predicted one, or both where they are the same stretch of text.

    gold: The gold ids, empty for NIL; None where there is no gold mention.
    predicted: The predicted id, "NIL" or an entity's; None where the mention was not found.
    link: What the linker attached, if anything.
    """

    label: str
    gold: Optional[Tuple[str, ...]]
    predicted: Optional[str]
    link: Optional[Link]

    @property
    def right(self) -> bool:
        if self.gold is None or self.predicted is None:
            return False
        return self.predicted in self.gold if self.gold else self.predicted == NIL


def outcomes(examples: Iterable[Example], get_spans: SpanGetter, extension: str) -> List[Outcome]:
    """Gold and predicted mentions side by side, matched by character offsets.

    Gold mentions without any annotation (empty ``kb_id_``, which is not "NIL") are left out.
    """
    found = []
    for example in examples:
        gold = {offsets_of_span(s): s for s in find_mentions(example.reference, get_spans)}
        there = {offsets_of_span(s): s for s in find_mentions(example.predicted, get_spans)}
        for offsets in sorted({*gold, *there}):
            reference, predicted = gold.get(offsets), there.get(offsets)
            if reference is not None and not reference.kb_id_:
                continue
            found.append(_outcome(reference, predicted, extension))
    return found


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
    )


def score_outcomes(results: List[Outcome]) -> Dict[str, Any]:
    """All scores of a list of outcomes; None where there is nothing to score.

    nel_*: spaCy's keys, end to end: a gold entity that was not found or got no link is a miss, a
        link where there is none is a false alarm, a wrong link is both.
    arbo_acc: Share of gold mentions that got what they should have, NIL included.
    arbo_recall_at_k: Share of gold mentions in the KB whose entity is among the first k candidates.
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
        "arbo_acc": _mean([result.right for result in gold]),
        "arbo_mentions": len(gold),
        **_prf("arbo_nil", nil),
    }
    linkable = [result for result in gold if result.gold]
    for k in RECALLS:
        scores[f"arbo_recall_at_{k}"] = _mean([_within(result, k) for result in linkable])
    return scores


def _count_link(prf: PRFScore, result: Outcome) -> None:
    is_entity = bool(result.gold)
    is_link = result.predicted not in (None, NIL)
    if result.right and is_entity:
        prf.tp += 1
        return
    prf.fn += is_entity
    prf.fp += is_link


def _within(result: Outcome, k: int) -> bool:
    found = result.link.ids[:k] if result.link else ()
    return any(kb_id in (result.gold or ()) for kb_id in found)


def _prf(name: str, prf: PRFScore) -> Dict[str, Optional[float]]:
    some = len(prf) > 0
    return {
        f"{name}_p": prf.precision if some else None,
        f"{name}_r": prf.recall if some else None,
        f"{name}_f": prf.fscore if some else None,
    }


def _mean(values: List[Any]) -> Optional[float]:
    return sum(values) / len(values) if values else None


@registry.scorers("spacy-arbo-el.linker_scorer.v1")
def make_linker_scorer() -> Callable:
    """The scorer of ``arbo_linker``."""

    def score(
        examples: Iterable[Example],
        *,
        get_spans: Optional[SpanGetter] = None,
        extension: str = "arbo",
        **kwargs: Any,
    ) -> Dict[str, Any]:
        return score_outcomes(outcomes(examples, get_spans or ent_spans(), extension))

    return score
