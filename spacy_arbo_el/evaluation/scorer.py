"""Scores of linked documents, for ``nlp.evaluate`` and for reports.

Unlike in spaCy's ``score_links``, a gold mention that the pipeline did not find is a miss.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from spacy.scorer import PRFScore
from spacy.training import Example
from spacy.util import registry

from ..kb.entity import NIL
from ..kb.knowledge_base import ArboKB
from ..mentions.getters import EntSpans, SpanGetter
from ..mentions.record import MentionRecord
from .outcomes import Outcome, mean, outcomes
from .seen import Seen, score_by_seen, score_namesakes

# The k of recall@k, those of Table 1 of the arborescence paper among them.
RECALLS = (1, 2, 4, 8, 10, 16, 32, 64)


def score_outcomes(results: list[Outcome]) -> dict[str, Any]:
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
    per_type: dict[str, PRFScore] = defaultdict(PRFScore)
    for result in results:
        _count_link(per_type[result.label], result)
    micro = PRFScore()
    nil = PRFScore()
    for prf in per_type.values():
        micro += prf
    gold = [result for result in results if result.gold is not None]
    for result in gold:
        nil.tp += not result.gold and result.predicted == NIL
        nil.fp += bool(result.gold) and result.predicted == NIL
        nil.fn += not result.gold and result.predicted != NIL
    scored = [prf for prf in per_type.values() if len(prf)]
    scores: dict[str, Any] = {
        **_prf("nel_micro", micro),
        "nel_macro_p": mean([prf.precision for prf in scored]),
        "nel_macro_r": mean([prf.recall for prf in scored]),
        "nel_macro_f": mean([prf.fscore for prf in scored]),
        "nel_f_per_type": {
            label: prf.to_dict() for label, prf in sorted(per_type.items())
        },
        "nel_score": micro.fscore if len(micro) else None,
        "nel_score_desc": "micro F",
        "arbo_acc": mean([result.is_correct for result in gold]),
        "arbo_mentions": len(gold),
        **_prf("arbo_nil", nil),
    }
    for k in RECALLS:
        scores[f"arbo_recall_at_{k}"] = recall_at(results, k)
    return scores


def all_scores(
    results: list[Outcome], seen: Seen, kb: ArboKB | None
) -> dict[str, Any]:
    """The scores of outcomes, also by what training has shown, and those of namesakes."""
    return {
        **score_outcomes(results),
        **score_by_seen(results, seen),
        **score_namesakes(results, kb),
    }


def recall_at(results: list[Outcome], k: int) -> float | None:
    """Share of linkable gold mentions with their entity in k."""
    return mean([is_candidate(result, k) for result in results if result.gold])


def _count_link(prf: PRFScore, result: Outcome) -> None:
    is_entity = bool(result.gold)
    is_link = result.predicted not in (None, NIL)
    if result.is_correct and is_entity:
        prf.tp += 1
        return
    prf.fn += is_entity
    prf.fp += is_link


def is_candidate(result: Outcome, k: int) -> bool:
    """Return whether a gold entity of a mention is among its first k candidates."""
    candidates = result.link.ids[:k] if result.link else ()
    return any(kb_id in (result.gold or ()) for kb_id in candidates)


def _prf(name: str, prf: PRFScore) -> dict[str, float | None]:
    values = (
        (prf.precision, prf.recall, prf.fscore) if len(prf) else (None, None, None)
    )
    return dict(zip((f"{name}_p", f"{name}_r", f"{name}_f"), values))


@registry.scorers("spacy-arbo-el.linker_scorer.v1")
@dataclass(frozen=True)
class LinkerScorer:
    """The scorer of ``arbo_linker``, the default.

    For its scores, see ``score_outcomes``, ``score_by_seen`` and ``score_namesakes``::

    [components.arbo_linker.scorer]
    @scorers = "spacy-arbo-el.linker_scorer.v1"
    """

    def __call__(
        self,
        examples: Iterable[Example],
        *,
        get_spans: SpanGetter | None = None,
        extension: str = "arbo",
        kb: ArboKB | None = None,
        exemplars: Sequence[MentionRecord] = (),
        **kwargs: Any,
    ) -> dict[str, Any]:
        results = outcomes(examples, get_spans or EntSpans(), extension, kb)
        seen = Seen() if kb is None else Seen.of(kb, exemplars)
        return all_scores(results, seen, kb)
